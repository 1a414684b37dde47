"""Make follow-up questions of conversations self-contained: the stage `follow_ups`.

All metrics that read the question of a row read the self-contained one. A first question is not asked about, and where
the judge gives no question, the user's own is read.
"""

from collections.abc import Mapping
from typing import Any

from metric_core.prompts.judge_questions import ask_follow_up
from metric_core.question_kinds import QuestionKind
from metric_core.reasons import NO_USABLE_REPLY
from metric_core.records import AnswerStatus, Sample
from metric_core.stages import Stage
from tasks.models.judges.answer_cells import reply_cell
from tasks.models.judges.batching import JudgeBatcher
from tasks.models.judges.protocol import GenerateAnswer
from tasks.models.protocol import Models
from tasks.options.judged_settings import JudgedSettings
from tasks.rows.records import build_table, read_samples_table
from tasks.stages.definition import Progress, StageOutput, Tables, stage


class FollowUpsSettings(JudgedSettings):
    """Settings of the stage `follow_ups`."""


@stage(Stage.FOLLOW_UPS, version=1, reads=(Stage.SAMPLES,), asks=(QuestionKind.FOLLOW_UP,))
def follow_ups(tables: Tables, settings: FollowUpsSettings, models: Models, progress: Progress) -> StageOutput:
    """Ask for a self-contained form of each question that follows earlier turns."""
    del settings
    samples = [sample for sample in read_samples_table(tables[Stage.SAMPLES]) if _follows(sample)]
    batcher = JudgeBatcher(models.judge(), progress)
    questions = [ask_follow_up(sample.user_input or "", sample.earlier_turns or "") for sample in samples]
    answers = batcher.generate(questions)
    rows = [_row(sample, answer) for sample, answer in zip(samples, answers, strict=True)]
    return StageOutput(build_table(Stage.FOLLOW_UPS, rows), batcher.usage)


def _follows(sample: Sample) -> bool:
    return bool((sample.user_input or "").strip() and (sample.earlier_turns or "").strip())


def _row(sample: Sample, answer: GenerateAnswer) -> Mapping[str, Any]:
    row = {"row_id": sample.row_id, "status": answer.status, "reason": answer.reason, "reply": reply_cell(answer)}
    if answer.status is not AnswerStatus.ANSWERED:
        return row
    question = answer.value["question"].strip()
    if not question:
        return row | {"status": AnswerStatus.FAILED, "reason": NO_USABLE_REPLY}
    return row | {"question": question}
