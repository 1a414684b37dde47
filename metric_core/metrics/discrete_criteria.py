"""Discrete criteria: the judge rates a sample by a user-defined criterion with a whole number or a category."""

from collections.abc import Sequence
from typing import Any, TypeAlias

from metric_core import reasons
from metric_core.declarations.metric import Metric, MetricRequest, Parameter, Parameters, constant
from metric_core.declarations.parameter_checks import allow_none
from metric_core.evidence import Evidence
from metric_core.metrics._instructions import (
    PARAMETERS,
    columns_of,
    join_instructions,
    optional_columns_of,
    require_one_instruction,
    select_texts,
)
from metric_core.metrics._votes import STRICTNESS, majority, vote_count
from metric_core.prompts.judge_questions import ChoiceQuestion, GenerateQuestion, RatingRequest
from metric_core.prompts.reply_schemas import object_schema
from metric_core.question_kinds import QuestionKind
from metric_core.records import Direction, Sample, Score
from metric_core.stages import Product

MOST_LABELS = 20
"""Maximum number of whole numbers offered as labels; with more, the judge answers in JSON."""

Allowed: TypeAlias = Sequence[int] | Sequence[str] | None
"""Values that a judge can give: whole numbers, categories, or None for any whole number."""


def discrete_value(reply: str | float | None, allowed: Allowed) -> int | str | None:
    """Return the allowed value that equals a value from the judge's JSON reply; None if there is none.

    Types matter: 8 and 8.0 are the whole number 8, the text "8" is not. Categories must match exactly.

    >>> discrete_value(8.0, [7, 8]), discrete_value("8", [7, 8]), discrete_value("PASS", ["pass", "fail"])
    (8, None, None)
    >>> discrete_value(99, None), discrete_value(2.5, None)
    (99, None)
    """
    if reply is None or isinstance(reply, bool):
        return None
    if isinstance(reply, str):
        return next((value for value in allowed or () if value == reply), None)
    whole = int(reply) if float(reply).is_integer() else None
    return whole if whole is not None and (allowed is None or whole in allowed) else None


def discrete_criteria(votes: Sequence[int | str | None]) -> Score:
    """Return the value with most votes, as a number or a category.

    Source: Ragas documentation, General Purpose Metrics, Simple Criteria Scoring.

    Args:
        votes: Value of each vote; None is a failed vote.

    Returns:
        A number or a label; failed (no votes, or enough failed votes to have changed the value).

    >>> discrete_criteria([8]).value, discrete_criteria([2, 5, 5]).value, discrete_criteria(["pass"]).label
    (8.0, 5.0, 'pass')
    """
    value = majority(votes)
    if value is None:
        return Score.failed(reasons.NO_USABLE_RATING)
    return Score.scored(value) if isinstance(value, int) else Score.labelled(value)


def _is_choice(allowed: Allowed) -> bool:
    return allowed is not None and (isinstance(allowed[0], str) or len(allowed) <= MOST_LABELS)


def _vote(answer: str | float | None, allowed: Allowed) -> int | str | None:
    """Return the value of an answer; the labels of a choice question are texts even if the values are numbers."""
    if allowed is not None and _is_choice(allowed) and isinstance(answer, str):
        return {str(value): value for value in allowed}.get(answer)
    return discrete_value(answer, allowed)


def _questions(sample: Sample, parameters: Parameters) -> list[RatingRequest]:
    allowed, votes = parameters["allowed_values"], vote_count(parameters["strictness"])
    texts, instructions = select_texts(sample, parameters), join_instructions(parameters)
    kind = QuestionKind.CRITERIA_INTEGER
    if allowed is not None and isinstance(allowed[0], str):
        kind = QuestionKind.CRITERIA_CATEGORY
    if _is_choice(allowed):
        return [RatingRequest(str(kind), ChoiceQuestion(kind, texts, tuple(map(str, allowed)), instructions, votes))]
    value = {"type": "integer"} if allowed is None else {"type": "integer", "enum": list(allowed)}
    requests = []
    for vote in range(1, votes + 1):
        # Equal questions are asked once, so a title makes the question of each vote distinct.
        schema = object_schema({"value": value}) | ({"title": f"vote {vote}"} if votes > 1 else {})
        requests.append(RatingRequest(f"{kind}:{vote}", GenerateQuestion(kind, texts, schema, instructions)))
    return requests


def _compute(request: MetricRequest, evidence: Evidence) -> Score:
    allowed = request.parameters["allowed_values"]
    return discrete_criteria([_vote(rating.value, allowed) for rating in evidence.ratings_of(request.key)])


def _bounds(parameters: Parameters) -> tuple[float, float] | None:
    allowed = parameters["allowed_values"]
    return None if allowed is None or isinstance(allowed[0], str) else (float(min(allowed)), float(max(allowed)))


def _check_values(values: Any) -> str | None:
    wanted = "a list of at least two different whole numbers, or different texts without white space around them"
    if not isinstance(values, list | tuple) or not 1 < len(values) == len(set(map(str, values))):
        return wanted
    whole = all(isinstance(value, int) and not isinstance(value, bool) for value in values)
    return None if whole or all(isinstance(value, str) and value.strip() == value != "" for value in values) else wanted


DISCRETE_CRITERIA = Metric(
    name="discrete_criteria",
    summary="Rating by a user-defined criterion with a whole number or a category, by a vote of the judge.",
    source="Ragas documentation, General Purpose Metrics, Simple Criteria Scoring",
    family="discrete_criteria",
    columns=columns_of,
    optional_columns=optional_columns_of,
    products=constant(Product.RATINGS),
    compute=_compute,
    direction=Direction.NEITHER,
    bounds=_bounds,
    undefined={reasons.NEEDS_LANGUAGE_MODEL: "the judge is not a language model"},
    aliases=("simple_criteria", "simple_criteria_score", "discrete_metric"),
    parameters={
        **PARAMETERS,
        "allowed_values": Parameter(
            summary="whole numbers or categories; unset: any whole number", check=allow_none(_check_values)
        ),
        "strictness": STRICTNESS,
    },
    check=require_one_instruction,
    ratings=_questions,
    question_kinds=(QuestionKind.CRITERIA_CATEGORY, QuestionKind.CRITERIA_INTEGER),
    language_model=True,
    in_default_suite=False,
)
