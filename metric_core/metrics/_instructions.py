"""The user's instructions to the judge: a definition, or a prompt with placeholders such as "Rate {response}".

The texts of a sample are untrusted and never become part of the instructions: a placeholder selects a text to show
to the judge, and is replaced in the instructions by the name of its column.
"""

from string import Formatter
from typing import Any

from metric_core import columns
from metric_core.judge_questions import CONTEXTS, REFERENCE, RESPONSE, USER_INPUT, texts_of
from metric_core.metric import Parameter, Parameters, allow_none, require_text
from metric_core.records import Sample

ROLES: dict[str, str] = {
    columns.USER_INPUT: USER_INPUT,
    columns.RESPONSE: RESPONSE,
    columns.RETRIEVED_CONTEXTS: CONTEXTS,
    columns.REFERENCE: REFERENCE,
    columns.REFERENCE_CONTEXTS: columns.REFERENCE_CONTEXTS,
}
"""Placeholder (the name of a column) -> role of its text in a question."""


def columns_of(parameters: Parameters) -> tuple[str, ...]:
    """Return the columns that a prompt has placeholders for, in order of appearance; none for a definition.

    >>> columns_of({"prompt": "Does {response} answer {user_input}? As JSON: {{...}}"})
    ('response', 'user_input')
    """
    if parameters["prompt"] is None:
        return ()
    return tuple(
        dict.fromkeys(field for _, field, _, _ in Formatter().parse(parameters["prompt"]) if field is not None)
    )


def select_texts(sample: Sample, parameters: Parameters) -> dict[str, str]:
    """Return the texts to show to the judge, by role: those with a placeholder, or all if there is none.

    >>> select_texts(Sample(user_input="Why?", response="So."), {"prompt": "How clear is {response}?"})
    {'response': 'So.'}
    """
    texts = texts_of(sample)
    shown = [ROLES[column] for column in columns_of(parameters)] or list(texts)
    return {role: text for role, text in texts.items() if role in shown}


def join_instructions(parameters: Parameters) -> dict[str, str]:
    """Return the name and the definition of the criterion, with placeholders of a prompt replaced by column names.

    >>> join_instructions({"name": "clarity", "prompt": "How clear is {response}? As JSON: {{...}}"})["definition"]
    'How clear is [response]? As JSON: {...}'
    """
    definition = parameters["definition"] if parameters["prompt"] is None else _name_placeholders(parameters["prompt"])
    return {"name": parameters["name"], "definition": definition}


def require_one_instruction(parameters: Parameters) -> str | None:
    """Accept parameters with either a definition or a prompt.

    >>> require_one_instruction({"definition": None, "prompt": None})
    'either a definition or a prompt'
    """
    given = (parameters["definition"] is not None) + (parameters["prompt"] is not None)
    return None if given == 1 else "either a definition or a prompt"


def require_prompt(value: Any) -> str | None:
    """Accept texts whose placeholders are columns.

    >>> require_prompt("Rate {answer}")
    'a text whose placeholders are among {user_input}, {response}, {retrieved_contexts}, {reference}, ...'
    """
    wanted = "a text whose placeholders are among " + ", ".join(f"{{{column}}}" for column in ROLES)
    if not isinstance(value, str) or not value.strip():
        return wanted
    try:
        parts = list(Formatter().parse(value))
    except ValueError:
        return f"{wanted}, with all other braces doubled"
    is_valid = all(
        field is None or (field in ROLES and not spec and not conversion) for _, field, spec, conversion in parts
    )
    return None if is_valid else wanted


def _name_placeholders(prompt: str) -> str:
    parts = Formatter().parse(prompt)
    return "".join(literal if field is None else f"{literal}[{field}]" for literal, field, _, _ in parts)


PARAMETERS: dict[str, Parameter] = {
    "name": Parameter(summary="name of the criterion", default="criterion", check=require_text),
    "definition": Parameter(summary="description of the criterion", check=allow_none(require_text)),
    "prompt": Parameter(
        summary="description of the criterion, with columns in braces", check=allow_none(require_prompt)
    ),
}
"""Parameters of every metric with a user-defined criterion; `require_one_instruction` checks their combination."""
