"""Files of a run folder that are damaged or come from another program: every verb names the file and what is wrong."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from flows.execution.rerun_plan import parse_rerun_request, prepare_rerun
from flows.results.gated_comparison import CompareOptions, compare_runs
from metric_core.errors import RunFolderError
from metric_core.schemas import CLAIMS, SCORES
from metric_core.stages import Stage
from tasks.reports.exports.score_tables import Shape, list_failed_cells, reshape
from tasks.reports.run.report_page import write_report
from tasks.runs.file_checks import check_table
from tests.tasks import compared

READERS: dict[str, Callable[[Path], object]] = {
    "compare": lambda run: compare_runs(run, run, CompareOptions()),
    "report": write_report,
    "export": lambda run: reshape(run, Shape.WIDE),
    "failed": list_failed_cells,
    "rerun": lambda run: prepare_rerun(parse_rerun_request(run=str(run), rows="all")),
}


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return compared.write_run(tmp_path / "run", 0.8)


def change(run: Path, name: str, **columns: Any) -> None:
    """Replace columns of a table; None removes one."""
    table = pq.read_table(run / name)
    for column, values in columns.items():
        index = table.column_names.index(column)
        if values is None:
            table = table.remove_column(index)
        elif isinstance(values, pa.DataType):
            table = table.set_column(index, column, pa.nulls(len(table), values))
        else:
            cells = [*values, *table[column].to_pylist()[len(values) :]]
            table = table.set_column(index, table.field(index), pa.array(cells, table.field(index).type))
    pq.write_table(table, run / name)


CELLS: dict[str, tuple[dict[str, Any], str]] = {
    "NaN": ({"value": [math.nan]}, "a cell has a value that is not finite: .*'row_id': 'row-00'.*nan"),
    "infinity": ({"value": [0.5, math.inf]}, "a cell has a value that is not finite"),
    "status": ({"status": ["done"]}, "a cell has an unknown status: .*'done'"),
    "no value": ({"value": [None]}, "a cell has a status that contradicts its value"),
    "value of an undefined cell": ({"status": ["undefined"]}, "a cell has a status that contradicts its value"),
    "two cells": ({"metric": ["noise_sensitivity"]}, "the row 'row-00' has 2 cells of noise_sensitivity, wanted one"),
    "type": ({"value": pa.string()}, "its column value holds string, wanted double"),
    "column": ({"status": None}, "it has no column status"),
}


@pytest.mark.parametrize(("columns", "message"), CELLS.values(), ids=CELLS.keys())
@pytest.mark.parametrize("reader", ["compare", "report", "export", "failed"])
def test_scores_that_are_not_ours_are_refused(run: Path, columns: Any, message: str, reader: str) -> None:
    change(run, "scores.parquet", **columns)
    with pytest.raises(RunFolderError, match=rf"scores.parquet cannot be read: .*{message}"):
        READERS[reader](run)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"response": pa.int64()}, "its column response holds int64, wanted string"),
        ({"retrieved_contexts": pa.string()}, "its column retrieved_contexts holds string, wanted list"),
        ({"extras": None}, "it has no column extras"),
    ],
)
@pytest.mark.parametrize("reader", ["compare", "report", "export"])
def test_samples_that_are_not_ours_are_refused(run: Path, columns: Any, message: str, reader: str) -> None:
    change(run, "stages/samples.parquet", **columns)
    with pytest.raises(RunFolderError, match=rf"samples.parquet cannot be read: .*{message}"):
        READERS[reader](run)


@pytest.mark.parametrize(
    ("entry", "value", "message"),
    [
        ("metrics", None, "metrics: Input should be a valid tuple, got None"),
        ("metrics", [{"key": "a"}], r"metrics.0.name: Field required"),
        ("stages", {"cooking": {}}, "stages.cooking.*: Input should be 'samples', .*, got 'cooking'"),
        ("judge", "builtin", "judge: Input should be a dictionary .*, got 'builtin'"),
        ("rows", "many", "rows: Input should be a valid integer, .*, got 'many'"),
        ("versions", {"rag-assay": 1}, "versions.rag-assay: Input should be a valid string, got 1"),
        ("config", [], r"config: Input should be a valid dictionary .*, got \[\]"),
    ],
)
@pytest.mark.parametrize("reader", READERS)
def test_a_manifest_that_is_not_ours_is_refused(run: Path, entry: str, value: Any, message: str, reader: str) -> None:
    path = run / "run.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {entry: value}))
    with pytest.raises(RunFolderError, match=f"run.json cannot be read: {message}"):
        READERS[reader](run)


@pytest.mark.parametrize("reader", ["compare", "report", "export", "failed"])
def test_a_run_that_compares_no_vectors_has_no_embedder(run: Path, reader: str) -> None:
    path = run / "run.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"embedder": None}))
    READERS[reader](run)


@pytest.mark.parametrize("name", ["run.json", "summary.json", "scores.parquet", "stages/samples.parquet"])
@pytest.mark.parametrize("content", [b"", b"PAR1", b"[" * 100_000, None], ids=["empty", "start", "deep", "folder"])
def test_a_damaged_file_is_named(run: Path, name: str, content: bytes | None) -> None:
    (run / name).unlink()
    if content is None:
        (run / name).mkdir()
    else:
        (run / name).write_bytes(content)
    with pytest.raises(RunFolderError, match=name):
        write_report(run)
    if name != "summary.json":
        with pytest.raises(RunFolderError, match=name):
            compare_runs(run, run, CompareOptions())


def test_a_summary_that_is_not_ours_is_refused(run: Path) -> None:
    (run / "summary.json").write_text('{"rows": 40, "metrics": [{"metric": "faithfulness"}]}')
    with pytest.raises(RunFolderError, match=r"summary.json cannot be read: metrics\.0\.direction: Field required"):
        write_report(run)


def test_a_table_without_a_column_or_of_another_version_is_refused() -> None:
    absent = next(field for field in CLAIMS.fields if field.name not in CLAIMS.optional)
    fields = [field for field in CLAIMS.fields if field is not absent]
    with pytest.raises(RunFolderError, match=f"no column {absent.name}"):
        check_table(pa.schema(fields, {"assay.version": str(CLAIMS.version)}), Stage.CLAIMS, Path("claims.parquet"))
    with pytest.raises(RunFolderError, match="has schema version 99, this rag-assay reads"):
        check_table(SCORES.arrow.with_metadata({"assay.version": "99"}), Stage.AGGREGATION, Path("scores.parquet"))
