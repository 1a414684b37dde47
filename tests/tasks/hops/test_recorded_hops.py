"""Traces of LangGraph, in which a retrieval lost a fact: 20 planted cases and 6 in which nothing is lost."""

from pathlib import Path
from typing import Any

import pytest

from flows.config.run_config import RunConfig
from flows.evaluate import run_evaluation
from metric_core.prompts.judge_questions import CLAIM, CONTEXT, NO, TEXT, YES, JudgeQuestion
from metric_core.question_kinds import QuestionKind
from tasks.findings.finding import RunRecords
from tasks.hops.hops_finding import HOPS_FINDING, HopCounts
from tasks.models.judges.scripted import ScriptedJudge
from tasks.reports.run.row_blocks import PARTS
from tasks.runs.finished_run import FinishedRun
from tests.tasks.reports.parsed_page import read_rows
from tests.tasks.sources.traces.builders import read_traces

pytestmark = [pytest.mark.prefect, pytest.mark.usefixtures("prefect_stub")]

RECORDED = Path(__file__).parent / "recorded" / "langgraph.jsonl.gz"


class Reader(ScriptedJudge):
    """A judge that takes sentences for claims, to which a text states a fact if it has its words."""

    def __init__(self) -> None:
        super().__init__(self._states, "reader")

    @staticmethod
    def _states(question: JudgeQuestion) -> Any:
        if question.kind is QuestionKind.CLAIMS:
            return {"claims": [f"{each.rstrip('.')}." for each in question.texts[TEXT].split(". ")]}
        return YES if question.texts[CLAIM] in question.texts[CONTEXT] else NO


def evaluate(folder: Path, columns: dict[str, str], *metrics: str) -> FinishedRun:
    options = {
        "source": f"traces:{RECORDED}",
        "column_map": columns,
        "metrics": metrics,
        "judge": {"backend": f"{__name__}:Reader"},
        "tables": str(folder / "tables"),
        "out": str(folder / "run"),
    }
    return FinishedRun(run_evaluation(RunConfig.model_validate(options)).folder)


@pytest.mark.parametrize(
    ("columns", "metrics"),
    [
        ({"metadata.evidence": "evidence_spans"}, ("retrieval_recall",)),
        ({"metadata.reference": "reference"}, ("context_recall", "noise_sensitivity")),
    ],
)
def test_the_retrieval_that_lost_the_fact_is_named_in_every_case(
    tmp_path: Path, columns: dict[str, str], metrics: tuple[str, ...]
) -> None:
    run = evaluate(tmp_path, columns, *metrics)
    records = RunRecords(run.record, run.summary, run.folder)
    samples = {row["row_id"]: row for shard in run.samples() for row in shard.to_pylist()}
    _, traces = read_traces(RECORDED)
    planted = {row["row_id"]: row["extras"]["metadata"]["lost"] for row in traces}
    assert len(planted) == 26
    assert sum(lost is not None for lost in planted.values()) == 20

    assert HOPS_FINDING.rows is not None
    describe = HOPS_FINDING.rows(records, [*samples])
    named = {}
    for name, sample in samples.items():
        [part] = describe(sample)[PARTS]
        named[name] = next((place for place, item in enumerate(part["items"], start=1) if "LOST" in item), None)
    assert named == planted

    found = run.summary.find(HopCounts)
    assert found is not None
    assert (found.rows, found.known, found.lost) == (26, 26, 20)
    assert [hop.lost for hop in found.hops] == [9, 9, 2]
    page = (run.folder / "report.html").read_text(encoding="utf-8")
    assert "Retrievals in order" in read_rows(page)
    assert "Of 26 rows with several retrievals, 20 lost what the answer needed" in page


def test_without_a_reference_it_is_not_known_what_was_lost(tmp_path: Path) -> None:
    run = evaluate(tmp_path, {}, "faithfulness")
    found = run.summary.find(HopCounts)
    assert found is not None
    assert (found.rows, found.known, found.lost) == (26, 0, 0)
    assert [hop.repeated > 0 for hop in found.hops] == [False, True, True]
    [line] = HOPS_FINDING.lines(RunRecords(run.record, run.summary, run.folder))
    assert "what each had to find is not known" in line
