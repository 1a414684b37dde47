"""Small files that expand, and large rows: refused or left out before they fill the memory."""

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from metric_core.errors import BadRowsError, SourceError
from tasks.sources import SourceOptions, read_limits, read_samples, sample_reader
from tasks.sources.readers import arrow_tables
from tasks.sources.readers.arrow_tables import _row_bytes
from tests.tasks.sources.helpers import column, read, write_lines

MEGABYTE = 1024**2
BOMB = 4 * MEGABYTE


@pytest.fixture(autouse=True)
def _lower_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_limits, "LEAST_EXPANDED_BYTES", BOMB // 2)


def write_gzip(path: Path, start: bytes, size: int, end: bytes) -> Path:
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(start)
        for _ in range(size // MEGABYTE):
            file.write(b"x" * MEGABYTE)
        file.write(end)
    return path


@pytest.mark.parametrize("name", ["log.jsonl.gz", "log.json.gz", "log.csv.gz"])
def test_a_file_that_expands_too_much_is_refused(name: str, tmp_path: Path) -> None:
    starts = {"log.csv.gz": b"response\n"}
    path = write_gzip(tmp_path / name, starts.get(name, b'{"response": "a"}\n'), BOMB, b"\n")
    assert path.stat().st_size * 20 < BOMB
    with pytest.raises(SourceError, match=r"more than 2 times as many; .*--max-expansion|the row has"):
        read(path, {}, max_expansion=2)


def test_a_small_compressed_file_may_expand(tmp_path: Path) -> None:
    path = write_gzip(tmp_path / "log.jsonl.gz", b'{"response": "', MEGABYTE, b'"}\n')
    assert read(path, {}, max_expansion=1)[1].num_rows == 1


def test_a_line_that_is_too_large_is_a_bad_row(tmp_path: Path) -> None:
    texts = ("a", "b" * 3000, "c", "x" * 5000, "d" * 1000)
    rows = [{"response": text} if text[0] != "x" else text for text in texts]
    path = write_lines(tmp_path / "log.jsonl", rows)
    reader, table = read(path, {}, on_bad_row="skip", max_row_bytes=2000)
    assert column(table, "response") == ["a", "c", "d" * 1000]
    assert [(bad.place, bad.problem) for bad in reader.bad_rows] == [
        ("line 2", "the row has more than 2,000 bytes"),
        ("line 4", "the row has more than 2,000 bytes"),
    ]
    with pytest.raises(BadRowsError, match="--max-row-bytes N accepts larger rows"):
        read(path, {}, max_row_bytes=2000)


@pytest.mark.parametrize("cell", ["b" * 3000, '"' + "b\n" * 1500 + '"', '"' + "b\n" * 1500])
def test_a_record_that_is_too_large_ends_a_csv_file(cell: str, tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text(f"response\na\n{cell}\nc\n")
    with pytest.raises(SourceError, match=r"from line \d+ on: the row has more than 2,000 bytes, or a quote"):
        read(tmp_path / "log.csv", {}, on_bad_row="skip", max_row_bytes=2000)
    if not cell.endswith("b\n"):
        assert read(tmp_path / "log.csv", {})[1].num_rows == 3


def test_a_text_that_many_rows_share_is_held_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (arrow_tables, sample_reader):
        monkeypatch.setattr(module, "BATCH_BYTES", MEGABYTE)
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


def test_a_row_of_parquet_that_is_too_large_is_a_bad_row(tmp_path: Path) -> None:
    rows = [{"response": text, "retrieved_contexts": ["c", text]} for text in ("a", "b" * 3000, "c", "d" * 2500)]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "log.parquet")
    reader, table = read(tmp_path / "log.parquet", {}, on_bad_row="skip", max_row_bytes=2000)
    assert column(table, "response") == ["a", "c"]
    assert [bad.number for bad in reader.bad_rows] == [2, 4]


def test_a_parquet_file_whose_pages_expand_too_much_is_refused(tmp_path: Path) -> None:
    texts = ["x" * (BOMB // 8 + number) for number in range(8)]
    pq.write_table(pa.table({"response": texts}), tmp_path / "log.parquet", compression="zstd", use_dictionary=False)
    with pytest.raises(SourceError, match=r"log.parquet has [\d,]+ bytes and expands to over"):
        read(tmp_path / "log.parquet", {})
    reader, _ = read(tmp_path / "log.parquet", {}, max_expansion=10**6)
    assert reader.rows_read == 8


VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "texts": (pa.string(), ["ab", None, "abcd"]),
    "lists": (pa.list_(pa.string()), [["ab", "c"], None, []]),
    "structs": (pa.struct([("a", pa.string())]), [{"a": "x"}, None, {"a": "y"}]),
    "maps": (pa.map_(pa.string(), pa.string()), [[("k", "v")], None, []]),
    "numbers": (pa.float64(), [1.0, None, 2.0]),
    "dictionary": (pa.dictionary(pa.int32(), pa.string()), ["ab", None, "ab"]),
}


@pytest.mark.parametrize(("kind", "values"), VALUES.values(), ids=VALUES.keys())
def test_sizes_of_rows_are_estimated_for_every_type(kind: pa.DataType, values: list[Any]) -> None:
    whole = pa.record_batch({"a": pa.array(values * 2, kind)})
    sizes = _row_bytes(whole)
    assert sizes.shape == (6,)
    assert np.array_equal(_row_bytes(whole.slice(3, 3)), sizes[:3])  # a slice has offsets
    least = [len(json.dumps(value)) if isinstance(value, str) else 0 for value in values]
    assert all(size >= each - 2 for size, each in zip(sizes, least, strict=False))
