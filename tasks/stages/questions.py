"""Regenerate the questions that each response would answer: the stage `questions`."""

from typing import Any

from metric_core import reasons
from metric_core.prompts.judge_questions import ask_questions
from metric_core.question_kinds import QuestionKind
from metric_core.records import AnswerStatus, Sample
from metric_core.stages import Stage
from tasks.models.judges.answer_cells import reply_cell
from tasks.models.judges.batching import JudgeBatcher
from tasks.models.judges.protocol import GenerateAnswer
from tasks.models.protocol import Models
from tasks.options.judged_settings import JudgedSettings
from tasks.rows.records import build_table, read_samples_table
from tasks.stages.definition import Progress, StageOutput, Tables, stage


class QuestionsSettings(JudgedSettings):
    """Settings of the stage `questions`."""

    count: int = 3


@stage(Stage.QUESTIONS, version=2, reads=(Stage.SAMPLES,), asks=(QuestionKind.QUESTIONS,))
def questions(tables: Tables, settings: QuestionsSettings, models: Models, progress: Progress) -> StageOutput:
    """Regenerate questions from each response that is not empty."""
    samples = read_samples_table(tables[Stage.SAMPLES])
    batcher = JudgeBatcher(models.judge(), progress)
    with_response = [sample for sample in samples if sample.response and sample.response.strip()]
    answers = batcher.generate([ask_questions(sample.response or "", settings.count) for sample in with_response])
    by_row = {sample.row_id: answer for sample, answer in zip(with_response, answers, strict=True)}
    rows = [row for sample in samples for row in _rows(sample, by_row.get(sample.row_id))]
    return StageOutput(build_table(Stage.QUESTIONS, rows), batcher.usage)


def _rows(sample: Sample, answer: GenerateAnswer | None) -> list[dict[str, Any]]:
    if answer is None:
        reason = reasons.empty_column("response")
        return [{"row_id": sample.row_id, "status": AnswerStatus.UNDEFINED, "reason": reason}]
    first, *more = _question_rows(sample, answer)
    return [{**first, "reply": reply_cell(answer)}, *more]


def _question_rows(sample: Sample, answer: GenerateAnswer) -> list[dict[str, Any]]:
    if answer.status is not AnswerStatus.ANSWERED:
        return [{"row_id": sample.row_id, "status": answer.status, "reason": answer.reason}]
    regenerated = answer.value["questions"]
    if not regenerated:
        return [{"row_id": sample.row_id, "status": AnswerStatus.UNDEFINED, "reason": reasons.NO_QUESTIONS}]
    return [
        {
            "row_id": sample.row_id,
            "k": k,
            "text": question["question"],
            "noncommittal": bool(question["noncommittal"]),
            "status": AnswerStatus.ANSWERED,
        }
        for k, question in enumerate(regenerated)
    ]
