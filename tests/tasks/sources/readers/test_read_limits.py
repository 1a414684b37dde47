"""Small files that expand, and large rows: refused or left out before they fill the memory."""

import gzip
import json
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from metric_core.errors import BadRowsError, SourceError
from tasks.sources import SourceOptions, read_samples, sample_reader
from tasks.sources.readers import arrow_tables, read_limits
from tasks.sources.readers.value_sizes import row_sizes
from tests.tasks.sources.helpers import column, read, write_lines

MEGABYTE = 1024**2
BOMB = 4 * MEGABYTE


@pytest.fixture(autouse=True)
def _lower_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_limits, "LEAST_EXPANDED_BYTES", BOMB // 2)


@pytest.fixture
def _small_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_limits, "MAX_ROW_BYTES", 2000)


def write_gzip(path: Path, start: bytes, size: int, end: bytes) -> Path:
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(start)
        for _ in range(size // MEGABYTE):
            file.write(b"x" * MEGABYTE)
        file.write(end)
    return path


@pytest.mark.parametrize("name", ["log.jsonl.gz", "log.json.gz", "log.csv.gz"])
def test_a_file_that_expands_too_much_is_refused(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_limits, "MAX_EXPANSION", 2)
    starts = {"log.csv.gz": b"response\n"}
    path = write_gzip(tmp_path / name, starts.get(name, b'{"response": "a"}\n'), BOMB, b"\n")
    assert path.stat().st_size * 20 < BOMB
    with pytest.raises(SourceError, match=r"more than 2 times as many; .*less compression|the row has"):
        read(path, {})


def test_a_small_compressed_file_may_expand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_limits, "MAX_EXPANSION", 1)
    path = write_gzip(tmp_path / "log.jsonl.gz", b'{"response": "', MEGABYTE, b'"}\n')
    assert read(path, {})[1].num_rows == 1


@pytest.mark.usefixtures("_small_rows")
def test_a_line_that_is_too_large_is_a_bad_row(tmp_path: Path) -> None:
    texts = ("a", "b" * 3000, "c", "x" * 5000, "d" * 1000)
    rows = [{"response": text} if text[0] != "x" else text for text in texts]
    path = write_lines(tmp_path / "log.jsonl", rows)
    reader, table = read(path, {}, on_bad_row="skip")
    assert column(table, "response") == ["a", "c", "d" * 1000]
    assert [(bad.place, bad.problem) for bad in reader.bad_rows] == [
        ("line 2", "the row has more than 2,000 bytes"),
        ("line 4", "the row has more than 2,000 bytes"),
    ]
    with pytest.raises(BadRowsError, match=r"line 2: the row has more than 2,000 bytes"):
        read(path, {})


@pytest.mark.parametrize("cell", ["b" * 3000, '"' + "b\n" * 1500 + '"', '"' + "b\n" * 1500])
def test_a_record_that_is_too_large_ends_a_csv_file(cell: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "log.csv").write_text(f"response\na\n{cell}\nc\n")
    with monkeypatch.context() as patch:
        patch.setattr(read_limits, "MAX_ROW_BYTES", 2000)
        with pytest.raises(SourceError, match=r"from line \d+ on: the row has more than 2,000 bytes, or a quote"):
            read(tmp_path / "log.csv", {}, on_bad_row="skip")
    if not cell.endswith("b\n"):
        assert read(tmp_path / "log.csv", {})[1].num_rows == 3


def test_an_index_of_one_byte_selects_from_many_texts() -> None:
    texts = pa.DictionaryArray.from_arrays(pa.array([127, None], pa.int8()), pa.array([f"{i:03}" for i in range(128)]))
    assert list(row_sizes(pa.record_batch({"a": texts}))) == [11.0, 0.0]


