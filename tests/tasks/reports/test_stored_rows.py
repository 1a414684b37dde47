"""Rows of tables that belong to some samples."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from metric_core.errors import RunFolderError
from metric_core.schemas import SCHEMAS
from metric_core.stages import Stage
from tasks.reports.run import stored_rows
from tasks.reports.run.row_tables import read_row_tables
from tasks.reports.run.stored_rows import StoredRows
from tests.tasks.reports import folders


def write_questions(path: Path, row_ids: list[str], group_size: int = 3) -> None:
    """Write a table with a question per id, in row groups."""
    rows = [{"row_id": row_id, "k": k, "status": "answered"} for k, row_id in enumerate(row_ids)]
    folders.write_table(path, Stage.QUESTIONS, rows)
    pq.write_table(pq.read_table(path), path, row_group_size=group_size)


def numbers(rows: list[list[Any]]) -> list[list[int]]:
    return [[row["k"] for row in of_sample] for of_sample in rows]


@given(st.lists(st.sampled_from("abcdef"), max_size=12), st.permutations("abcx"), st.integers(0, 4), st.integers(0, 4))
def test_rows_come_in_the_order_of_the_samples(
    tmp_path_factory: pytest.TempPathFactory, stored: list[str], wanted: list[str], start: int, count: int
) -> None:
    path = tmp_path_factory.mktemp("rows") / "questions.parquet"
    write_questions(path, stored)
    rows = StoredRows.read(path, Stage.QUESTIONS, wanted)
    expected = [[k for k, found in enumerate(stored) if found == row_id] for row_id in wanted]
    assert numbers(rows.of_samples(0, 4)) == expected
    assert numbers(rows.of_samples(start, min(start + count, 4))) == expected[start : start + count]


@pytest.mark.parametrize("most_bytes", [1 << 30, 0])
def test_values_are_those_of_the_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most_bytes: int) -> None:
    monkeypatch.setattr(stored_rows, "_MOST_BYTES", most_bytes)
    path = folders.write_large_run(tmp_path / "run", rows=7) / "stages" / "samples.parquet"
    ids = [f"row-{number}" for number in range(7)]
    rows = [row for of_sample in StoredRows.read(path, Stage.SAMPLES, ids).of_samples(0, 7) for row in of_sample]
    assert [row["row_number"] for row in rows] == [1, 2, 3, 4, 5, 6, 7]
    for row, stored in zip(rows, pq.read_table(path).to_pylist(), strict=True):
        assert {name: row[name] for name in stored} == stored
        assert row.keys() == set(SCHEMAS[Stage.SAMPLES].arrow.names)


def test_only_row_groups_that_hold_rows_are_read(tmp_path: Path) -> None:
    path = tmp_path / "questions.parquet"
    write_questions(path, [f"row-{number}" for number in range(12)])
    damage_row_group(path, 1)
    assert numbers(StoredRows.read(path, Stage.QUESTIONS, ["row-11", "row-2", "row-6"]).of_samples(0, 3)) == [
        [11],
        [2],
        [6],
    ]
    with pytest.raises(RunFolderError, match="cannot be read"):
        StoredRows.read(path, Stage.QUESTIONS, ["row-3"])


def damage_row_group(path: Path, group: int) -> None:
    """Overwrite the status of the rows of a row group."""
    with pq.ParquetFile(path) as file:
        column = file.metadata.row_group(group).column(file.schema_arrow.get_field_index("status"))
    with path.open("r+b") as raw:
        raw.seek(column.dictionary_page_offset or column.data_page_offset)
        raw.write(b"\xff" * column.total_compressed_size)


def test_a_table_that_was_not_needed_has_no_rows(tmp_path: Path) -> None:
    assert StoredRows.read(tmp_path / "ratings.parquet", Stage.RATINGS, ["a", "b"]).of_samples(0, 2) == [[], []]


@pytest.mark.parametrize("stage", [Stage.SAMPLES, Stage.VERDICTS, Stage.RATINGS])
def test_every_column_can_hold_large_tables(stage: Stage) -> None:
    schema = SCHEMAS[stage].arrow
    large = pa.schema([field.with_type(stored_rows._with_large_offsets(field.type)) for field in schema])
    assert schema.empty_table().cast(large).schema == large
    assert "string" not in str(large.types).replace("large_string", "")


def test_the_tables_of_many_samples_are_read_in_order(tmp_path: Path) -> None:
    folder = folders.write_large_run(tmp_path / "run", rows=100)
    ids = [f"row-{number}" for number in reversed(range(100))]
    tables = list(read_row_tables(folder, ids))
    assert [table.sample["row_id"] for table in tables] == ids
    for table in tables:
        assert {cell["row_id"] for cell in table.cells} == {table.sample["row_id"]}
        for rows in table.stages.values():
            assert {row["row_id"] for row in rows} <= {table.sample["row_id"]}
