"""The table of diagnoses of a run, its counts, and what the report says about it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from metric_core.declarations.metric import MetricRequest
from metric_core.diagnosis.classes import UNDIAGNOSED
from metric_core.metrics.registry import resolve
from metric_core.records import Score
from metric_core.schemas import DIAGNOSES
from metric_core.stages import Stage, closure
from tasks.findings.diagnosis.diagnosis_counts import DiagnosisCounts, RefusalCounts
from tasks.findings.diagnosis.diagnosis_view import (
    class_counts,
    diagnosis_line,
    diagnosis_view,
    key_points_line,
    read_row_diagnoses,
)
from tasks.findings.diagnosis.run_diagnosis import count_diagnoses
from tasks.options.metric_settings import MetricSettings
from tasks.plugins.metric_lookup import parse_metric
from tasks.reports.run.report_page import write_report
from tasks.rows.table_store import conform
from tasks.runs.run_folder import DIAGNOSIS, RunFolder, table_name
from tasks.stages.diagnosis import DiagnosisSettings, diagnosis
from tests.tasks.builders import run_stage
from tests.tasks.reports import folders

METRICS = {"faithfulness": {"direction": "higher", "bounds": [0.0, 1.0]}}
REQUESTS = [resolve("faithfulness").request()]


def write_run(folder: Path, rows: int = 20, unsupported: int = 5) -> RunFolder:
    """Write a run with one claim per row; the first claims have no support, and the last row declines."""
    samples: list[dict[str, Any]] = []
    claims: list[dict[str, Any]] = []
    verdicts: list[dict[str, Any]] = []
    for i in range(rows):
        declines = i == rows - 1
        response = "I do not know." if declines else f"Wolves sing at night, {i}."
        samples.append(
            {
                "row_id": f"row-{i}",
                "row_number": i + 1,
                "user_input": "When?",
                "response": response,
                "retrieved_contexts": ["The shop opens at nine."],
            }
        )
        row = {"row_id": f"row-{i}", "side": "response"}
        if declines:
            claims.append({**row, "status": "undefined", "reason": "no claims in the response"})
            continue
        claims.append({**row, "claim_id": "response:0", "text": response, "status": "answered"})
        key = {"row_id": f"row-{i}", "kind": "support", "claim_id": "response:0", "premise": "contexts"}
        verdicts.append({**key, "verdict": int(i >= unsupported), "status": "answered"})
    scores = {sample["row_id"]: {"faithfulness": Score.scored(1.0)} for sample in samples}
    tables = {Stage.SAMPLES: samples, Stage.CLAIMS: claims, Stage.VERDICTS: verdicts}
    return RunFolder(folders.write_run(folder, scores, tables, METRICS, {"status": "completed"}))


def diagnose_run(
    folder: RunFolder, requests: Sequence[MetricRequest], groups: Mapping[str, str] | None = None
) -> DiagnosisCounts:
    """Compute the table of diagnoses from the tables of the folder, and return its counts."""
    names = {stage: folder.path / table_name(stage) for stage in diagnosis.reads}
    tables = {stage: pq.read_table(path) for stage, path in names.items() if path.exists()}
    planned = tuple(sorted(closure(product for request in requests for product in request.products)))
    metrics = [MetricSettings.from_request(request) for request in requests if request.metric.diagnosis is not None]
    output = run_stage(diagnosis, tables, DiagnosisSettings(planned=planned, metrics=tuple(metrics)))
    pq.write_table(conform(output.table, DIAGNOSES), folder.path / DIAGNOSIS)
    return count_diagnoses(folder, requests, groups, is_served=False)


def counts_of(summary: DiagnosisCounts) -> dict[str, int]:
    return {found.name: found.count for found in summary.classes if found.count}


def test_every_row_has_a_class_or_a_reason(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run")
    summary = diagnose_run(folder, REQUESTS)
    table = pq.read_table(folder.path / DIAGNOSIS).to_pylist()
    assert [row["diagnosis"] for row in table] == ["unsupported"] * 5 + ["answered"] * 14 + [None]
    assert (table[0]["part"], table[5]["part"]) == ("generator", None)
    assert table[-1]["reason"] == "lacks verdicts: relevance of context sentences"
    assert [row["declines"] for row in table] == [False] * 19 + [True]
    assert [row["refusal_kind"] for row in table] == [None] * 19 + ["nothing found"]
    assert counts_of(summary) == {"unsupported": 5, "answered": 14, UNDIAGNOSED: 1}
    kinds = {"clarifying question": 0, "nothing found": 1, "policy refusal": 0}
    assert summary.refusals == RefusalCounts(rows=1, kinds=kinds, recognized_by="forms")
    assert summary.lacking["relevance of context sentences"] == 1


def test_shares_have_intervals_which_groups_widen(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", rows=40, unsupported=20)
    alone = diagnose_run(folder, REQUESTS)
    groups = {f"row-{i}": str(i // 5) for i in range(40)}
    grouped = diagnose_run(folder, REQUESTS, groups)
    widths = []
    for summary in (alone, grouped):
        entry = next(found for found in summary.classes if found.name == "unsupported")
        assert (entry.share, entry.interval is not None) == (0.5, True)
        assert entry.interval is not None
        assert entry.interval.low < 0.5 < entry.interval.high
        widths.append(entry.interval.high - entry.interval.low)
    assert widths[0] < widths[1]


def test_a_run_without_judged_metrics_diagnoses_nothing(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run")
    summary = diagnose_run(folder, [resolve("string_similarity").request()])
    assert counts_of(summary) == {UNDIAGNOSED: 20}
    assert diagnosis_view(summary) is None
    assert diagnosis_line(summary) is None


def test_the_report_shows_the_classes_and_links_to_rows(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run")
    summary = diagnose_run(folder, REQUESTS)
    folder.write_summary(folder.read_summary().extend(diagnosis=summary))
    page = write_report(folder.path).read_text()
    assert 'href="#diagnosis-unsupported"' in page
    assert "<option>unsupported</option>" in page
    assert '"diagnosis":{"name":"undiagnosed"' in page
    assert "Refusals, 1 in this run (nothing found: 1), were recognized by a list of forms." in " ".join(page.split())
    assert "Kind of refusal: nothing found." in page
    assert diagnosis_line(summary) == "14 of 20 answers are good; 5 are faults of the generator; 1 undiagnosed"
    assert class_counts(summary) == "14 answered, 5 unsupported, 1 undiagnosed"


def test_lost_key_points_are_counted_by_part(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"row_id": f"row-{i}", "row_number": i, "response": "So.", "retrieved_contexts": ["A."]} for i in (1, 2, 3)
    ]
    points = [("row-1", 0, 0, 0), ("row-1", 1, 0, 1), ("row-2", 0, 1, None), ("row-2", 1, 0, None)]
    claims = [
        {"row_id": row, "side": "key_point", "claim_id": f"key_point:{i}", "text": "T.", "status": "answered"}
        for row, i, _, _ in points
    ]
    claims.append({"row_id": "row-3", "side": "key_point", "status": "undefined", "reason": "no key points"})
    verdicts = [
        {"row_id": row, "kind": "support", "claim_id": f"key_point:{i}", "premise": premise, "verdict": verdict}
        for row, i, *both in points
        for premise, verdict in zip(("response", "contexts"), both, strict=True)
        if verdict is not None
    ]
    tables: dict[Stage, list[dict[str, Any]]] = {
        Stage.SAMPLES: rows,
        Stage.CLAIMS: claims,
        Stage.VERDICTS: [{**v, "status": "answered"} for v in verdicts],
    }
    scores = {row["row_id"]: {"faithfulness": Score.scored(1.0)} for row in rows}
    folder = RunFolder(folders.write_run(tmp_path / "run", scores, tables, METRICS, {"status": "completed"}))
    summary = diagnose_run(folder, [resolve("key_point_recall").request()])
    assert summary.key_points == {"points": 4, "index": 1, "generator": 1, "unknown": 1}
    line = key_points_line(summary)
    assert line == "1 of 4 key points are stated; 1 is a fault of the index, 1 of the generator, 1 of an unknown part"
    stored = {row["row_id"]: row["lost_points"] for row in pq.read_table(folder.path / DIAGNOSIS).to_pylist()}
    assert stored["row-1"] == [
        {"claim_id": "key_point:0", "part": "index"},
        {"claim_id": "key_point:1", "part": "generator"},
    ]
    assert stored["row-3"] is None


def test_a_run_without_diagnoses_has_a_report_without_them(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run")
    assert read_row_diagnoses(folder.path, None, ["row-0"]) == {}
    page = write_report(folder.path).read_text()
    assert 'id="diagnosis"' not in page
    assert 'id="diagnosis-filter"' not in page


def test_the_class_of_a_metric_has_its_meaning_in_the_summary_and_on_the_page(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", rows=4, unsupported=1)
    shouted = parse_metric("tests.tasks.plugins.sample_plugins:SHOUTED")
    summary = diagnose_run(folder, [*REQUESTS, shouted])
    assert counts_of(summary) == {"shouted": 1, "answered": 2, UNDIAGNOSED: 1}
    (found,) = (each for each in summary.classes if each.name == "shouted")
    assert (found.part, found.is_lost, found.meaning) == ("generator", True, "The response shouts.")
    view = diagnosis_view(summary)
    assert view is not None
    assert [each["meaning"] for each in view["classes"] if each["name"] == "shouted"] == ["The response shouts."]
    assert read_row_diagnoses(folder.path, summary, ["row-0"])["row-0"]["name"] == "shouted"
    assert diagnosis_line(summary) == "2 of 4 answers are good; 1 is a fault of the generator; 1 undiagnosed"
