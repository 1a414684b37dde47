"""Data in memory becomes a file once, and reads like the object itself."""

from pathlib import Path
from typing import Any

import datasets
import pandas as pd
import pyarrow as pa
import pytest
from datasets import Dataset

from metric_core.errors import AssayError, SourceError
from tasks.sources import SourceOptions, available_columns, read_samples
from tasks.sources.in_memory import save_dataset, save_rows

COLUMNS = {"question": ["Why?", "Who?"], "answer": ["Because.", "Me."], "contexts": [["a", "b"], []]}

ROWS: list[dict[str, Any]] = [
    {"user_input": "Where?", "response": "In Delft.", "retrieved_contexts": ["Bikes are sold in Delft."]},
    {"user_input": "When?", "response": "At nine.", "retrieved_contexts": []},
]


@pytest.mark.parametrize("made", [list, tuple, pd.DataFrame, pa.Table.from_pylist, datasets.Dataset.from_list])
def test_data_of_every_kind_can_be_read_again(tmp_path: Path, made: Any) -> None:
    path = save_rows(made(ROWS), str(tmp_path))
    assert set(available_columns(path, SourceOptions())) == set(ROWS[0])


def test_equal_data_is_saved_once(tmp_path: Path) -> None:
    assert save_rows(ROWS, str(tmp_path)) == save_rows([dict(row) for row in ROWS], str(tmp_path))
    assert save_rows(ROWS[:1], str(tmp_path)) != save_rows(ROWS, str(tmp_path))


def test_rows_may_differ_in_their_keys(tmp_path: Path) -> None:
    path = save_rows([{"response": "Yes."}, {"response": "No.", "reference": "No."}], str(tmp_path))
    assert set(available_columns(path, SourceOptions())) == {"response", "reference"}


@pytest.mark.parametrize("data", [3, [1, 2], {"response": "Yes."}])
def test_anything_else_is_refused_with_what_is_wanted(tmp_path: Path, data: Any) -> None:
    with pytest.raises(SourceError, match="give a path, a list of dicts, a pandas data frame"):
        save_rows(data, str(tmp_path))


def test_rows_that_no_file_can_hold_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="cannot be written to a file"):
        save_rows([{"response": object()}], str(tmp_path))


def test_a_saved_data_set_reads_like_the_object(tmp_path: Path) -> None:
    dataset = Dataset.from_dict(COLUMNS)
    path = save_dataset(dataset, str(tmp_path))
    of_file = [table.to_pylist() for table in read_samples(path, SourceOptions(), {})]
    of_object = [table.to_pylist() for table in read_samples(dataset, SourceOptions(), {})]
    assert of_file == of_object
    assert of_file[0][1]["retrieved_contexts"] == []


def test_an_equal_data_set_is_saved_once(tmp_path: Path) -> None:
    dataset = Dataset.from_dict(COLUMNS)
    assert save_dataset(dataset, str(tmp_path)) == save_dataset(dataset, str(tmp_path))
    assert save_dataset(dataset.select([0]), str(tmp_path)) != save_dataset(dataset, str(tmp_path))
    assert len(list((tmp_path / "sources").iterdir())) == 2


def test_a_data_set_that_does_not_fit_on_the_disk_is_a_message_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: Dataset, file: Any) -> None:
        file.write(b"a part")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Dataset, "to_parquet", full)
    with pytest.raises(AssayError, match=r"cannot be written: .*No space left"):
        save_dataset(Dataset.from_dict(COLUMNS), str(tmp_path))
    assert list((tmp_path / "sources").iterdir()) == []


class _Streamed:
    """A table of a library that exports Arrow streams, as polars and DuckDB do."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return pa.Table.from_pylist(ROWS).__arrow_c_stream__(requested_schema)


def test_a_table_that_exports_an_arrow_stream_is_read(tmp_path: Path) -> None:
    assert save_rows(_Streamed(), str(tmp_path)) == save_rows(pa.Table.from_pylist(ROWS), str(tmp_path))
