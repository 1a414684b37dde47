"""Numeric criteria: the judge rates a sample by a user-defined criterion with a number in a range."""

from typing import Any

from metric_core import reasons
from metric_core.declarations.metric import Metric, MetricRequest, Parameter, Parameters, constant
from metric_core.declarations.parameter_checks import require_number_in
from metric_core.evidence import Evidence
from metric_core.metrics._instructions import (
    PARAMETERS,
    columns_of,
    join_instructions,
    optional_columns_of,
    require_one_instruction,
    select_texts,
)
from metric_core.prompts.judge_questions import GenerateQuestion, RatingRequest
from metric_core.prompts.reply_schemas import object_schema
from metric_core.question_kinds import QuestionKind
from metric_core.records import Direction, Sample, Score, finite_number
from metric_core.stages import Product


def numeric_criteria(value: str | float | None, least: float = 0.0, greatest: float = 1.0) -> Score:
    """Return the number that the judge gave, if it is in the range.

    Source: Ragas, Numeric Metric.

    Args:
        value: Value from the judge's reply: a number, or a text that spells one.

    Returns:
        A score in [least, greatest]; failed (no number, or out of range).

    >>> numeric_criteria("0.5").value, numeric_criteria(1.7).reason
    (0.5, 'no usable rating from the judge')
    """
    number = finite_number(value)
    if number is None or not least <= number <= greatest:
        return Score.failed(reasons.NO_USABLE_RATING)
    return Score.scored(number)


def _questions(sample: Sample, parameters: Parameters) -> list[RatingRequest]:
    least, greatest = parameters["allowed_values"]
    schema = object_schema({"value": {"type": "number", "minimum": least, "maximum": greatest}})
    kind = QuestionKind.CRITERIA_NUMBER
    question = GenerateQuestion(kind, select_texts(sample, parameters), schema, join_instructions(parameters))
    return [RatingRequest(str(kind), question)]


def _compute(request: MetricRequest, evidence: Evidence) -> Score:
    value = next((rating.value for rating in evidence.ratings_of(request.key)), None)
    return numeric_criteria(value, *request.parameters["allowed_values"])


def _bounds(parameters: Parameters) -> tuple[float, float]:
    least, greatest = parameters["allowed_values"]
    return float(least), float(greatest)


def _check_range(values: Any) -> str | None:
    numbers = (
        isinstance(values, list | tuple) and len(values) == 2 and not any(require_number_in(-1e15)(v) for v in values)
    )
    return None if numbers and values[0] < values[1] else "two numbers, the least and the greatest"


NUMERIC_CRITERIA = Metric(
    name="numeric_criteria",
    summary="Rating by a user-defined criterion with a number in a range.",
    source="Ragas, Numeric Metric",
    family="numeric_criteria",
    columns=columns_of,
    optional_columns=optional_columns_of,
    products=constant(Product.RATINGS),
    compute=_compute,
    direction=Direction.NEITHER,
    bounds=_bounds,
    undefined={reasons.NEEDS_LANGUAGE_MODEL: "the judge is not a language model"},
    aliases=("numeric_metric",),
    parameters={
        **PARAMETERS,
        "allowed_values": Parameter(summary="least and greatest value", default=(0.0, 1.0), check=_check_range),
    },
    check=require_one_instruction,
    ratings=_questions,
    question_kinds=(QuestionKind.CRITERIA_NUMBER,),
    language_model=True,
    in_default_suite=False,
)
