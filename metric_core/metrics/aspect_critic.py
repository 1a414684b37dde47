"""Aspect critic: whether a sample meets a definition, by a vote of the judge."""

from collections.abc import Sequence

from metric_core import columns, reasons
from metric_core.declarations.metric import Metric, MetricRequest, Parameter, Parameters, constant
from metric_core.declarations.parameter_checks import require_text
from metric_core.evidence import Evidence
from metric_core.metrics._votes import STRICTNESS, exact_label, majority, vote_count
from metric_core.prompts.judge_questions import ALL_TEXTS, ChoiceQuestion, RatingRequest, texts_of
from metric_core.question_kinds import QuestionKind
from metric_core.records import Direction, Sample, Score
from metric_core.stages import Product

LABELS = ("1", "0")


def aspect_critic(votes: Sequence[str | float | None]) -> Score:
    """Return the majority of the votes: 1 if the sample meets the definition, 0 if not.

    Source: Ragas documentation, General Purpose Metrics, Aspect Critic.

    Args:
        votes: Answer of each vote; anything but exactly 0 or 1 is a failed vote, not a vote against.

    Returns:
        0 or 1; failed (no votes, or enough failed votes to have changed the result).

    Two votes for, one against:

    >>> aspect_critic(["1", "0", "1"]).value
    1.0
    >>> aspect_critic(["7"]).reason
    'no usable rating from the judge'
    """
    verdict = majority([exact_label(vote, LABELS) for vote in votes])
    return Score.failed(reasons.NO_USABLE_RATING) if verdict is None else Score.scored(float(verdict))


def _questions(sample: Sample, parameters: Parameters) -> list[RatingRequest]:
    instructions = {"name": parameters["name"], "definition": parameters["definition"]}
    votes = vote_count(parameters["strictness"])
    # The reference implementation judges a whole conversation by its turns alone.
    shown = [name for name in ALL_TEXTS if sample.conversation is None or name != columns.REFERENCE]
    question = ChoiceQuestion(QuestionKind.ASPECT, texts_of(sample, shown), LABELS, instructions, votes)
    return [RatingRequest(str(QuestionKind.ASPECT), question)]


def _compute(request: MetricRequest, evidence: Evidence) -> Score:
    return aspect_critic([rating.value for rating in evidence.ratings_of(request.key)])


ASPECT_CRITIC = Metric(
    name="aspect_critic",
    summary="Whether a sample meets a definition in free text, by a vote of the judge.",
    question="{definition}",
    source="Ragas documentation, General Purpose Metrics, Aspect Critic",
    family="aspect_critic",
    columns=constant(),
    optional_columns=constant(*ALL_TEXTS),
    products=constant(Product.RATINGS),
    compute=_compute,
    direction=Direction.NEITHER,
    undefined={reasons.NEEDS_LANGUAGE_MODEL: "the judge is not a language model"},
    parameters={
        "name": Parameter(summary="name of the aspect", default="aspect", check=require_text),
        "definition": Parameter(summary="question that the judge votes on", check=require_text, required=True),
        "strictness": STRICTNESS,
    },
    ratings=_questions,
    question_kinds=(QuestionKind.ASPECT,),
    language_model=True,
    in_default_suite=False,
)
