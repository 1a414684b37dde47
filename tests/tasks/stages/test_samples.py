"""The stage `samples`: shards, and what the manifest says of rows that were left out."""

from pathlib import Path

import pytest

from metric_core.errors import ConfigError
from tasks.record.run_record import BadRowNote
from tasks.runs import row_slicing
from tasks.stages.samples import SamplesSettings, read_shards
from tests.tasks.sources.helpers import write_lines


def test_notes_of_bad_rows_add_to_their_number(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    write_lines(logs / "1.jsonl", [{"response": "a"}, {"response": "b"}])
    write_lines(logs / "2.jsonl", ["", {"response": 5}, {"response": "c"}])
    (tmp_path / "log.csv").write_text('response\n"two\nlines"\na,b\n')
    several = SamplesSettings(source=f"{logs}/*.jsonl", on_bad_row="skip", shard_rows=2)
    result = read_shards(several, str(tmp_path / "tables"))
    assert [ref.rows for ref in result.refs] == [2, 1]
    assert result.bad_rows == (
        BadRowNote(number=3, column="response", problem="got the number 5, wanted a text (2.jsonl, line 2)"),
    )
    one = SamplesSettings(source=str(logs / "2.jsonl"), on_bad_row="skip")
    assert [note.problem for note in read_shards(one, str(tmp_path)).bad_rows] == ["got the number 5, wanted a text"]
    cells = SamplesSettings(source=str(tmp_path / "log.csv"), on_bad_row="skip")
    assert [note.problem for note in read_shards(cells, str(tmp_path)).bad_rows] == [
        "got 2 cells, wanted 1 as in the header (line 4)"
    ]


def test_columns_that_slice_rows_are_checked_when_rows_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_slicing, "MAX_SLICES", 3)
    write_lines(tmp_path / "log.jsonl", [{"response": f"{i}", "topic": f"t{i % 7}"} for i in range(20)])
    settings = SamplesSettings(source=str(tmp_path / "log.jsonl"), slices=("topic",))
    [warning] = read_shards(settings, str(tmp_path / "tables")).warnings
    assert warning.startswith("topic has 7 values, wanted at most 3 slices")
    with pytest.raises(ConfigError, match="rows cannot be sliced by topics: there is no column 'topics'"):
        read_shards(settings.model_copy(update={"slices": ("topics",)}), str(tmp_path / "tables"))