def test_a_text_that_many_rows_share_is_held_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (arrow_tables, sample_reader):
        monkeypatch.setattr(module, "BATCH_BYTES", MEGABYTE)
    monkeypatch.setattr(read_limits, "MAX_EXPANSION", 10**6)
    texts = pa.array(["x" * (MEGABYTE // 16), "y"])
    shared = pa.DictionaryArray.from_arrays(pa.array([0] * 150 + [1]), texts)
    passages = pa.ListArray.from_arrays(pa.array(range(152), pa.int32()), shared)
    pq.write_table(pa.table({"response": shared, "retrieved_contexts": passages}), tmp_path / "log.parquet")
    assert (tmp_path / "log.parquet").stat().st_size < MEGABYTE // 2
    arrow, seen = pa.total_allocated_bytes(), 0
    for table in read_samples(tmp_path / "log.parquet", SourceOptions(), {}):
        seen += table.num_rows
        assert table.nbytes <= 2 * MEGABYTE
        assert pa.total_allocated_bytes() - arrow < 8 * MEGABYTE
    assert seen == 151


@pytest.mark.usefixtures("_small_rows")
def test_a_row_of_parquet_that_is_too_large_is_a_bad_row(tmp_path: Path) -> None:
    rows = [{"response": text, "retrieved_contexts": ["c", text]} for text in ("a", "b" * 3000, "c", "d" * 2500)]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "log.parquet")
    reader, table = read(tmp_path / "log.parquet", {}, on_bad_row="skip")
    assert column(table, "response") == ["a", "c"]
    assert [bad.number for bad in reader.bad_rows] == [2, 4]


def test_a_parquet_file_whose_pages_expand_too_much_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ["x" * (BOMB // 8 + number) for number in range(8)]
    pq.write_table(pa.table({"response": texts}), tmp_path / "log.parquet", compression="zstd", use_dictionary=False)
    with pytest.raises(SourceError, match=r"log.parquet has [\d,]+ bytes and expands to over"):
        read(tmp_path / "log.parquet", {})
    monkeypatch.setattr(read_limits, "MAX_EXPANSION", 10**6)
    reader, _ = read(tmp_path / "log.parquet", {})
    assert reader.rows_read == 8


VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "texts": (pa.string(), ["ab", None, "abcd"]),
    "lists": (pa.list_(pa.string()), [["ab", "c"], None, []]),
    "structs": (pa.struct([("a", pa.string())]), [{"a": "x"}, None, {"a": "y"}]),
    "maps": (pa.map_(pa.string(), pa.string()), [[("k", "v")], None, []]),
    "numbers": (pa.float64(), [1.0, None, 2.0]),
    "dictionary": (pa.dictionary(pa.int32(), pa.string()), ["ab", None, "ab"]),
    "large binaries": (pa.large_binary(), [b"ab", None, b"abcd"]),
    "text views": (pa.string_view(), ["ab", None, "a text that is longer than a view"]),
    "list views": (pa.list_view(pa.string()), [["ab", "c"], None, []]),
    "fixed lists": (pa.list_(pa.string(), 2), [["ab", "c"], None, ["d", "e"]]),
    "fixed binaries": (pa.binary(2), [b"ab", None, b"cd"]),
    "lists of numbers": (pa.list_(pa.int64()), [[1, 2], None, []]),
    "nulls": (pa.null(), [None, None, None]),
}


def test_sizes_of_rows_are_estimated_for_every_type() -> None:
    for kind, values in VALUES.values():
        whole = pa.record_batch({"a": pa.array(values * 2, kind)})
        sizes = row_sizes(whole)
        assert sizes.shape == (6,), (kind, values)
        assert np.array_equal(row_sizes(whole.slice(3, 3)), sizes[:3]), (kind, values)  # a slice has offsets
        assert list(sizes[:3]) == list(sizes[3:]), (kind, values)
        least = [len(json.dumps(value)) if isinstance(value, str) else 0 for value in values]
        assert all(size >= each - 2 for size, each in zip(sizes, least, strict=False)), (kind, values)


PARTS = 200
TEXT = "x" * MEGABYTE
SHARED = pa.DictionaryArray.from_arrays(pa.array([0] * PARTS, pa.int32()), pa.array([TEXT]))
ENDS = pa.array(range(PARTS + 1), pa.int32())
VIEWS = np.frombuffer(np.array([MEGABYTE, 0x78787878, 0, 0] * PARTS, "<i4").tobytes(), np.uint8)
BOMBS: dict[str, pa.Array] = {
    "dictionary": SHARED,
    "struct": pa.StructArray.from_arrays([SHARED], ["text"]),
    "list": pa.ListArray.from_arrays(ENDS, SHARED),
    "map": pa.MapArray.from_arrays(ENDS, pa.array(["k"] * PARTS), SHARED),
}
ARROW_BOMBS: dict[str, pa.Array] = BOMBS | {
    "run": pa.RunEndEncodedArray.from_arrays(pa.array([PARTS], pa.int32()), pa.array([TEXT])),
    "view": pa.Array.from_buffers(pa.string_view(), PARTS, [None, pa.py_buffer(VIEWS), pa.py_buffer(TEXT.encode())]),
    "list view": pa.ListViewArray.from_arrays(
        pa.array([0] * PARTS, pa.int32()), pa.array([1] * PARTS, pa.int32()), pa.array([TEXT])
    ),
    "fixed list": pa.FixedSizeListArray.from_arrays(SHARED, 1),
    "rows of nulls": pa.nulls(2 * 10**9),
    "list of nulls": pa.ListArray.from_arrays(pa.array([0, 2 * 10**9], pa.int32()), pa.nulls(2 * 10**9)),
    "compressed": pa.array([TEXT] * 8),
}
READ = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (4 * 1024**3,) * 2)
from metric_core.errors import SourceError
from tasks.sources import SourceOptions, read_samples
from tasks.sources.readers import read_limits
read_limits.LEAST_EXPANDED_BYTES = 2 * 1024**2
for path in sys.argv[1:]:
    try:
        print(path, "is read", sum(map(len, read_samples(path, SourceOptions(on_bad_row="skip"), {}))))
    except SourceError as error:
        print(" ".join(str(error).split()))
"""


def read_with_little_memory(paths: Iterable[Path]) -> list[str]:
    """Return what reading each file says, in a process whose memory is bounded."""
    command = [sys.executable, "-c", READ, *map(str, paths)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


REFUSED = r"bytes and expands to over [\d,]+, more than 200 times as many; .*less compression"


def test_parquet_files_that_stand_for_more_than_they_have_are_refused(tmp_path: Path) -> None:
    numbers = pa.ListArray.from_arrays(pa.array([0, 10**7], pa.int32()), pa.array(np.zeros(10**7, np.int8)))
    wide = pa.array([b"x" * MEGABYTE] * 8, pa.binary(MEGABYTE))
    for kind, bomb in (BOMBS | {"numbers": numbers, "wide": wide}).items():
        table = pa.table({"response": ["a"] * len(bomb), "note": bomb})
        pq.write_table(table, tmp_path / f"{kind}.parquet", compression="zstd")
    paths = sorted(tmp_path.iterdir())
    assert max(path.stat().st_size for path in paths) < 4096
    for path, said in zip(paths, read_with_little_memory(paths), strict=True):
        assert re.fullmatch(f"{path} .*{REFUSED}.*", said)


def test_texts_that_store_only_what_differs_are_read_in_small_batches(tmp_path: Path) -> None:
    path = tmp_path / "log.parquet"
    encoding: dict[str, Any] = {"use_dictionary": False, "column_encoding": {"response": "DELTA_BYTE_ARRAY"}}
    pq.write_table(pa.table({"response": ["one", "one more", None]}), path, **encoding)
    assert column(read(path, {}, on_bad_row="skip")[1], "response") == ["one", "one more"]
    pq.write_table(pa.table({"response": [TEXT] * PARTS}), path, compression="zstd", **encoding)
    assert path.stat().st_size < 4096
    with pytest.raises(SourceError, match=REFUSED):
        read(path, {})


def test_arrow_files_that_stand_for_more_than_they_have_are_refused(tmp_path: Path) -> None:
    for kind, bomb in ARROW_BOMBS.items():
        table = pa.table({"response": bomb})
        options = pa.ipc.IpcWriteOptions(compression="zstd")
        with pa.ipc.new_file(tmp_path / f"{kind}.arrow", table.schema, options=options) as writer:
            writer.write_table(table)
    paths = sorted(tmp_path.iterdir())
    assert max(path.stat().st_size for path in paths) < 4096
    for path, said in zip(paths, read_with_little_memory(paths), strict=True):
        assert re.fullmatch(f"{path} .*{REFUSED}.*|.*the row has more than 16,777,216 bytes.*", said)


def test_a_data_set_folder_that_stands_for_more_than_it_has_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    datasets = pytest.importorskip("datasets")
    shared = datasets.Dataset.from_dict({"response": ["x" * 1000]}).select([0] * 5000)
    shared.save_to_disk(str(tmp_path / "saved"))
    monkeypatch.setattr(read_limits, "LEAST_EXPANDED_BYTES", 1000)
    with monkeypatch.context() as patch:
        patch.setattr(read_limits, "MAX_EXPANSION", 1)
        with pytest.raises(SourceError, match="more than 1 times as many"):
            read(tmp_path / "saved", {})
    assert read(tmp_path / "saved", {})[1].num_rows == 5000


@pytest.mark.parametrize("kind", ["offsets", "indices"])
def test_an_arrow_file_that_points_beyond_its_buffers_is_refused(kind: str, tmp_path: Path) -> None:
    far = pa.py_buffer(np.array([0, 2 * 10**9, 4], np.int32))
    values = {
        "offsets": pa.Array.from_buffers(pa.string(), 2, [None, far, pa.py_buffer(b"abcd")]),
        "indices": pa.DictionaryArray.from_arrays(
            pa.Array.from_buffers(pa.int32(), 2, [None, far]), pa.array(["a"]), safe=False
        ),
    }
    table = pa.table({"response": values[kind]})
    with pa.ipc.new_file(tmp_path / "log.arrow", table.schema) as writer:
        writer.write_table(table)
    with pytest.raises(SourceError, match=r"log\.arrow cannot be read: "):
        read(tmp_path / "log.arrow", {})


def test_a_type_that_rows_cannot_have_is_named(tmp_path: Path) -> None:
    either = pa.UnionArray.from_sparse(pa.array([0], pa.int8()), [pa.array(["a"]), pa.array([1])])
    table = pa.table({"response": ["a"], "note": either})
    with pa.ipc.new_file(tmp_path / "log.arrow", table.schema) as writer:
        writer.write_table(table)
    with pytest.raises(SourceError, match=r"the column 'note' has the type sparse_union.*, which cannot be read"):
        read(tmp_path / "log.arrow", {})
