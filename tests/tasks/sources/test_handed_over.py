"""Data handed over as an object."""

from pathlib import Path
from typing import Any

import datasets
import pandas as pd
import pyarrow as pa
import pytest

from metric_core.errors import SourceError
from tasks.sources import SourceOptions, available_columns
from tasks.sources.handed_over import save_rows

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
    with pytest.raises(SourceError, match="can not be written to a file"):
        save_rows([{"response": object()}], str(tmp_path))
