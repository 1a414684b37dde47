"""Rubrics: the judge picks the description that fits a sample best; the score is its number."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from metric_core import columns, reasons
from metric_core.declarations.metric import Metric, MetricRequest, Parameter, Parameters, constant
from metric_core.evidence import Evidence
from metric_core.prompts.judge_questions import ALL_TEXTS, GenerateQuestion, RatingRequest, texts_of
from metric_core.prompts.reply_schemas import object_schema
from metric_core.question_kinds import QuestionKind
from metric_core.records import Sample, Score, finite_number
from metric_core.stages import Product

_KEY = re.compile(r"score(-?\d+(?:\.\d+)?)_description")

DEFAULT_RUBRICS: dict[str, str] = {
    "score1_description": "The response does not address the question, or what it says is wrong throughout.",
    "score2_description": "The response touches on the question, but most of it is wrong, missing or beside the point.",
    "score3_description": "The response answers the core of the question, with gaps or mistakes that matter.",
    "score4_description": "The response answers the question correctly; only details are missing or unclear.",
    "score5_description": "The response answers the question correctly, completely and clearly.",
}
"""Default scale of `rubrics`; it needs no reference."""


def scale_of(rubrics: Mapping[str, str]) -> dict[str, str]:
    """Return the scale of a rubric: number as written -> description, in ascending order.

    Raises:
        ValueError: If a key is not score<number>_description, two keys have the same number, or there are no keys.

    >>> list(scale_of({"score1_description": "all", "score0.5_description": "part", "score0_description": "none"}))
    ['0', '0.5', '1']
    """
    scale = {}
    for key, description in rubrics.items():
        match = _KEY.fullmatch(key)
        if match is None:
            raise ValueError(f"{key!r} is not score<number>_description")
        scale[match[1]] = description
    if not scale or len({float(number) for number in scale}) != len(scale):
        raise ValueError(f"a rubric needs different numbers, got {list(scale)}")
    return dict(sorted(scale.items(), key=lambda item: float(item[0])))


def rubric_score(value: str | float | None, scale: Sequence[str]) -> Score:
    """Return the number of the description that the judge picked, not normalized.

    Source: Ragas documentation, General Purpose Metrics, Rubrics based criteria scoring.

    Args:
        value: Value from the judge's reply: a number, or a text that spells one.
        scale: Numbers of the rubric.

    Returns:
        A number of the scale; failed (not a number, or not on the scale).

    >>> rubric_score("1", ["0", "0.5", "1"]).value, rubric_score(9, ["0", "0.5", "1"]).reason
    (1.0, 'no usable rating from the judge')
    """
    number = finite_number(value)
    if number is None or number not in map(float, scale):
        return Score.failed(reasons.NO_USABLE_RATING)
    return Score.scored(number)


def _question(sample: Sample, scale: Mapping[str, str], kind: QuestionKind) -> list[RatingRequest]:
    score = {"type": "string", "enum": list(scale)}
    schema = object_schema({"feedback": {"type": "string"}, "score": score})
    return [RatingRequest(str(kind), GenerateQuestion(kind, texts_of(sample), schema, scale))]


def _domain_question(sample: Sample, parameters: Parameters) -> list[RatingRequest]:
    return _question(sample, scale_of(parameters["rubrics"]), QuestionKind.RUBRIC)


def _instance_question(sample: Sample, _: Parameters) -> list[RatingRequest] | Score:
    scale = _instance_scale(sample)
    return scale if isinstance(scale, Score) else _question(sample, scale, QuestionKind.INSTANCE_RUBRIC)


def _instance_scale(sample: Sample) -> dict[str, str] | Score:
    if not sample.rubrics:
        return Score.undefined(reasons.NO_RUBRICS)
    try:
        return scale_of(sample.rubrics)
    except ValueError:
        return Score.undefined(reasons.UNREADABLE_RUBRICS)


def _reply(request: MetricRequest, evidence: Evidence) -> str | float | None:
    return next((rating.value for rating in evidence.ratings_of(request.key)), None)


def _domain_score(request: MetricRequest, evidence: Evidence) -> Score:
    return rubric_score(_reply(request, evidence), list(scale_of(request.parameters["rubrics"])))


def _instance_score(request: MetricRequest, evidence: Evidence) -> Score:
    scale = _instance_scale(evidence.sample)
    if isinstance(scale, Score):
        return scale
    score = rubric_score(_reply(request, evidence), list(scale))
    return score if score.value is None else Score.scored(score.value, scale="/".join(scale))


def _bounds(parameters: Parameters) -> tuple[float, float]:
    numbers = list(map(float, scale_of(parameters["rubrics"])))
    return numbers[0], numbers[-1]


def _check_rubrics(value: Any) -> str | None:
    try:
        descriptions = list(scale_of(value).values()) if isinstance(value, Mapping) else []
    except (TypeError, ValueError):
        descriptions = []
    is_valid = len(descriptions) > 1 and all(isinstance(text, str) for text in descriptions)
    return None if is_valid else "a mapping of score<number>_description to text, with at least two different numbers"


RUBRICS = Metric(
    name="rubrics",
    summary="Number of the description, in one rubric for all samples, that fits a sample best.",
    source="Ragas documentation, General Purpose Metrics, Rubrics based criteria scoring",
    family="rubrics",
    columns=constant(),
    optional_columns=constant(*ALL_TEXTS),
    products=constant(Product.RATINGS),
    compute=_domain_score,
    bounds=_bounds,
    undefined={reasons.NEEDS_LANGUAGE_MODEL: "the judge is not a language model"},
    aliases=("rubrics_score", "domain_specific_rubrics", "rubric_score"),
    parameters={
        "rubrics": Parameter(summary="score<number>_description -> text", default=DEFAULT_RUBRICS, check=_check_rubrics)
    },
    ratings=_domain_question,
    question_kinds=(QuestionKind.RUBRIC,),
    language_model=True,
    in_default_suite=False,
)

INSTANCE_RUBRICS = Metric(
    name="instance_rubrics",
    summary="Number of the description, in the rubric of the sample, that fits the sample best.",
    source="Ragas documentation, General Purpose Metrics, Instance Specific rubrics criteria scoring",
    family="rubrics",
    columns=constant(columns.RUBRICS),
    optional_columns=constant(*ALL_TEXTS),
    products=constant(Product.RATINGS),
    compute=_instance_score,
    bounds=lambda _: None,
    undefined={
        reasons.NO_RUBRICS: "the sample has no rubric",
        reasons.UNREADABLE_RUBRICS: "a key of the sample's rubric is not score<number>_description",
        reasons.NEEDS_LANGUAGE_MODEL: "the judge is not a language model",
    },
    ratings=_instance_question,
    question_kinds=(QuestionKind.INSTANCE_RUBRIC,),
    language_model=True,
)
