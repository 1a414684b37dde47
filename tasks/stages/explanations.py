"""Ask the judge to explain its verdicts on claims: the stage `explanations`.

The verdicts exist already, so asking for explanations cannot change them. A verdict that needed no judge question, such
as one against an empty premise, is not explained.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, TypeAlias

from metric_core.evidence import premise_text
from metric_core.judge_questions import NO, YES, QuestionKind, ask_explanation
from metric_core.records import AnswerStatus, VerdictKind
from metric_core.stages import Stage
from tasks.judges.batching import JudgeBatcher
from tasks.judges.protocol import GenerateAnswer
from tasks.models.protocol import Models
from tasks.options.judged_settings import JudgedSettings
from tasks.stages.answer_cells import reply_cell
from tasks.stages.definition import Progress, StageOutput, Tables, stage
from tasks.tables.records import build_table, read_samples_table

Explained: TypeAlias = Literal["unsupported", "all"]
"""The verdicts on claims to explain: those that say no, or all."""


class ExplanationsSettings(JudgedSettings):
    """Settings of the stage `explanations`.

    Args:
        explained: Verdicts to explain.
    """

    explained: Explained = "unsupported"


@stage(
    Stage.EXPLANATIONS,
    version=2,
    reads=(Stage.SAMPLES, Stage.CLAIMS, Stage.VERDICTS),
    asks=(QuestionKind.EXPLANATION,),
)
def explanations(tables: Tables, settings: ExplanationsSettings, models: Models, progress: Progress) -> StageOutput:
    """Ask the judge to explain each selected verdict."""
    batcher = JudgeBatcher(models.judge(), progress)
    samples = {sample.row_id: sample for sample in read_samples_table(tables[Stage.SAMPLES])}
    claims_table = tables[Stage.CLAIMS].to_pylist() if Stage.CLAIMS in tables else ()
    claims = {(row["row_id"], row["claim_id"]): row["text"] for row in claims_table}
    chosen = list(_select(tables[Stage.VERDICTS].to_pylist(), settings.explained))
    questions = [
        ask_explanation(
            row["statement"] or claims[row["row_id"], row["claim_id"]],
            row["premise_text"] or premise_text(samples[row["row_id"]], row["premise"]),
            YES if row["verdict"] else NO,
        )
        for row in chosen
    ]
    answers = batcher.generate(questions)
    rows = [_row(verdict, answer) for verdict, answer in zip(chosen, answers, strict=True)]
    return StageOutput(build_table(Stage.EXPLANATIONS, rows), batcher.usage)


def _select(verdicts: Iterable[Mapping[str, Any]], explained: Explained) -> Iterator[Mapping[str, Any]]:
    for row in verdicts:
        # An answered verdict that has a reason needed no judge question.
        was_asked = row["status"] == AnswerStatus.ANSWERED and row["reason"] is None
        if row["kind"] == VerdictKind.SUPPORT and was_asked and (explained == "all" or row["verdict"] == 0):
            yield row


def _row(verdict: Mapping[str, Any], answer: GenerateAnswer) -> dict[str, Any]:
    return {
        **{name: verdict[name] for name in ("row_id", "kind", "claim_id", "premise")},
        "text": answer.value["explanation"] if answer.status is AnswerStatus.ANSWERED else None,
        "status": answer.status,
        "reason": answer.reason,
        "reply": reply_cell(answer),
    }
