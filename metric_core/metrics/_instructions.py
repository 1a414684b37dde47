"""What a user tells the judge to look at: a definition, or a prompt with placeholders such as "Rate {response}".

The texts of a sample are not to be trusted and never become part of the instructions: a placeholder says which
texts the judge is shown, and stands in the instructions as the name of that column.
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
"""Placeholder, which is the name of a column -> the role of its text in a question."""


def columns_of(parameters: Parameters) -> tuple[str, ...]:
    """The columns that a prompt has placeholders for, in the order of their appearance; none for a definition.

    >>> columns_of({"prompt": "Does {response} answer {user_input}? As JSON: {{...}}"})
    ('response', 'user_input')
    """
    if parameters["prompt"] is None:
        return ()
    return tuple(
        dict.fromkeys(field for _, field, _, _ in Formatter().parse(parameters["prompt"]) if field is not None)
    )


def select_texts(sample: Sample, parameters: Parameters) -> dict[str, str]:
    """The texts by role that the judge is shown: those with a placeholder, or all where there is none.

    >>> select_texts(Sample(user_input="Why?", response="So."), {"prompt": "How clear is {response}?"})
    {'response': 'So.'}
    """
    texts = texts_of(sample)
    shown = [ROLES[column] for column in columns_of(parameters)] or list(texts)
    return {role: text for role, text in texts.items() if role in shown}


def join_instructions(parameters: Parameters) -> dict[str, str]:
    """Name and definition for the judge; in a prompt the names of the columns stand in place of the texts.

    >>> join_instructions({"name": "clarity", "prompt": "How clear is {response}? As JSON: {{...}}"})["definition"]
    'How clear is [response]? As JSON: {...}'
    """
    definition = parameters["definition"] if parameters["prompt"] is None else _name_placeholders(parameters["prompt"])
    return {"name": parameters["name"], "definition": definition}


def require_one_instruction(parameters: Parameters) -> str | None:
    """A check that accepts parameters with either a definition or a prompt.

    >>> require_one_instruction({"definition": None, "prompt": None})
    'either a definition or a prompt'
    """
    given = (parameters["definition"] is not None) + (parameters["prompt"] is not None)
    return None if given == 1 else "either a definition or a prompt"


def prompt_text(value: Any) -> str | None:
    """A check that accepts texts whose placeholders are columns.

    >>> prompt_text("Rate {answer}")
    'a text whose placeholders are among {user_input}, {response}, {retrieved_contexts}, {reference}, ...'
    """
    wanted = "a text whose placeholders are among " + ", ".join(f"{{{column}}}" for column in ROLES)
    if not isinstance(value, str) or not value.strip():
        return wanted
    try:
        parts = list(Formatter().parse(value))
    except ValueError:
        return f"{wanted}, with all other braces doubled"
    plain = all(field is None or (field in ROLES and not spec and not how) for _, field, spec, how in parts)
    return None if plain else wanted


def _name_placeholders(prompt: str) -> str:
    parts = Formatter().parse(prompt)
    return "".join(literal if field is None else f"{literal}[{field}]" for literal, field, _, _ in parts)


PARAMETERS: dict[str, Parameter] = {
    "name": Parameter(summary="what the criterion is called", default="criterion", check=require_text),
    "definition": Parameter(summary="the criterion in words", check=allow_none(require_text)),
    "prompt": Parameter(summary="the criterion in words, with columns in braces", check=allow_none(prompt_text)),
}
"""The parameters of every metric with a criterion in words; `require_one_instruction` says which go together."""
