"""The stage `explanations`: the judge's words on why a verdict on a claim is what it is.

A second pass over verdicts that are already given, so that asking why can not change them. Only verdicts that the
judge was asked for are explained: where a premise is empty there is nothing to say.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar, Literal, TypeAlias

from metric_core import reasons
from metric_core.evidence import premise_text
from metric_core.judge_questions import NO, YES, QuestionKind, ask_explanation
from metric_core.records import AnswerStatus, VerdictKind
from metric_core.stages import Stage
from tasks.judges.batching import JudgeBatcher
from tasks.judges.protocol import GenerateAnswer
from tasks.models.models import open_judges
from tasks.options.judged_settings import JudgedSettings
from tasks.stages.answer_cells import reply_cell
from tasks.stages.base import StageOutput, Tables, progress_reporter, stage
from tasks.tables.records import build_table, read_samples_table

Explained: TypeAlias = Literal["unsupported", "all"]
"""Which verdicts on claims are explained: those that say no, or all."""

_CAN_NOT = GenerateAnswer(AnswerStatus.UNDEFINED, reason=reasons.NEEDS_LANGUAGE_MODEL)


class ExplanationsSettings(JudgedSettings):
    """Which verdicts are explained, and by whom."""

    asks: ClassVar[tuple[QuestionKind, ...]] = (QuestionKind.EXPLANATION,)

    explained: Explained = "unsupported"


@stage(Stage.EXPLANATIONS, version=2)
def explanations(tables: Tables, settings: ExplanationsSettings) -> StageOutput:
    """Asks why, once a verdict."""
    judge = open_judges(settings)
    asker = JudgeBatcher(judge, progress_reporter(Stage.EXPLANATIONS))
    samples = {sample.row_id: sample for sample in read_samples_table(tables[Stage.SAMPLES])}
    claims = {(row["row_id"], row["claim_id"]): row["text"] for row in tables[Stage.CLAIMS].to_pylist()}
    chosen = list(_chosen(tables[Stage.VERDICTS].to_pylist(), settings.explained))
    questions = [
        ask_explanation(
            claims[row["row_id"], row["claim_id"]],
            premise_text(samples[row["row_id"]], row["premise"]),
            YES if row["verdict"] else NO,
        )
        for row in chosen
    ]
    answers = asker.generate(questions) if judge.can_answer(QuestionKind.EXPLANATION) else [_CAN_NOT] * len(questions)
    rows = [_row(verdict, answer) for verdict, answer in zip(chosen, answers, strict=True)]
    return StageOutput(build_table(Stage.EXPLANATIONS, rows), asker.usage)


def _chosen(verdicts: Iterable[Mapping[str, Any]], explained: Explained) -> Iterator[Mapping[str, Any]]:
    for row in verdicts:
        # A verdict that was known without asking has its reason beside it.
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
