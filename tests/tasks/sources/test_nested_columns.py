"""Paths into nested columns, in the column map and as the id column."""

import json
from csv import writer
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from metric_core.errors import SourceError
from tasks.sources.cells.paths import MISSING, parse_path, read_path
from tests.tasks.sources.helpers import column, read, write_lines

RUN: dict[str, Any] = {
    "run": {"id": "r1"},
    "inputs": {"question": "Why?"},
    "outputs": {"answer": "So.", "docs": [{"page_content": "a", "id": "x"}, {"page_content": "b", "id": "y"}]},
}
MAP = {
    "inputs.question": "user_input",
    "outputs.answer": "response",
    "outputs.docs[*].page_content": "retrieved_contexts",
    "outputs.docs[*].id": "retrieved_context_ids",
}
NEEDED = {"precision": tuple(MAP.values())}


def sources(folder: Path) -> dict[str, Path]:
    """One row in each format, as text where the format has no nested values."""
    (folder / "log.json").write_text(json.dumps([RUN]))
    pq.write_table(pa.Table.from_pylist([RUN]), folder / "log.parquet")
    texts = {name: json.dumps(value) for name, value in RUN.items()}
    pq.write_table(pa.Table.from_pylist([texts]), folder / "texts.parquet")
    with (folder / "log.csv").open("w", newline="") as handle:
        writer(handle).writerows([list(texts), list(texts.values())])
    write_lines(folder / "log.jsonl", [RUN])
    return {path.name: path for path in folder.iterdir()}


@pytest.mark.parametrize("name", ["log.json", "log.jsonl", "log.parquet", "texts.parquet", "log.csv"])
def test_paths_are_read_in_every_format(name: str, tmp_path: Path) -> None:
    reader, table = read(sources(tmp_path)[name], NEEDED, column_map=MAP, id_column="run.id")
    assert table.select(["row_id", *MAP.values()]).to_pylist() == [
        {
            "row_id": "r1",
            "user_input": "Why?",
            "response": "So.",
            "retrieved_contexts": ["a", "b"],
            "retrieved_context_ids": ["x", "y"],
        }
    ]
    assert set(json.loads(column(table, "extras")[0])) == set(RUN)
    assert reader.columns == tuple(MAP.values())


def test_objects_at_a_path_are_passages(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "log.jsonl", [RUN])
    needed = {"precision": ("retrieved_contexts", "retrieved_context_ids")}
    _, table = read(path, needed, column_map={"outputs.docs": "retrieved_contexts"})
    assert column(table, "retrieved_context_ids") == [["x", "y"]]


def test_a_column_whose_name_has_dots_takes_precedence(tmp_path: Path) -> None:
    rows = [{"a.b": "flat", "a": {"b": "nested"}}, {"a": {"b": "nested"}}]
    path = write_lines(tmp_path / "log.jsonl", rows)
    assert column(read(path, {}, column_map={"a.b": "response"})[1], "response") == ["flat", "nested"]
    assert column(read(path, {}, column_map={'a."b"': "response"})[1], "response") == ["nested", "nested"]


@pytest.mark.parametrize("name", ["log.jsonl", "log.parquet", "log.csv"])
@pytest.mark.parametrize(
    ("path", "nearest"),
    [
        ("inputs.questionn", "inputs.question"),
        ("outputs.docs[*].page_contents", "outputs.docs[*].page_content"),
        ("output.answer", "outputs.answer"),
        ("outputs.docs.page_content", "outputs.docs[*].page_content"),
    ],
)
def test_an_unknown_path_names_the_nearest(name: str, path: str, nearest: str, tmp_path: Path) -> None:
    with pytest.raises(SourceError) as caught:
        read(sources(tmp_path)[name], {}, column_map={path: "response"})
    assert f"has no value at the path {path!r}" in str(caught.value)
    assert f"Did you mean {nearest!r}?" in str(caught.value)


def test_paths() -> None:
    cases: list[tuple[str, Any]] = [
        ("docs[*].texts[*].t", ["a", "b", None, "c"]),
        ("docs[0].texts[-1].t", "b"),
        ("docs[2].texts", MISSING),
        ("docs[*].none", MISSING),
        ("empty[*].t", []),
        ("null.x", MISSING),
        ("null", MISSING),
        ("docs.texts", MISSING),
        ("names.first.of.all", 1),
        ('"x[0].y"."z"', 2),
        ("json.a[1]", "c"),
    ]
    for path, value in cases:
        row = {
            "docs": [{"texts": [{"t": "a"}, {"t": "b"}]}, {"texts": [{}, {"t": "c"}]}],
            "empty": [],
            "null": None,
            "names": {"first.of": {"all": 1}},
            "x[0].y": {"z": 2},
            "json": '{"a": ["b", "c"]}',
        }
        steps = parse_path(path)
        assert (MISSING if steps is None else read_path(row, steps)) == value, (path, value)


def test_names_that_are_no_paths() -> None:
    for name in ["", "question", ".a", "a.", "a..b", "[0]", "a[", "a[x]", 'a."b', 'a"b"']:
        assert parse_path(name) is None, name
