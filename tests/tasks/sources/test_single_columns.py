"""Single columns of a source: found by the ids that rows have in a run."""

import json
from pathlib import Path
from typing import Any

import pytest

from metric_core.errors import SourceError
from tasks.sources import SourceOptions
from tasks.sources.single_columns import read_columns


def write(folder: Path, *rows: Any) -> str:
    path = folder / "rows.jsonl"
    path.write_text("\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows), encoding="utf-8")
    return str(path)


def test_cells_come_by_row_id_and_bad_rows_are_left_out(tmp_path: Path) -> None:
    source = write(tmp_path, {"id": "a", "answer": "Yes.", "good": 1}, "{broken", {"id": "b", "answer": "", "more": 2})
    found = read_columns(source, SourceOptions(), ["good", "more"])
    assert found == {"good": {"a": 1, "b": None}, "more": {"a": None, "b": 2}}


def test_a_sample_column_is_found_by_its_name_in_samples(tmp_path: Path) -> None:
    found = read_columns(write(tmp_path, {"id": "a", "answer": "Yes."}), SourceOptions(), ["response"])
    assert found == {"response": {"a": "Yes."}}


def test_a_column_that_nobody_has_filled_in_is_named_as_such(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("id,response,label\na,Yes.,\nb,No.,\n", encoding="utf-8")
    with pytest.raises(SourceError, match=r"^the column 'label' is empty in every row: fill it in$"):
        read_columns(str(tmp_path / "rows.csv"), SourceOptions(), ["label"])


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("godo", "Did you mean 'good'"),
        ("xyz", "Besides the sample columns it has: 'good'"),
        ("reference", "the data has no column 'reference'"),
    ],
)
def test_the_message_for_a_missing_column_lists_the_others(tmp_path: Path, name: str, words: str) -> None:
    with pytest.raises(SourceError, match=words):
        read_columns(write(tmp_path, {"answer": "Yes.", "good": 1}), SourceOptions(), [name])
