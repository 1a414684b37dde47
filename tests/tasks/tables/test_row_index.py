"""Rows are found by their content, wherever they are, and every cell that a stage reads is part of it."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from metric_core.schemas import SAMPLES
from metric_core.stages import Stage
from tasks.tables.row_digests import row_digests
from tasks.tables.row_index import RowIndexes
from tasks.tables.table_store import StageRef, TableStore, conform
from tests.tasks.builders import samples_table

ROW: Mapping[str, Any] = {
    "row_id": "a",
    "row_number": 1,
    "user_input": "Why?",
    "response": "It rains.",
    "retrieved_contexts": ["one", "two"],
    "reference": "Rain.",
    "reference_contexts": [],
    "retrieved_context_ids": ["1", "2"],
    "reference_context_ids": None,
    "rubrics": [{"key": "score1", "description": "wet"}],
    "extras": '{"topic": "weather"}',
    "retrieved_context_scores": [0.5, None],
    "session_id": "s1",
    "conversation": None,
    "earlier_turns": "User: Hi!",
    "earlier_contexts": ["three"],
    "tool_results": ["four"],
    "earlier_answers": ["five"],
    "relevance_judgments": [{"id": "1", "grade": 2.0}],
}
RECIPES = {Stage.CLAIMS: "claims, asked in one way"}


def table(*rows: Mapping[str, Any]) -> pa.Table:
    return conform(pa.Table.from_pylist([{**ROW, **row} for row in rows], schema=SAMPLES.arrow), SAMPLES)


def digest(**cells: Any) -> bytes:
    """Return the digest of a row that has these cells, and others before and after it."""
    whole = table({"row_id": "other", "response": None, "rubrics": None}, cells, {"retrieved_contexts": None})
    assert row_digests(whole.slice(1, 1)) == row_digests(whole)[1:2]
    return row_digests(whole)[1]


@pytest.mark.parametrize(
    "cells",
    [
        {"row_id": "b"},
        {"user_input": None},
        {"user_input": ""},
        {"user_input": "Why?It rains.", "response": ""},
        {"retrieved_contexts": ["onetwo"]},
        {"retrieved_contexts": ["o", "netwo"]},
        {"retrieved_contexts": ["one", "two", ""]},
        {"retrieved_contexts": ["two", "one"]},
        {"retrieved_contexts": ["one", None]},
        {"retrieved_contexts": None},
        {"reference_contexts": None},
        {"reference_context_ids": []},
        {"rubrics": [{"key": "score1", "description": None}]},
        {"extras": '{"topic": "snow"}'},
        {"retrieved_context_scores": [0.5, 0.25]},
        {"retrieved_context_scores": [None, 0.5]},
        {"retrieved_context_scores": None},
        {"session_id": "s2"},
        {"conversation": "User: Why?"},
        {"earlier_turns": None},
        {"earlier_turns": None, "conversation": "User: Hi!"},
        {"earlier_contexts": None, "tool_results": ["three", "four"]},
        {"earlier_answers": []},
        {"relevance_judgments": [{"id": "1", "grade": 3.0}]},
        {"relevance_judgments": None},
    ],
    ids=str,
)
def test_each_cell_changes_the_digest(cells: Mapping[str, Any]) -> None:
    assert digest(**cells) != digest()


def test_position_in_the_source_does_not_change_the_digest() -> None:
    assert digest(row_number=7) == digest()


def shards(root: Path, *texts: str) -> list[dict[Stage, StageRef]]:
    """Write a shard for each text, with a row for each of its letters."""
    store = TableStore(str(root))
    return [
        {Stage.SAMPLES: store.write(samples_table(*({"row_id": c, "user_input": c} for c in text)), SAMPLES)}
        for text in texts
    ]


def find(root: Path, letters: str, source: str = "rows.jsonl") -> list[int] | None:
    rows = samples_table(*({"row_id": c, "user_input": c} for c in letters))
    digests = b"".join(row_digests(rows))
    index = RowIndexes(str(root), source).closest(RECIPES, digests)
    return None if index is None else index.find(digests).tolist()


def test_rows_are_found_in_the_newest_index_of_their_source(tmp_path: Path) -> None:
    assert find(tmp_path, "a") is None
    RowIndexes(str(tmp_path), "rows.jsonl").write(RECIPES, shards(tmp_path, "abc", "de"))
    assert find(tmp_path, "xdab") == [-1, 1, 0, 0]
    (old,) = (tmp_path / "rows").iterdir()
    os.utime(old, (0, 0))
    RowIndexes(str(tmp_path), "rows.jsonl").write(RECIPES, shards(tmp_path, "e", "b"))
    RowIndexes(str(tmp_path), "others.jsonl").write(RECIPES, shards(tmp_path, "f"))
    RowIndexes(str(tmp_path), "rows.jsonl").write({Stage.CLAIMS: "in another way"}, shards(tmp_path, "b"))
    assert find(tmp_path, "abef") == [-1, 1, 0, -1]
    assert find(tmp_path, "fa", "others.jsonl") == [0, -1]


def test_rows_are_found_in_the_index_that_has_most_of_them(tmp_path: Path) -> None:
    RowIndexes(str(tmp_path), "monday.jsonl").write(RECIPES, shards(tmp_path, "abcd"))
    RowIndexes(str(tmp_path), "others.jsonl").write(RECIPES, shards(tmp_path, "ax"))
    for age, path in enumerate(sorted((tmp_path / "rows").iterdir(), key=lambda path: path.stat().st_size)):
        os.utime(path, (-age, -age))
    assert find(tmp_path, "axyz", "tuesday.jsonl") == [0, 0, -1, -1]
    assert find(tmp_path, "abcde", "tuesday.jsonl") == [0, 0, 0, 0, -1]
    assert find(tmp_path, "abcde", "others.jsonl") == [0, 0, 0, 0, -1]


def test_equal_index_is_written_once(tmp_path: Path) -> None:
    for _ in range(2):
        RowIndexes(str(tmp_path), "rows.jsonl").write(RECIPES, shards(tmp_path, "abc"))
    assert len(list((tmp_path / "rows").iterdir())) == 1


def test_damaged_index_is_not_used(tmp_path: Path) -> None:
    RowIndexes(str(tmp_path), "rows.jsonl").write(RECIPES, shards(tmp_path, "abc"))
    (path,) = (tmp_path / "rows").iterdir()
    path.write_bytes(path.read_bytes()[:-30])
    assert find(tmp_path, "a") is None
