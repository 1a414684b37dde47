"""The stage `ratings`: the questions that metrics put to the judge about a sample as a whole."""

from collections.abc import Sequence
from typing import Any, ClassVar

from metric_core import reasons
from metric_core.judge_questions import RATING_KINDS, ChoiceQuestion, GenerateQuestion, QuestionKind, RatingRequest
from metric_core.records import AnswerStatus, Score, finite_number
from metric_core.stages import Stage
from tasks.judges.batching import JudgeBatcher
from tasks.judges.protocol import ChoiceAnswer, GenerateAnswer
from tasks.models.models import open_judges
from tasks.options.judged_settings import JudgedSettings
from tasks.options.metric_settings import MetricSettings
from tasks.stages.answer_cells import panel_cell, reply_cell
from tasks.stages.base import StageOutput, Tables, progress_reporter, stage
from tasks.tables.records import build_table, read_samples_table


class RatingsSettings(JudgedSettings):
    """Which metrics ask, and whom."""

    asks: ClassVar[tuple[QuestionKind, ...]] = RATING_KINDS

    metrics: tuple[MetricSettings, ...]


@stage(Stage.RATINGS, version=2)
def ratings(tables: Tables, settings: RatingsSettings) -> StageOutput:
    """Asks each metric's rating questions; a sample whose score needs none is not asked about."""
    samples = read_samples_table(tables[Stage.SAMPLES])
    asker = JudgeBatcher(open_judges(settings), progress_reporter(Stage.RATINGS))
    asked: list[tuple[str, str, RatingRequest]] = []
    for metric in settings.metrics:
        request = metric.request()
        for sample in samples:
            wanted = request.rating_requests(sample)
            if not isinstance(wanted, Score):
                asked += [(sample.row_id, metric.key, rating) for rating in wanted]
    answers = _answers([rating for _, _, rating in asked], asker)
    rows = [
        {"row_id": row_id, "metric": metric, "template": rating.template, **row}
        for (row_id, metric, rating), answer in zip(asked, answers, strict=True)
        for row in _rows(answer)
    ]
    return StageOutput(build_table(Stage.RATINGS, rows), asker.usage)


def _answers(requests: Sequence[RatingRequest], asker: JudgeBatcher) -> list[ChoiceAnswer | GenerateAnswer]:
    choices = [request.question for request in requests if isinstance(request.question, ChoiceQuestion)]
    writings = [request.question for request in requests if isinstance(request.question, GenerateQuestion)]
    chosen, written = iter(asker.choose(choices)), iter(asker.generate(writings))
    return [next(chosen) if isinstance(request.question, ChoiceQuestion) else next(written) for request in requests]


def _rows(answer: ChoiceAnswer | GenerateAnswer) -> list[dict[str, Any]]:
    if answer.status is not AnswerStatus.ANSWERED:
        panel = panel_cell(answer) if isinstance(answer, ChoiceAnswer) else None
        outcome = {"status": answer.status, "reason": answer.reason, "reply": reply_cell(answer)}
        return [{"vote": 0, "panel": panel, **outcome}]
    if isinstance(answer, GenerateAnswer):
        return [_written(answer)]
    probabilities = None
    if answer.probabilities is not None:
        probabilities = [{"label": label, "probability": p} for label, p in answer.probabilities.items()]
    first_lost = answer.votes.index(None) if None in answer.votes else None
    return [
        {
            "vote": vote,
            "value": label,
            "probabilities": probabilities,
            "panel": panel_cell(answer, vote),
            "status": AnswerStatus.ANSWERED if label is not None else AnswerStatus.FAILED,
            "reason": None if label is not None else reasons.NO_USABLE_RATING,
            "reply": reply_cell(answer) if vote == first_lost else None,
        }
        for vote, label in enumerate(answer.votes)
    ]


def _written(answer: GenerateAnswer) -> dict[str, Any]:
    value = answer.value["score"] if "score" in answer.value else answer.value["value"]
    row = {"vote": 0, "feedback": answer.value.get("feedback"), "reply": reply_cell(answer)}
    if isinstance(value, str):
        return {**row, "value": value, "status": AnswerStatus.ANSWERED}
    number = float(value) if isinstance(value, bool) else finite_number(value)
    if number is None:  # whole numbers in JSON may be longer than any that can be counted with
        return {**row, "status": AnswerStatus.FAILED, "reason": reasons.NO_USABLE_RATING}
    return {**row, "value": str(value), "number": number, "status": AnswerStatus.ANSWERED}
