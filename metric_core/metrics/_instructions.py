"""Check the user's instructions to the judge: a definition, or a prompt with placeholders such as "Rate {response}".

The texts of a sample are untrusted and never become part of the instructions: a placeholder selects a text to show
to the judge, and is replaced in the instructions by the name of its column.
"""

from string import Formatter
from typing import Any

from metric_core import columns
from metric_core.declarations.metric import Parameter, Parameters
from metric_core.declarations.parameter_checks import allow_none, require_text
from metric_core.prompts.judge_questions import ALL_TEXTS, texts_of
from metric_core.records import Sample

PLACEHOLDERS = (
    columns.USER_INPUT,
    columns.RESPONSE,
    columns.RETRIEVED_CONTEXTS,
    columns.REFERENCE,
    columns.REFERENCE_CONTEXTS,
    columns.CONVERSATION,
    columns.EARLIER_TURNS,
)
"""Columns that a prompt may name in braces."""


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


def optional_columns_of(parameters: Parameters) -> tuple[str, ...]:
    """Return the columns that a criterion uses if the data has them: all texts, unless a prompt has placeholders.

    >>> optional_columns_of({"prompt": "How clear is {response}?"})
    ()
    """
    return () if columns_of(parameters) else ALL_TEXTS


def select_texts(sample: Sample, parameters: Parameters) -> dict[str, str]:
    """Return the texts to show to the judge, by role: those with a placeholder, or all if there is none.

    >>> select_texts(Sample(user_input="Why?", response="So."), {"prompt": "How clear is {response}?"})
    {'response': 'So.'}
    """
    return texts_of(sample, columns_of(parameters) or ALL_TEXTS)


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
    wanted = "a text whose placeholders are among " + ", ".join(f"{{{column}}}" for column in PLACEHOLDERS)
    if not isinstance(value, str) or not value.strip():
        return wanted
    try:
        parts = list(Formatter().parse(value))
    except ValueError:
        return f"{wanted}, with all other braces doubled"
    is_valid = all(
        field is None or (field in PLACEHOLDERS and not spec and not conversion) for _, field, spec, conversion in parts
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
