"""Ask the judge to rate samples as a whole, for the metrics that need it: the stage `ratings`."""

from collections.abc import Sequence
from typing import Any

from metric_core import reasons
from metric_core.prompts.judge_questions import Kind, RatingRequest
from metric_core.question_kinds import RATING_KINDS, QuestionKind
from metric_core.records import AnswerStatus, Score, finite_number
from metric_core.stages import Stage
from tasks.models.judges.answer_cells import reply_cell, vote_cells
from tasks.models.judges.batching import JudgeBatcher
from tasks.models.judges.protocol import ChoiceAnswer, GenerateAnswer
from tasks.models.protocol import Models
from tasks.options.judged_settings import JudgedSettings
from tasks.options.metric_settings import MetricSettings
from tasks.rows.records import build_table, read_asked_samples
from tasks.stages.definition import Progress, StageOutput, Tables, stage

_ASKED_BY_ANY = RATING_KINDS[: RATING_KINDS.index(QuestionKind.PASSAGE_RELEVANCE)]
"""Kinds that determine the tables of all runs, whichever metrics they have; a later one comes with the metric that asks
it, so that a new kind leaves the tables of earlier runs valid."""


class RatingsSettings(JudgedSettings):
    """Settings of the stage `ratings`.

    Args:
        metrics: Metrics that have rating questions.
    """

    metrics: tuple[MetricSettings, ...]

    def asked_kinds(self, kinds: Sequence[Kind]) -> tuple[Kind, ...]:
        """Return the kinds of questions that the metrics ask; a user-defined one need not declare those of `kinds`."""
        metrics = [each.request().metric for each in self.metrics]
        asked = dict.fromkeys(kind for metric in metrics for kind in metric.question_kinds)
        return tuple(asked | dict.fromkeys(kinds) if any(metric.origin for metric in metrics) else asked)


@stage(Stage.RATINGS, version=2, reads=(Stage.SAMPLES, Stage.FOLLOW_UPS), asks=_ASKED_BY_ANY)
def ratings(tables: Tables, settings: RatingsSettings, models: Models, progress: Progress) -> StageOutput:
    """Ask the rating questions of each metric, except about samples whose score needs none."""
    samples = read_asked_samples(tables)
    batcher = JudgeBatcher(models.judge(), progress)
    requests: list[tuple[str, str, RatingRequest]] = []
    for metric in settings.metrics:
        request = metric.request()
        for sample in samples:
            ratings_or_score = request.rating_requests(sample)
            if not isinstance(ratings_or_score, Score):
                requests += [(sample.row_id, metric.key, rating) for rating in ratings_or_score]
    answers = batcher.ask([rating.question for _, _, rating in requests])
    rows = [
        {"row_id": row_id, "metric": metric, "template": rating.template, **row}
        for (row_id, metric, rating), answer in zip(requests, answers, strict=True)
        for row in _rating_rows(answer)
    ]
    return StageOutput(build_table(Stage.RATINGS, rows), batcher.usage)


def _rating_rows(answer: ChoiceAnswer | GenerateAnswer) -> list[dict[str, Any]]:
    if answer.status is not AnswerStatus.ANSWERED:
        outcome = {"status": answer.status, "reason": answer.reason, "reply": reply_cell(answer)}
        return [{"vote": 0, **vote_cells(answer), **outcome}]
    if isinstance(answer, GenerateAnswer):
        return [_generated_row(answer)]
    probabilities = None
    if answer.probabilities is not None:
        probabilities = [{"label": label, "probability": p} for label, p in answer.probabilities.items()]
    first_unusable = answer.votes.index(None) if None in answer.votes else None
    return [
        {
            "vote": vote,
            "value": label,
            "probabilities": probabilities,
            **vote_cells(answer, vote),
            "status": AnswerStatus.ANSWERED if label is not None else AnswerStatus.FAILED,
            "reason": None if label is not None else reasons.NO_USABLE_RATING,
            "reply": reply_cell(answer) if vote == first_unusable else None,
        }
        for vote, label in enumerate(answer.votes)
    ]


def _generated_row(answer: GenerateAnswer) -> dict[str, Any]:
    value = answer.value["score"] if "score" in answer.value else answer.value["value"]
    row = {"vote": 0, "feedback": answer.value.get("feedback"), "reply": reply_cell(answer)}
    if isinstance(value, str):
        return {**row, "value": value, "status": AnswerStatus.ANSWERED}
    number = float(value) if isinstance(value, bool) else finite_number(value)
    if number is None:  # a number in JSON may be too large for a float
        return {**row, "status": AnswerStatus.FAILED, "reason": reasons.NO_USABLE_RATING}
    return {**row, "value": str(value), "number": number, "status": AnswerStatus.ANSWERED}
