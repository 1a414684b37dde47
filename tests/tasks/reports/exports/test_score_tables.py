"""The scores of a run in the shapes and formats of other programs."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from metric_core.errors import ConfigError, RunFolderError
from tasks.documents.run.run_table import SHOWN_ROWS, RunTable
from tasks.reports.exports.score_tables import (
    Format,
    Shape,
    guess_format,
    list_failed_cells,
    parse_format,
    parse_shape,
    reshape,
    write_export,
)
from tests.tasks.reports import folders


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return folders.write_hostile_run(tmp_path_factory.mktemp("exports") / "run")


def csv_table(path: Path) -> pa.Table:
    return pa_csv.read_csv(path, parse_options=pa_csv.ParseOptions(newlines_in_values=True))


def test_long_is_the_score_table(run: Path) -> None:
    assert reshape(run, Shape.LONG).equals(pq.read_table(run / "scores.parquet"))


def test_wide_has_a_column_per_metric_and_null_without_a_value(run: Path) -> None:
    rows = {row["row_id"]: row for row in reshape(run, Shape.WIDE).to_pylist()}
    assert list(rows["good"]) == ["row_id", *folders.METRICS]
    assert (rows["good"]["faithfulness"], rows["good"]["context_entity_recall"]) == (1.0, 0.5)
    assert rows["empty"]["faithfulness"] is None
    assert rows[folders.HOSTILE_ID]["house_style"] == folders.ATTACK


def test_ragas_has_the_texts_under_its_names(run: Path) -> None:
    row = reshape(run, Shape.RAGAS).to_pylist()[0]
    texts = ["user_input", "retrieved_contexts", "response", "reference"]
    assert list(row) == ["row_id", *texts, *folders.METRICS]
    assert row["retrieved_contexts"][1] == "Marble is white."


def test_failed_cells_come_with_their_reasons(run: Path) -> None:
    found = {(row["row_id"], row["metric"]): row["reason"] for row in list_failed_cells(run).to_pylist()}
    assert found == {
        ("empty", "faithfulness"): "no usable reply from the judge",
        ("empty", "house_style"): folders.ATTACK,
    }


@pytest.mark.parametrize("file_format", list(Format))
@pytest.mark.parametrize("shape", [Shape.LONG, Shape.WIDE, Shape.RAGAS])
def test_every_shape_is_written_in_every_format(run: Path, tmp_path: Path, shape: Shape, file_format: Format) -> None:
    target = tmp_path / f"scores.{file_format}"
    table = reshape(run, shape)
    write_export(table, target, file_format)
    if file_format is Format.PARQUET:
        assert pq.read_table(target).equals(table)
    elif file_format is Format.JSONL:
        assert [json.loads(line) for line in target.read_bytes().splitlines()] == table.to_pylist()
    else:
        read = csv_table(target)
        assert read["row_id"].to_pylist() == table["row_id"].to_pylist()
        assert read.column_names == table.column_names
    assert not list(tmp_path.glob("*.tmp"))


def test_lists_are_json_in_csv(run: Path, tmp_path: Path) -> None:
    write_export(reshape(run, Shape.RAGAS), tmp_path / "scores.csv", Format.CSV)
    contexts = csv_table(tmp_path / "scores.csv")["retrieved_contexts"].to_pylist()
    assert json.loads(contexts[0])[1] == "Marble is white."


def test_a_name_that_says_no_format_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"end it with one of \.csv, \.jsonl, \.parquet"):
        guess_format(Path("scores.xlsx"))


def test_a_folder_that_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RunFolderError, match="is not a run folder: it has no run"):
        reshape(tmp_path, Shape.LONG)


def test_unwritable_path_is_refused(run: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(RunFolderError, match="cannot be written"):
        write_export(reshape(run, Shape.LONG), tmp_path / "file" / "scores.csv", Format.CSV)


def test_a_folder_that_is_not_there_is_made(run: Path, tmp_path: Path) -> None:
    write_export(reshape(run, Shape.LONG), tmp_path / "new" / "folder" / "scores.csv", Format.CSV)
    assert (tmp_path / "new" / "folder" / "scores.csv").exists()


def test_a_wrong_name_of_a_shape_or_format_is_answered_with_a_right_one() -> None:
    with pytest.raises(
        ConfigError, match=r"a shape is one of long, wide, ragas, langfuse, langsmith, got 'wid'\. Did you mean wide\?"
    ):
        parse_shape("wid")
    with pytest.raises(ConfigError, match="a format is one of csv, jsonl, parquet, got 'json'"):
        parse_format("json")


def test_a_table_shows_its_first_rows_and_escapes_them() -> None:
    table = RunTable(pa.table({"text": [folders.ATTACK] * 12, "value": [0.5] * 12}))
    shown = table._repr_html_()
    assert shown.count("<tr ") == SHOWN_ROWS + 1
    assert "<script" not in shown
    assert "0.500" in shown
    assert "10 of 12 rows" in shown


def test_a_table_becomes_what_other_libraries_work_with() -> None:
    table = RunTable(pa.table({"value": [0.5, None]}))
    assert table.to_pandas()["value"].isna().tolist() == [False, True]
    assert table.to_arrow().num_rows == len(table) == 2
    assert list(table) == [{"value": 0.5}, {"value": None}]
    assert repr(table) == "RunTable(2 rows: value)"
