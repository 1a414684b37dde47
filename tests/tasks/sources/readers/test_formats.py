"""Every format gives the same table."""

import bz2
import csv
import gzip
import json
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import feather

from metric_core.schemas import SAMPLES as SCHEMA
from tasks.sources import SourceOptions, available_columns, read_samples
from tests.tasks.sources.helpers import NEEDED, SAMPLES, column, read, write_lines

Writer = Callable[[Path], str]


def _lines(folder: Path) -> str:
    return str(write_lines(folder / "log.jsonl", SAMPLES))


def _ndjson_with_mark(folder: Path) -> str:
    text = "\r\n".join(json.dumps(row, ensure_ascii=False) for row in SAMPLES)
    (folder / "log.ndjson").write_bytes(b"\xef\xbb\xbf" + text.encode())
    return str(folder / "log.ndjson")


def _packed(suffix: str, compress: Callable[[bytes], bytes]) -> Writer:
    def write(folder: Path) -> str:
        path = folder / f"log.jsonl{suffix}"
        path.write_bytes(compress(Path(_lines(folder)).read_bytes()))
        return str(path)

    return write


def _zstd(data: bytes) -> bytes:
    packed: bytes = pa.compress(data, codec="zstd", asbytes=True)
    return packed


def _document(wrap: Callable[[Any], Any], indent: int | None) -> Writer:
    def write(folder: Path) -> str:
        (folder / "log.json").write_text(json.dumps(wrap(SAMPLES), indent=indent), encoding="utf-8")
        return str(folder / "log.json")

    return write


def _lines_named_json(folder: Path) -> str:
    return str(Path(_lines(folder)).rename(folder / "log.json"))


def _cells(path: Path, delimiter: str, show: Callable[[Any], str]) -> str:
    with path.open("w", newline="", encoding="utf-8") as handle:
        writer = csv.writer(handle, delimiter=delimiter)
        writer.writerow(SAMPLES[0])
        for row in SAMPLES:
            writer.writerow([value if isinstance(value, str) else show(value) for value in row.values()])
    return str(path)


def _for_excel(path: str, delimiter: str) -> str:
    Path(path).write_text(f"sep={delimiter}\r\n{Path(path).read_text(encoding='utf-8')}", encoding="utf-8")
    return path


def _packed_csv(folder: Path) -> str:
    path = folder / "log.csv.gz"
    path.write_bytes(gzip.compress(Path(_cells(folder / "log.csv", ",", json.dumps)).read_bytes()))
    return str(path)


def _table() -> pa.Table:
    return pa.Table.from_pylist(SAMPLES)


def _parquet(folder: Path) -> str:
    pq.write_table(_table(), folder / "log.parquet")
    return str(folder / "log.parquet")


def _parquet_folder(folder: Path) -> str:
    (folder / "parts" / "later").mkdir(parents=True)
    pq.write_table(_table().slice(0, 1), folder / "parts" / "a.parquet")
    pq.write_table(_table().slice(1), folder / "parts" / "later" / "b.parquet")
    (folder / "parts" / "_SUCCESS.parquet").touch()
    return str(folder / "parts")


def _feather(folder: Path) -> str:
    feather.write_feather(_table(), str(folder / "log.feather"))
    return str(folder / "log.feather")


def _arrow_stream(folder: Path) -> str:
    with pa.OSFile(str(folder / "log.arrow"), "wb") as sink, pa.ipc.new_stream(sink, _table().schema) as writer:
        writer.write_table(_table())
    return str(folder / "log.arrow")


def _url(folder: Path) -> str:
    address = f"memory://{folder.name}/log.jsonl"
    with fsspec.open(address, "wb") as handle:
        handle.write(Path(_lines(folder)).read_bytes())
    return address


def _python(value: Any) -> str:
    return repr(value)


def _numpy(value: Any) -> str:
    return "[" + "\n ".join(map(repr, value)) + "]" if isinstance(value, list) else repr(value)


WRITERS: dict[str, Writer] = {
    "json lines": _lines,
    "json lines with byte order mark and carriage returns": _ndjson_with_mark,
    "gzip": _packed(".gz", gzip.compress),
    "bzip2": _packed(".bz2", bz2.compress),
    "xz": _packed(".xz", lzma.compress),
    "zstandard": _packed(".zst", _zstd),
    "json list": _document(lambda rows: rows, 2),
    "json list on one line": _document(lambda rows: rows, None),
    "json object with data": _document(lambda rows: {"version": 1, "data": rows}, 2),
    "json object with rows on one line": _document(lambda rows: {"rows": rows}, None),
    "json lines named json": _lines_named_json,
    "csv with JSON cells": lambda folder: _cells(folder / "log.csv", ",", json.dumps),
    "csv with Python cells": lambda folder: _cells(folder / "log.csv", ",", _python),
    "csv with NumPy cells": lambda folder: _cells(folder / "log.csv", ",", _numpy),
    "csv with semicolons": lambda folder: _cells(folder / "log.csv", ";", _python),
    "csv that tells Excel its delimiter": lambda folder: _for_excel(_cells(folder / "log.csv", "|", _python), "|"),
    "csv with bars": lambda folder: _cells(folder / "log.csv", "|", _python),
    "compressed csv": _packed_csv,
    "tsv": lambda folder: _cells(folder / "log.tsv", "\t", json.dumps),
    "parquet": _parquet,
    "parquet folder": _parquet_folder,
    "feather": _feather,
    "arrow stream": _arrow_stream,
    "url": _url,
}


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS.keys())
def test_every_format_gives_the_same_table(write: Writer, tmp_path: Path) -> None:
    _, wanted = read(write_lines(tmp_path / "wanted.jsonl", SAMPLES))
    source = write(tmp_path)
    reader, table = read(source)
    assert table.schema.equals(SCHEMA.arrow, check_metadata=True)
    assert table.equals(wanted)
    assert reader.rows_read == 2
    assert reader.bad_rows == []
    assert reader.warnings == []
    assert available_columns(source, SourceOptions()) == reader.columns


