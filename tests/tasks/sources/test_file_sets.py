"""Several files as one source: a folder of them, or those that a pattern matches, here and by URL."""

import gzip
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import feather

from metric_core.errors import BadRowsError, SourceError
from tasks.sources import SourceOptions, available_columns, read_samples
from tasks.sources.readers.json_document import JsonDocumentSource
from tests.tasks.sources.helpers import column, read, write_lines

Row = Mapping[str, Any]

NEEDED = {"any": ("response",)}


def _rows(*names: str) -> list[dict[str, str]]:
    return [{"id": name, "response": f"answer {name}"} for name in names]


def _lines(rows: Sequence[Row]) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def _write(path: Path, rows: Sequence[Row]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    table = pa.Table.from_pylist(rows)
    suffix = path.name.partition(".")[2]
    if suffix == "parquet":
        pq.write_table(table, path)
    elif suffix in ("arrow", "feather"):
        feather.write_feather(table, str(path))
    elif suffix in ("csv", "tsv"):
        tab = "," if suffix == "csv" else "\t"
        path.write_text("\n".join([tab.join(rows[0]), *(tab.join(row.values()) for row in rows)]) + "\n")
    elif suffix == "json":
        path.write_text(json.dumps(rows, indent=1))
    else:
        path.write_bytes(gzip.compress(_lines(rows)) if suffix.endswith("gz") else _lines(rows))


@pytest.fixture(params=["here", "by URL"])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Return a folder for files, on disk or in memory."""
    yield str(tmp_path) if request.param == "here" else f"memory://{tmp_path.name}"
    memory = fsspec.filesystem("memory")
    if memory.exists(tmp_path.name):
        memory.rm(tmp_path.name, recursive=True)


def _put(root: str, **files: Sequence[Row]) -> None:
    """Write JSON Lines files; a name has __ for each slash."""
    for name, rows in files.items():
        with fsspec.open(f"{root}/{name.replace('__', '/')}.jsonl", "wb", auto_mkdir=True) as file:
            file.write(_lines(rows))


def _message(source: object) -> str:
    with pytest.raises(SourceError) as caught:
        list(read_samples(source, SourceOptions(), NEEDED))
    return str(caught.value)


@pytest.mark.parametrize("ending", ["", "/", "/*", "/part-*.jsonl", "/part-?.jsonl", "/part-[0-9]*.jsonl", "/**"])
def test_files_are_one_source_in_the_order_of_their_names(ending: str, root: str) -> None:
    _put(root, **{"part-10": _rows("c"), "part-9": _rows("a", "b")})
    reader, table = read(f"{root}{ending}", NEEDED)
    wanted = ["a", "b"] if "?" in ending else ["a", "b", "c"]
    assert column(table, "row_id") == wanted
    assert column(table, "row_number") == list(range(1, len(wanted) + 1))
    assert reader.rows_read == len(wanted)
    assert reader.warnings == []
    assert available_columns(f"{root}{ending}", SourceOptions()) == ("response",)


def test_a_pattern_of_folders_takes_the_files_in_them(root: str) -> None:
    _put(root, **{"day=10__p": _rows("c"), "day=9__p": _rows("a"), "day=9__q": _rows("b"), "top": _rows("z")})
    _, table = read(f"{root}/day=*/*.jsonl", NEEDED)
    assert column(table, "row_id") == ["a", "b", "c"]
    assert column(table, "extras") == [None, None, None]
    assert column(read(f"{root}/**/*.jsonl", NEEDED)[1], "row_id") == ["a", "b", "c", "z"]
    assert column(read(f"{root}/*.jsonl", NEEDED)[1], "row_id") == ["z"]
    assert column(read(root, NEEDED)[1], "row_id") == ["a", "b", "c", "z"]


@pytest.mark.parametrize("suffix", ["jsonl", "ndjson", "json", "jsonl.gz", "csv", "tsv", "parquet", "arrow", "feather"])
@pytest.mark.parametrize("ending", ["", "/*"])
def test_every_format_may_be_in_several_files(ending: str, suffix: str, tmp_path: Path) -> None:
    _write(tmp_path / f"1.{suffix}", _rows("a", "b", "c"))
    _write(tmp_path / f"2.{suffix}", _rows("d"))
    source = f"{tmp_path}{ending}"
    reader = read_samples(source, SourceOptions(batch_rows=2), NEEDED)
    tables = list(reader)
    assert [table.num_rows for table in tables] == [2, 2]
    assert column(pa.concat_tables(tables), "row_id") == ["a", "b", "c", "d"]
    assert column(pa.concat_tables(list(reader)), "response")[3] == "answer d"
    _, limited = read(source, NEEDED, limit=2)
    assert column(limited, "row_id") == ["a", "b"]


def test_compressed_files_may_be_mixed_with_others(tmp_path: Path) -> None:
    _write(tmp_path / "1.jsonl", _rows("a"))
    _write(tmp_path / "2.jsonl.gz", _rows("b"))
    _write(tmp_path / "3.ndjson", _rows("c"))
    assert column(read(tmp_path, NEEDED)[1], "row_id") == ["a", "b", "c"]


@pytest.mark.parametrize(
    "hidden",
    ["_SUCCESS", "_metadata", ".1.jsonl.crc", ".x.jsonl", "_old/1.jsonl", "day=1/_SUCCESS", "day=1/.old/1.json"],
)
@pytest.mark.parametrize("ending", ["", "/**"])
def test_hidden_files_are_skipped(hidden: str, ending: str, tmp_path: Path) -> None:
    _write(tmp_path / "1.jsonl", _rows("a"))
    (tmp_path / hidden).parent.mkdir(exist_ok=True, parents=True)
    (tmp_path / hidden).write_text("{}")
    reader, table = read(f"{tmp_path}{ending}", NEEDED)
    assert column(table, "row_id") == ["a"]
    assert reader.warnings == []


def test_a_hidden_folder_that_is_named_is_read(tmp_path: Path) -> None:
    _write(tmp_path / "_new" / "1.jsonl", _rows("a"))
    assert read(tmp_path / "_new", NEEDED)[1].num_rows == 1
    assert read(f"{tmp_path}/_new/*", NEEDED)[1].num_rows == 1


@pytest.mark.parametrize("ending", ["", "/*"])
def test_a_file_of_unknown_format_is_left_out_with_a_warning(ending: str, tmp_path: Path) -> None:
    _write(tmp_path / "1.jsonl", _rows("a"))
    (tmp_path / "notes.txt").touch()
    reader, table = read(f"{tmp_path}{ending}", NEEDED)
    assert table.num_rows == 1
    assert reader.warnings == [f"{tmp_path}{ending}: files of unknown formats are not read: 'notes.txt'"]


@pytest.mark.parametrize("ending", ["", "/**/*"])
def test_several_formats_are_refused(ending: str, tmp_path: Path) -> None:
    _write(tmp_path / "1.jsonl", _rows("a"))
    _write(tmp_path / "new" / "2.parquet", _rows("b"))
    assert _message(f"{tmp_path}{ending}") == (
        f"{tmp_path}{ending} has files of several formats, such as '1.jsonl' and 'new/2.parquet'; a source has "
        f"one format. Select the files with a pattern, such as {tmp_path}/**/*.jsonl*"
    )
    assert read(f"{tmp_path}/**/*.jsonl*", NEEDED)[1].num_rows == 1


def test_a_pattern_without_a_match(root: str) -> None:
    _put(root, log=_rows("a"), sub__log=_rows("b"))
    shown = f"{root}/*.csv matches no readable file: "
    assert _message(f"{root}/*.csv") == f"{shown}{root}/ has 'log.jsonl', 'sub'"
    assert _message(f"{root}/*.csv#train").startswith(f"{root}/*.csv#train matches no readable file")
    assert _message(f"{root}/no/*.csv").endswith(f"matches no readable file: there is no folder {root}/no/")
    folders = _message(f"{root}/s*")
    assert folders.endswith("it matches only folders: 'sub'. Append /*.jsonl to match the files in them")


@pytest.mark.parametrize(("name", "shown"), [("notes.txt", "'notes.txt'"), ("_SUCCESS", "'_SUCCESS'")])
def test_a_pattern_that_matches_other_files_alone(name: str, shown: str, tmp_path: Path) -> None:
    (tmp_path / name).touch()
    message = _message(f"{tmp_path}/*")
    assert f"/* matches no readable file: it matches {shown}; names that begin with _ or . are " in message


def test_an_invalid_pattern_is_refused(tmp_path: Path) -> None:
    assert "/**.jsonl cannot be used as a pattern: " in _message(f"{tmp_path}/**.jsonl")


def test_a_name_comes_before_a_pattern(tmp_path: Path) -> None:
    write_lines(tmp_path / "log[1].jsonl", _rows("own"))
    write_lines(tmp_path / "log1.jsonl", _rows("matched"))
    assert column(read(tmp_path / "log[1].jsonl", NEEDED)[1], "row_id") == ["own"]
    assert column(read(f"{tmp_path}/log[1]*", NEEDED)[1], "row_id") == ["matched"]


def test_the_question_mark_of_a_url_is_shown_unless_it_begins_a_query() -> None:
    assert _message("memory://nowhere/part-?.jsonl").startswith(
        "memory://nowhere/part-?.jsonl matches no readable file"
    )
    assert _message("memory://part-[01].jsonl").startswith("memory://part-[01].jsonl matches no readable file")
    assert "secret" not in _message("memory://nowhere/*.jsonl?key=secret")


def test_files_added_since_the_last_listing_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = fsspec.filesystem("memory")
    listed: dict[str, Any] = {}
    find = type(memory).find

    def remembered(self: Any, path: str, **options: Any) -> Any:
        return listed.setdefault(path, find(self, path, **options))

    monkeypatch.setattr(type(memory), "find", remembered)
    monkeypatch.setattr(type(memory), "invalidate_cache", lambda _self: listed.clear())
    folder = f"memory://{tmp_path.name}"
    for source in (folder, f"{folder}/*"):
        _put(folder, a=_rows("a"))
        assert read(source, NEEDED)[1].num_rows == 1
        _put(folder, b=_rows("b"))
        assert read(source, NEEDED)[1].num_rows == 2
        memory.rm(tmp_path.name, recursive=True)


def test_a_column_that_a_file_lacks_is_null_there(root: str) -> None:
    first = [{"question": "Why?", "response": "So.", "note": "x"}]
    _put(root, a=first, b=[{"response": "No."}], c=[{"reference": "Yes.", "response": "Yes."}])
    reader, table = read(f"{root}/*", NEEDED)
    assert reader.columns == ("user_input", "response", "reference")
    assert column(table, "user_input") == ["Why?", None, None]
    assert column(table, "reference") == [None, None, "Yes."]
    assert column(table, "extras") == ['{"note": "x"}', None, None]


@pytest.mark.parametrize("suffix", ["csv", "parquet", "arrow"])
def test_a_column_is_known_from_the_schema_of_any_file(suffix: str, tmp_path: Path) -> None:
    _write(tmp_path / f"1.{suffix}", [{"response": "a"}])
    _write(tmp_path / f"2.{suffix}", [{"response": "b", "reference": "c"}])
    needed = {"any": ("response", "reference")}
    assert available_columns(tmp_path, SourceOptions(limit=1)) == ("response", "reference")
    _, table = read(tmp_path, needed)
    assert column(table, "response") == ["a", "b"]
    assert column(table, "reference") == [None, "c"]
    assert "lacks columns that the metrics need" in _lacking(tmp_path)


def _lacking(source: Path) -> str:
    with pytest.raises(SourceError) as caught:
        read_samples(source, SourceOptions(), {"any": ("retrieved_contexts",)})
    return str(caught.value)


def test_columns_beyond_the_limit_are_ignored(tmp_path: Path) -> None:
    _write(tmp_path / "1.jsonl", [{"response": "a"}] * 3)
    _write(tmp_path / "2.jsonl", [{"response": "b", "reference": "c"}])
    assert available_columns(tmp_path, SourceOptions(limit=3)) == ("response",)
    assert available_columns(tmp_path, SourceOptions(limit=4)) == ("response", "reference")


def test_types_may_differ_as_within_one_file(tmp_path: Path) -> None:
    _write(tmp_path / "1.parquet", [{"id": 1, "response": "a", "retrieved_contexts": ["x"]}])
    _write(tmp_path / "2.parquet", [{"id": "2", "response": "b", "retrieved_contexts": "['x', 'y']"}])
    _write(tmp_path / "3.parquet", [{"id": 3.0, "response": 5, "retrieved_contexts": None}])
    reader, table = read(tmp_path, NEEDED, on_bad_row="skip")
    assert column(table, "row_id") == ["1", "2"]
    assert column(table, "retrieved_contexts") == [["x"], ["x", "y"]]
    assert list(map(str, reader.bad_rows)) == ["row 3 (3.parquet, row 1), response: got the number 5, wanted a text"]


def test_bad_rows_are_named_with_their_file_and_their_place_in_it(root: str) -> None:
    _put(root, **{"day=1__log": _rows("a"), "day=2__log": _rows("b", "a")})
    with fsspec.open(f"{root}/day=3/log.jsonl", "wb", auto_mkdir=True) as file:
        file.write(b"\n\n[]\n" + _lines(_rows("b")))
    with pytest.raises(BadRowsError) as caught:
        read(root, NEEDED)
    assert str(caught.value).splitlines()[:4] == [
        f"3 of 5 rows of {root} cannot be evaluated:",
        "  row 3 (day=2/log.jsonl, line 2), id: the id 'a' is a duplicate, first used in row 1 (day=1/log.jsonl)",
        "  row 4 (day=3/log.jsonl, line 3): got the list [], wanted an object",
        "  row 5 (day=3/log.jsonl, line 4), id: the id 'b' is a duplicate, first used in row 2 (day=2/log.jsonl)",
    ]


def test_bad_records_of_csv_files_are_named_with_their_line(tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text("response\na\n")
    (tmp_path / "2.csv").write_text('response,note\n"two\nlines",x\nb\n')
    reader, _ = read(f"{tmp_path}/*", NEEDED, on_bad_row="skip")
    assert [bad.place for bad in reader.bad_rows] == ["row 3 (2.csv, line 4)"]


def test_cells_are_texts_in_every_csv_file(tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text("response,reference,note\na,,\n")
    (tmp_path / "2.csv").write_text("response\nb\n")
    _, table = read(tmp_path, NEEDED)
    assert column(table, "reference") == [None, None]
    assert column(table, "extras") == [None, None]


def test_reading_again_names_the_same_rows(tmp_path: Path) -> None:
    _write(tmp_path / "1.jsonl", _rows("a"))
    _write(tmp_path / "2.jsonl", _rows("b", "b"))
    reader, _ = read(tmp_path, NEEDED, on_bad_row="skip")
    for _ in range(2):
        assert [bad.problem for bad in reader.bad_rows] == ["the id 'b' is a duplicate, first used in row 2 (2.jsonl)"]
        assert sum(table.num_rows for table in reader) == 2


def test_ids_from_the_content_distinguish_equal_rows_of_two_files(tmp_path: Path) -> None:
    row = {"response": "same"}
    one = write_lines(tmp_path / "one.jsonl", [row, {"response": "other"}, row])
    _write(tmp_path / "several" / "1.jsonl", [row, {"response": "other"}])
    _write(tmp_path / "several" / "2.jsonl", [row])
    ids = column(read(tmp_path / "several", NEEDED)[1], "row_id")
    assert ids == column(read(one, NEEDED)[1], "row_id")
    assert ids[2] == f"{ids[0]}-2"


def test_the_options_hold_for_all_files(root: str) -> None:
    _put(root, a=[{"key": 1, "prompt": "p", "response": "r"}], b=[{"key": 2, "prompt": "q", "response": "s"}])
    _, table = read(f"{root}/?.jsonl", {"any": ("user_input",)}, id_column="key", column_map={"prompt": "user_input"})
    assert column(table, "row_id") == ["1", "2"]
    assert column(table, "user_input") == ["p", "q"]


def test_a_column_that_comes_late_is_named_with_its_file(tmp_path: Path) -> None:
    _write(tmp_path / "1.jsonl", [{"response": str(number)} for number in range(1001)])
    _write(tmp_path / "2.jsonl", [{"response": "last", "id": 7}])
    reader, _ = read(tmp_path, NEEDED)
    assert reader.warnings == [
        "the ids in 'id', a column from row 1002 (2.jsonl) on, are not used: earlier rows have none"
    ]


def test_empty_files_among_others_have_no_rows(tmp_path: Path) -> None:
    for number, content in enumerate([b"", _lines(_rows("a")), b"\n", _lines(_rows("b")), b""]):
        (tmp_path / f"{number}.jsonl").write_bytes(content)
    assert column(read(tmp_path, NEEDED)[1], "row_number") == [1, 2]
    for path in tmp_path.iterdir():
        path.write_bytes(b"")
    assert _message(f"{tmp_path}/*.jsonl") == f"{tmp_path}/*.jsonl has no rows"


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    _write(tmp_path / "1.parquet", _rows("a"))
    (tmp_path / "2.parquet").write_bytes(b"no")
    assert _message(tmp_path).startswith(f"{tmp_path}/2.parquet cannot be read: ")
    _write(tmp_path / "2.parquet.gz", _rows("a"))
    assert "decompress it" in _message(tmp_path)


def test_documents_under_a_wrong_name_are_recognized_in_any_file(tmp_path: Path) -> None:
    for name in ("1.jsonl", "2.jsonl"):
        (tmp_path / name).write_text(json.dumps(_rows("a"), indent=1))
    assert "name a file that is one JSON list .json" in _message(tmp_path)


def test_one_document_is_in_memory_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alive: list[Path] = []
    monkeypatch.setattr(JsonDocumentSource, "__del__", lambda self: alive.remove(self.name), raising=False)
    opened = JsonDocumentSource.__init__

    def noted(self: Any, file: Any) -> None:
        opened(self, file)
        alive.append(self.name)

    monkeypatch.setattr(JsonDocumentSource, "__init__", noted)
    for number in range(4):
        _write(tmp_path / f"{number}.json", _rows(str(number)))
    reader = read_samples(tmp_path, SourceOptions(batch_rows=1), NEEDED)
    assert [len(alive) for _ in reader] == [1, 1, 1, 1]


@pytest.mark.parametrize("address", ["", "/*.jsonl", "/**/*.jsonl"])
def test_what_is_no_regular_file_is_left_out_and_named(address: str, tmp_path: Path) -> None:
    write_lines(tmp_path / "a.jsonl", [{"response": "a"}])
    (tmp_path / "b.jsonl").symlink_to("a.jsonl")
    os.mkfifo(tmp_path / "pipe.jsonl")
    for name, target in (("link", "pipe.jsonl"), ("zero", "/dev/zero"), ("lost", "nowhere"), ("loop", "loop.jsonl")):
        (tmp_path / f"{name}.jsonl").symlink_to(target)
    reader, table = read(f"{tmp_path}{address}", {})
    assert column(table, "response") == ["a", "a"]
    [warning] = reader.warnings
    names = "'link.jsonl', 'loop.jsonl', 'lost.jsonl', 'pipe.jsonl', 'zero.jsonl'"
    assert warning.endswith(f"FIFOs, sockets, devices and broken links are not read: {names}")


def test_a_folder_with_nothing_but_a_fifo_has_no_readable_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.jsonl")
    with pytest.raises(SourceError, match="without a readable file"):
        read(tmp_path, {})
    (tmp_path / "log.jsonl").mkdir()
    with pytest.raises(SourceError, match="without a readable file"):
        read(tmp_path / "log.jsonl", {})
