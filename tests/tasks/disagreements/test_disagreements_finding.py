"""Passages that disagree in the summary of a run, on the terminal and in the report."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from flows.config.run_config import RunConfig
from flows.evaluate import evaluate
from tasks.disagreements.disagreements_finding import MOST_SHOWN, DisagreementCounts, lines, section
from tasks.documents.blocks import Block, Line, Section, Table, parts_of
from tasks.findings.finding import RunRecords
from tasks.runs.finished_run import FinishedRun

pytestmark = [pytest.mark.prefect]

Run = Callable[..., RunRecords]
OLD, NEW = "Camera footage is kept for 72 hours.", "Camera footage is kept for two days."
DATES = ["2023-05-01", "2024-02-15"]


@pytest.fixture
def run(tmp_path: Path, prefect_stub: object) -> Run:
    """Return a function that evaluates rows with some metrics."""
    del prefect_stub

    def evaluate_rows(rows: Sequence[dict[str, Any]], *metrics: str, **options: Any) -> RunRecords:
        plain = {"user_input": "How long is footage kept?", "response": "72 hours.", "retrieved_contexts": [OLD, NEW]}
        texts = (json.dumps({"id": f"row-{i}", **plain, **row}) for i, row in enumerate(rows))
        (tmp_path / "rows.jsonl").write_text("\n".join(texts), encoding="utf-8")
        chosen = {"source": str(tmp_path / "rows.jsonl"), "out": str(tmp_path / "run"), "metrics": metrics, **options}
        finished = FinishedRun(Path(evaluate(RunConfig.model_validate(chosen)).folder))
        return RunRecords(finished.record, finished.summary, finished.folder)

    return evaluate_rows


def cells(blocks: Sequence[Block]) -> list[list[str]]:
    (shown,) = blocks
    assert isinstance(shown, Section)
    tables = [block for block in shown.blocks if isinstance(block, Table)]
    return [["".join(part.text for part in parts_of(cell)) for cell in row] for table in tables for row in table.rows]


def test_both_places_are_shown_with_what_the_answer_follows(run: Run) -> None:
    clean = {"retrieved_contexts": [OLD, OLD], "retrieved_context_dates": DATES}
    newer = {"response": "Two days.", "retrieved_context_dates": DATES}
    found = run([{"retrieved_context_dates": DATES}, clean, newer], "context_conflict", "stale_answer")
    counts = DisagreementCounts(rows=3, disagreeing=2, dated=2, stale=1, shown=("row-0", "row-2"))
    assert found.summary.find(DisagreementCounts) == counts
    assert [*lines(found)] == ["passages disagree in 2 of 3 rows; 1 of 2 answers follow the older one"]
    sides = [f"{OLD} (passage 1, 2023-05-01)", f"{NEW} (passage 2, 2024-02-15)"]
    assert cells(section(found)) == [["row-0", *sides, "the first one"], ["row-2", *sides, "the other one"]]


def test_without_dates_the_passages_are_shown_without_them(run: Run) -> None:
    found = run([{}], "context_conflict")
    assert [*lines(found)] == ["passages disagree in 1 of 1 rows"]
    assert cells(section(found)) == [["row-0", f"{OLD} (passage 1)", f"{NEW} (passage 2)", "the first one"]]


def test_a_run_without_disagreements_shows_nothing(run: Run) -> None:
    found = run([{"retrieved_contexts": [OLD]}], "context_conflict")
    assert [*lines(found)] == []
    assert section(found) == ()


def test_a_run_without_the_metric_counts_nothing(run: Run) -> None:
    found = run([{"reference": "72 hours."}], "string_similarity")
    assert found.summary.find(DisagreementCounts) is None
    assert [*lines(found)] == []
    assert section(found) == ()


def test_many_rows_are_counted_and_a_few_shown(run: Run) -> None:
    found = run([{}] * (MOST_SHOWN + 5), "context_conflict")
    (shown,) = section(found)
    assert isinstance(shown, Section)
    assert len(cells([shown])) == MOST_SHOWN
    last = shown.blocks[-1]
    assert isinstance(last, Line)
    assert [part.text for part in parts_of(last.text)] == ["And 5 more."]


def test_passages_that_only_the_judge_finds_to_disagree_are_shown(run: Run, tmp_path: Path) -> None:
    said = ["Footage is deleted after three days.", "We keep what cameras record, the footage, for a year.", "Footage!"]
    kind = "rag_assay.disagreeing_passages"
    script = [{"kind": kind, "answer": "no"}, {"kind": kind, "texts": said[:2], "answer": "yes"}]
    (tmp_path / "script.json").write_text(json.dumps(script), encoding="utf-8")
    judge = {"backend": "scripted", "script": str(tmp_path / "script.json")}
    metric = "context_conflict(pairs=3)"
    found = run([{"retrieved_contexts": said}, {"retrieved_contexts": said[1:]}], metric, judge=judge)
    assert [*lines(found)] == ["passages disagree in 1 of 2 rows"]
    places = [f"{said[0]} (passage 1)", f"{said[1]} (passage 2)"]
    assert cells(section(found)) == [["row-0", *places, "the judge found this"]]
    clean = run([{"retrieved_contexts": said[1:]}], metric, judge=judge)
    assert (*lines(clean), *section(clean)) == ()
