"""Changes of the diagnoses between two runs, and their causes."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from flows.monitoring.gating import GatedRun
from flows.results.gated_comparison import CompareOptions, compare_runs
from metric_core.errors import RunFolderError
from metric_core.records import Score
from metric_core.stages import Stage
from tasks.comparison.run_comparison import RunComparison
from tasks.findings.diagnosis.diagnosis_changes import DiagnosisCause, DiagnosisChanges, describe_changes
from tasks.findings.diagnosis.diagnosis_counts import DiagnosisCounts, RefusalCounts
from tasks.reports.comparison.comparison_document import comparison_markdown
from tasks.reports.comparison.comparison_page import comparison_page
from tasks.runs.run_folder import DIAGNOSIS, RunFolder
from tests.tasks import compared
from tests.tasks.reports import folders

METRICS = {"faithfulness": compared.METRICS["faithfulness"]}
ROW = {"user_input": "Why?", "response": "So.", "retrieved_contexts": ["A."], "reference": "So."}
OTHER_PASSAGE, OTHER_ANSWER, OTHER_TEST = {"retrieved_contexts": ["B."]}, {"response": "No."}, {"reference": "No."}

DIAGNOSED = DiagnosisCounts(
    rows=1, classes=(), reasons={}, lacking={}, refusals=RefusalCounts(rows=0, recognized_by="forms")
)
"""Entry of a run with diagnoses; their comparison reads the table."""


def write_run(folder: Path, diagnoses: list[str | None], changes: list[dict[str, Any]]) -> Path:
    samples = [{"row_id": f"row-{i}", "row_number": i, **ROW, **changed} for i, changed in enumerate(changes, start=1)]
    scores = {sample["row_id"]: {"faithfulness": Score.scored(0.5)} for sample in samples}
    folders.write_run(folder, scores, {Stage.SAMPLES: samples}, METRICS, {"status": "completed"})
    table = pa.table({"row_id": [sample["row_id"] for sample in samples], "diagnosis": diagnoses})
    pq.write_table(table, folder / DIAGNOSIS)
    run = RunFolder(folder)
    run.write_summary(run.read_summary().with_findings(DIAGNOSED))
    return folder


def compare(tmp_path: Path, rows: list[tuple[str | None, str | None, dict[str, Any]]]) -> RunComparison:
    a = write_run(tmp_path / "a", [before for before, _, _ in rows], [{} for _ in rows])
    b = write_run(tmp_path / "b", [after for _, after, _ in rows], [changed for _, _, changed in rows])
    return compare_runs(a, b, CompareOptions())


def changes_of(tmp_path: Path, *rows: tuple[str | None, str | None, dict[str, Any]]) -> DiagnosisChanges:
    found = compare(tmp_path, list(rows)).find(DiagnosisChanges)
    assert found is not None
    return found


def points_of(**parts: str | None) -> list[dict[str, str | None]]:
    return [{"claim_id": point, "part": part} for point, part in parts.items()]


def test_key_points_are_lost_by_the_index_the_generator_the_judge_or_the_test(tmp_path: Path) -> None:
    changed: list[dict[str, Any]] = [
        OTHER_PASSAGE | OTHER_ANSWER,
        OTHER_ANSWER,
        {},
        OTHER_TEST,
        OTHER_ANSWER,
        OTHER_ANSWER,
    ]
    before = [points_of(a="index"), points_of(b="generator"), points_of(), points_of(), None, points_of()]
    after = [
        points_of(a="index", b="index", c="generator"),
        points_of(a=None),
        points_of(a="index"),
        points_of(a="index"),
        points_of(a="index"),
        points_of(a="index"),
    ]
    for name, changes, points in (("a", [dict[str, Any]()] * 6, before), ("b", changed, after)):
        run = write_run(tmp_path / name, ["answered"] * 6, changes)
        table = pq.read_table(run / DIAGNOSIS)
        point = pa.struct([("claim_id", pa.string()), ("part", pa.string())])
        table = table.append_column("lost_points", pa.array(points, pa.list_(point)))
        asked = ["same"] * 6 if name == "a" else [*["same"] * 5, "other"]  # the last row has points of another text
        pq.write_table(table.append_column("points_digest", pa.array(asked)), run / DIAGNOSIS)
    comparison = compare_runs(tmp_path / "a", tmp_path / "b", CompareOptions())
    found = comparison.find(DiagnosisChanges)
    assert found is not None
    assert found.lost_points == {
        DiagnosisCause.INDEX: 1,
        DiagnosisCause.GENERATOR: 2,
        DiagnosisCause.JUDGE: 1,
    }
    assert found.regained_points == {DiagnosisCause.GENERATOR: 1}
    assert describe_changes(found) == (
        "No answer was lost or regained. The index lost 1 key point, the generator 2, the judge no longer accepts 1; "
        "the generator regained 1."
    )
    assert GatedRun(comparison=comparison).notes == (describe_changes(found),)


@pytest.mark.parametrize(
    ("classes", "changed", "cause", "is_loss"),
    [
        (("answered", "passage missing"), OTHER_PASSAGE, DiagnosisCause.INDEX, True),
        (("answered", "passage missing"), OTHER_PASSAGE | OTHER_ANSWER, DiagnosisCause.INDEX, True),
        (("answered", "passage missing"), OTHER_ANSWER, DiagnosisCause.GENERATOR, True),
        (("answered", "contradicted"), OTHER_PASSAGE | OTHER_ANSWER, DiagnosisCause.GENERATOR, True),
        (("answered", "contradicted"), OTHER_PASSAGE, DiagnosisCause.INDEX, True),
        (("badly ranked", "unsupported"), OTHER_ANSWER, DiagnosisCause.GENERATOR, True),
        (("passage missing", "answered"), OTHER_PASSAGE | OTHER_ANSWER, DiagnosisCause.INDEX, False),
        (("over-refused", "answered"), OTHER_ANSWER, DiagnosisCause.GENERATOR, False),
        (("answered", "unsupported"), {}, DiagnosisCause.JUDGE, True),
        (("answered", "unsupported"), OTHER_TEST | OTHER_ANSWER, DiagnosisCause.TEST, True),
        (("answered", "badly ranked"), OTHER_PASSAGE, DiagnosisCause.INDEX, None),
        (("answered", None), OTHER_ANSWER, DiagnosisCause.GENERATOR, None),
        (("unsupported", "contradicted"), OTHER_ANSWER, DiagnosisCause.GENERATOR, None),
    ],
)
def test_what_changed_the_diagnosis(
    tmp_path: Path,
    classes: tuple[str, str | None],
    changed: dict[str, Any],
    cause: DiagnosisCause,
    is_loss: bool | None,
) -> None:
    [change] = changes_of(tmp_path, (*classes, changed), ("answered", "answered", {})).changes
    assert (change.cause, change.is_loss, change.rows) == (cause, is_loss, ("row-1",))


def test_losses_are_counted_by_cause(tmp_path: Path) -> None:
    lost = [("answered", "passage missing", OTHER_PASSAGE)] * 14 + [("answered", "unsupported", OTHER_ANSWER)] * 2
    found = changes_of(tmp_path, *lost, ("over-refused", "answered", OTHER_ANSWER))
    assert found.lost == {DiagnosisCause.INDEX: 14, DiagnosisCause.GENERATOR: 2}
    assert found.is_clear
    assert describe_changes(found) == "The index lost 14 answers, the generator 2; the generator regained 1."
    assert (found.a["answered"], found.b["passage missing"], found.rows) == (16, 14, 17)


def test_a_monitored_run_tells_of_lost_answers_only(tmp_path: Path) -> None:
    lost = GatedRun(comparison=compare(tmp_path / "lost", [("answered", "passage missing", OTHER_PASSAGE)]))
    assert lost.notes == ("The index lost 1 answer. So few changes may be chance.",)
    regained = GatedRun(comparison=compare(tmp_path / "regained", [("over-refused", "answered", OTHER_ANSWER)]))
    assert regained.notes == ()
    assert GatedRun().notes == ()


def test_page_and_markdown_show_changes(tmp_path: Path) -> None:
    comparison = compare(tmp_path, [("answered", "passage missing", OTHER_PASSAGE), ("answered", "answered", {})])
    page, text = comparison_page(comparison), comparison_markdown(comparison)
    assert "The index lost 1 answer." in page
    assert 'href="#row-row-1"' in page
    assert 'id="row-row-1"' in page
    assert "| answered | 🔴 passage missing | index | 1 | `row-1` |" in text


def test_a_run_of_an_earlier_version_has_no_changes(tmp_path: Path) -> None:
    a = write_run(tmp_path / "a", ["answered"], [{}])
    b = write_run(tmp_path / "b", ["unsupported"], [OTHER_ANSWER])
    (a / DIAGNOSIS).unlink()
    comparison = compare_runs(a, b, CompareOptions())
    assert comparison.find(DiagnosisChanges) is None
    assert "Diagnosis" not in comparison_markdown(comparison)
    assert 'id="diagnosis"' not in comparison_page(comparison)


def test_a_damaged_table_is_named(tmp_path: Path) -> None:
    a, b = (write_run(tmp_path / name, ["answered"], [{}]) for name in "ab")
    (b / DIAGNOSIS).write_bytes(b"no parquet")
    with pytest.raises(RunFolderError, match=r"the diagnoses .*diagnosis\.parquet cannot be read"):
        compare_runs(a, b, CompareOptions())
