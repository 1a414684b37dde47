"""Sources that cannot be opened, and limits."""

import bz2
import csv
import gzip
import io
import json
import lzma
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from metric_core.errors import ConfigError, MissingDependencyError, SourceError
from tasks.sources import SourceOptions, available_columns, read_samples
from tests.tasks.sources.helpers import SAMPLES, read, write_lines


def _message(source: object) -> str:
    with pytest.raises(SourceError) as caught:
        list(read_samples(source, SourceOptions(), {"any": ("response",)}))
    return str(caught.value)


def test_a_path_that_does_not_exist(tmp_path: Path) -> None:
    write_lines(tmp_path / "answers.jsonl", SAMPLES)
    assert _message(tmp_path / "answer.jsonl").endswith("does not exist. Did you mean 'answers.jsonl'?")
    assert _message(tmp_path / "zzz.csv").endswith("zzz.csv does not exist")
    assert _message(tmp_path / "no" / "log.csv").endswith("does not exist, nor does its folder")


@pytest.mark.parametrize("name", ["log.xlsx", "log", "log.gz", "log.txt.gz"])
def test_formats_that_are_not_read(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text("x")
    assert "supported are .jsonl, .ndjson, .json, .csv and .tsv" in _message(tmp_path / name)


@pytest.mark.parametrize("name", ["log.parquet.gz", "log.arrow.zst"])
def test_formats_that_are_not_compressed_as_a_whole(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text("x")
    assert "decompress it" in _message(tmp_path / name)


@pytest.mark.parametrize("name", ["log.jsonl", "log.json", "log.csv", "log.tsv"])
@pytest.mark.parametrize("content", ["", "\n \n"])
def test_empty_files(name: str, content: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(content)
    assert _message(tmp_path / name).endswith(f"{name} has no rows")
    with pytest.raises(SourceError, match="has no rows"):
        available_columns(tmp_path / name, SourceOptions())


@pytest.mark.parametrize(("name", "content"), [("log.json", "[]"), ("log.csv", "response\n")])
def test_files_without_rows(name: str, content: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(content)
    assert _message(tmp_path / name).endswith(f"{name} has no rows")


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("[", "is not valid JSON"),
        ('{"rows": {"a": 1}}', "contains an object with 'rows'; wanted a list of rows"),
        ('{"user_input": "a"}', "Name JSON Lines files .jsonl"),
        ("3", "contains the number 3, wanted a list of rows"),
    ],
)
def test_documents_that_are_no_list_of_rows(content: str, problem: str, tmp_path: Path) -> None:
    (tmp_path / "log.json").write_text(content)
    assert problem in _message(tmp_path / "log.json")


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("name", ["log.jsonl", "log.csv"])
def test_other_encodings_are_named(name: str, encoding: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes('{"response": "a"}\n'.encode(encoding))
    assert "is UTF-16, wanted UTF-8" in _message(tmp_path / name)


@pytest.mark.parametrize("name", ["log.jsonl", "log.json", "log.csv"])
def test_the_message_for_a_file_that_is_not_utf_8_says_to_save_it_again(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(b'[{"response": "Z\xfcrich"}]\n')
    assert "save " in _message(tmp_path / name)
    assert " as UTF-8" in _message(tmp_path / name)
    assert "Name JSON Lines files" not in _message(tmp_path / name)


def _as_parquet(data: bytes) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(pa.table({"response": [data]}), buffer)
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("pack", "way_out"),
    [
        (gzip.compress, "contains gzip, which does not match its name; add .gz to its name"),
        (bz2.compress, "add .bz2 to its name"),
        (lzma.compress, "add .xz to its name"),
        (lambda data: pa.compress(data, "zstd", asbytes=True), "add .zst to its name"),
        (_as_parquet, "name it .parquet"),
        (lambda data: b"PK\x03\x04" + data, "unpack it, or save the sheet as CSV"),
    ],
)
@pytest.mark.parametrize("name", ["log.jsonl", "log.json", "log.csv"])
def test_content_that_does_not_match_the_name(
    name: str, pack: Callable[[bytes], bytes], way_out: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(pack(b'{"response": "a"}\n'))
    assert way_out in _message(tmp_path / name)


def test_lines_that_end_as_on_old_macs(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_bytes(b"user_input,response\ra,b\rc,d\r")
    assert "its lines end with a carriage return alone" in _message(tmp_path / "log.csv")


@pytest.fixture
def narrow_cells() -> Iterator[int]:
    """Set the field size limit of the csv module, which holds for the process."""
    before = csv.field_size_limit(100)
    yield 100
    csv.field_size_limit(before)


def test_a_header_that_is_no_csv(narrow_cells: int, tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_bytes(b"a" * (narrow_cells + 1))
    assert "its header is not valid CSV: field larger than field limit" in _message(tmp_path / "log.csv")


def test_the_message_for_a_table_by_columns_says_how_to_write_rows(tmp_path: Path) -> None:
    (tmp_path / "log.json").write_text('{"response": {"0": "a"}, "user_input": {"0": "b"}}')
    assert _message(tmp_path / "log.json").endswith('Pandas writes rows with orient="records"')


@pytest.mark.parametrize(("content", "is_list"), [('[{"response": "a"}]', True), ("word " * 9, False)])
def test_only_the_message_for_a_list_suggests_the_extension_of_documents(
    content: str, is_list: bool, tmp_path: Path
) -> None:
    (tmp_path / "log.jsonl").write_text(content)
    assert ("name a file that is one JSON list .json" in _message(tmp_path / "log.jsonl")) == is_list


@pytest.mark.parametrize("address", ["", " "])
def test_no_name(address: str) -> None:
    assert _message(address).startswith("the name of the source is empty")


@pytest.mark.parametrize("address", ["-", "/dev/stdin", "/dev/fd/63"])
def test_streams_are_refused(address: str) -> None:
    assert (
        _message(address) == f"{address}: a source is read more than once, so it cannot be a stream; save it to a file"
    )


def test_a_header_in_another_encoding(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_bytes(b"response,\xe9tat\na,b\n")
    assert "invalid UTF-8 at byte 10 of line 1, which is its header" in _message(tmp_path / "log.csv")


@pytest.mark.parametrize(
    "name", ["log.parquet", "log.feather", "log.arrow", "log.jsonl.gz", "log.csv.xz", "log.json.zst"]
)
def test_damaged_files(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(b"this is something else")
    assert f"{name} cannot be read: " in _message(tmp_path / name)


def test_a_file_that_was_cut_off(tmp_path: Path) -> None:
    whole = gzip.compress(write_lines(tmp_path / "log.jsonl", SAMPLES * 50).read_bytes())
    (tmp_path / "log.jsonl.gz").write_bytes(whole[:-20])
    assert "cannot be read: Compressed file ended" in _message(tmp_path / "log.jsonl.gz")


def test_a_folder_of_something_else(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").touch()
    message = _message(tmp_path)
    assert "is a folder without a readable file, and was not written by datasets.save_to_disk" in message
    assert "it has: 'notes.txt'" in message


def test_splits_are_for_saved_data_sets(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "log.jsonl", SAMPLES)
    assert _message(f"{path}#train").endswith("is a file, which has no splits; leave out #train")
    assert "only a folder written by datasets.save_to_disk has splits" in _message(f"{tmp_path}#train")


def test_secrets_of_a_url_are_not_shown() -> None:
    with pytest.raises(SourceError) as caught:
        read_samples("nosuch://user:password@host/log.jsonl?signature=key", SourceOptions(), {})
    message = str(caught.value)
    assert message.startswith("nosuch://host/log.jsonl cannot be opened: ")
    assert "password" not in message
    assert "signature" not in message


def test_a_url_whose_package_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    def url_to_fs(_: str) -> object:
        raise ImportError("Install s3fs to access S3") from ModuleNotFoundError("No module", name="s3fs")

    monkeypatch.setattr("fsspec.core.url_to_fs", url_to_fs)
    with pytest.raises(MissingDependencyError, match="pip install s3fs"):
        read_samples("s3://bucket/log.jsonl", SourceOptions(), {})


def test_a_file_system_that_cannot_be_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    def exists(*_: object) -> bool:
        raise RuntimeError("no credentials")

    monkeypatch.setattr("fsspec.implementations.memory.MemoryFileSystem.exists", exists)
    assert _message("memory://log.jsonl") == "memory://log.jsonl cannot be reached: no credentials"


@pytest.mark.parametrize("source", [[{"response": "a"}], 7, None])
def test_objects_that_are_no_source(source: object) -> None:
    assert "as a source, wanted a path, a URL or a datasets.Dataset" in _message(source)


def test_limits_count_rows_of_the_source(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "log.jsonl", ["[]", *SAMPLES, "[]"])
    reader, table = read(path, {}, limit=2, on_bad_row="skip")
    assert (table.num_rows, reader.rows_read, reader.bad_row_count) == (1, 2, 1)
    assert read(path, {}, limit=100, on_bad_row="skip")[0].rows_read == 4


@pytest.mark.parametrize("options", [{"limit": 0}, {"batch_rows": 0}])
def test_numbers_below_one_are_refused(options: dict[str, int]) -> None:
    with pytest.raises(ConfigError, match="must be at least 1, got 0"):
        SourceOptions(**options)


ROW = {"question": "Why?", "answer": "So."}


@pytest.mark.parametrize(
    "document",
    [
        {"examples": [ROW]},
        {"goldens": [ROW]},
        {"testCases": [ROW], "metricsScores": [{"metric": "a"}]},
        {"version": 2, "tags": ["a"], "questions": [ROW], "notes": []},
        {"data": [], "results": [ROW]},
    ],
)
def test_the_rows_of_a_document_may_have_any_key(document: Any, tmp_path: Path) -> None:
    (tmp_path / "log.json").write_text(json.dumps(document, indent=1))
    [table] = read_samples(tmp_path / "log.json", SourceOptions(), {})
    assert table["response"].to_pylist() == ["So."]


@pytest.mark.parametrize(
    "document",
    [{"train": [ROW], "test": [ROW]}, {**ROW, "contexts": [{"text": "It is."}]}, {"messages": [{"role": "user"}]}],
)
def test_a_document_with_other_lists_is_refused(document: Any, tmp_path: Path) -> None:
    (tmp_path / "log.json").write_text(json.dumps(document, indent=1))
    assert "wanted a list of rows, or an object with one list of objects" in _message(tmp_path / "log.json")