def test_the_table_holds_what_was_written(tmp_path: Path) -> None:
    reader, table = read(write_lines(tmp_path / "log.jsonl", SAMPLES))
    assert reader.columns == tuple(name for name in SCHEMA.arrow.names if name in SAMPLES[0])
    for name in ("user_input", "response", "retrieved_contexts", "reference", "retrieved_context_ids"):
        assert column(table, name) == [row[name] for row in SAMPLES]
    assert column(table, "row_id") == ["a", "b"]
    assert column(table, "row_number") == [1, 2]
    assert column(table, "reference_contexts") == [None, None]
    assert column(table, "extras") == ['{"note": "checked"}', '{"note": "unchecked"}']
    assert column(table, "rubrics")[0] == [
        {"key": "score1_description", "description": "wrong"},
        {"key": "score2_description", "description": "right"},
    ]


def test_a_samples_table_can_be_read_again(tmp_path: Path) -> None:
    _, table = read(write_lines(tmp_path / "log.jsonl", SAMPLES))
    pq.write_table(table, tmp_path / "samples.parquet")
    _, again = read(tmp_path / "samples.parquet")
    assert again.drop_columns(["extras"]).equals(table.drop_columns(["extras"]))


def test_a_file_whose_name_has_a_number_sign_is_a_file(tmp_path: Path) -> None:
    assert read(write_lines(tmp_path / "log#1.jsonl", SAMPLES))[1].num_rows == 2


def test_maps_of_arrow_are_rubrics(tmp_path: Path) -> None:
    kind = pa.map_(pa.string(), pa.string())
    rubrics = pa.array([[("score1_description", "bad")], []], kind)
    pq.write_table(pa.table({"response": ["x", "y"], "rubrics": rubrics}), tmp_path / "log.parquet")
    _, table = read(tmp_path / "log.parquet", {"graded": ("response", "rubrics")})
    assert column(table, "rubrics") == [[{"key": "score1_description", "description": "bad"}], []]


def test_lists_written_as_texts_are_read_everywhere(tmp_path: Path) -> None:
    rows = [{"response": "x", "retrieved_contexts": text} for text in ('["a", "b"]', "['a', 'b']")]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "log.parquet")
    for path in (tmp_path / "log.parquet", write_lines(tmp_path / "log.jsonl", rows)):
        _, table = read(path, {"any": ("response", "retrieved_contexts")})
        assert column(table, "retrieved_contexts") == [["a", "b"], ["a", "b"]]


def test_csv_has_no_null(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("user_input,response,reference,retrieved_contexts,note\nwhy,,,[],\n")
    needed = {"relevancy": ("user_input", "response")}
    _, table = read(tmp_path / "log.csv", needed, empty_text="keep")
    assert table.to_pylist()[0] | {"row_id": ""} == {
        "row_id": "",
        "row_number": 1,
        "user_input": "why",
        "response": "",
        "retrieved_contexts": [],
        "reference": None,
        "reference_contexts": None,
        "retrieved_context_ids": None,
        "reference_context_ids": None,
        "rubrics": None,
        "extras": None,
        "retrieved_context_scores": None,
        "session_id": None,
        "conversation": None,
        "earlier_turns": None,
        "earlier_contexts": None,
        "tool_results": None,
        "earlier_answers": None,
        "relevance_judgments": None,
        "key_points": None,
        "evidence_spans": None,
        "point_evidence": None,
    }


def test_long_cells_are_read(tmp_path: Path) -> None:
    with (tmp_path / "log.csv").open("w", newline="") as handle:
        csv.writer(handle).writerows([["retrieved_contexts"], [json.dumps(["x" * 300_000])]])
    _, table = read(tmp_path / "log.csv", {"any": ("retrieved_contexts",)})
    assert column(table, "retrieved_contexts") == [["x" * 300_000]]


@pytest.mark.parametrize("suffix", [".jsonl", ".csv", ".parquet", ".arrow"])
def test_batches_are_bounded(suffix: str, tmp_path: Path) -> None:
    rows = [{"id": str(n), "response": f"answer {n}"} for n in range(25)]
    table = pa.Table.from_pylist(rows)
    if suffix == ".jsonl":
        write_lines(tmp_path / "log.jsonl", rows)
    elif suffix == ".csv":
        (tmp_path / "log.csv").write_text("id,response\n" + "".join(f"{row['id']},{row['response']}\n" for row in rows))
    elif suffix == ".parquet":
        pq.write_table(table, tmp_path / "log.parquet", row_group_size=7)
    else:
        feather.write_feather(table, str(tmp_path / "log.arrow"))
    reader = read_samples(tmp_path / f"log{suffix}", SourceOptions(batch_rows=10), {"any": ("response",)})
    tables = list(reader)
    assert [batch.num_rows for batch in tables] == [10, 10, 5]
    assert column(pa.concat_tables(tables), "response") == [row["response"] for row in rows]


def test_needed_columns_are_enough(tmp_path: Path) -> None:
    assert read(write_lines(tmp_path / "log.jsonl", SAMPLES), NEEDED)[1].num_rows == 2
