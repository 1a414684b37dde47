"""Passages, with the ids and scores that the retriever gave them."""

from pathlib import Path
from typing import Any

import pytest

from tests.tasks.sources.helpers import column, read, write_lines

ROW = {"user_input": "Why?", "response": "So."}


@pytest.mark.parametrize(
    ("scores", "problem"),
    [
        ([0.5, "high"], "item 2 is the text 'high', wanted a list of finite numbers"),
        ([True, 0.5], "item 1 is true, wanted a list of finite numbers"),
        ([float("inf"), 0.5], "item 1 is the number inf, wanted a list of finite numbers"),
        ([0.5], "1 scores, wanted 2: one per context"),
        (0.5, "got the number 0.5, wanted a list of finite numbers"),
    ],
)
def test_scores_that_do_not_fit_make_a_bad_row(scores: Any, problem: str, tmp_path: Path) -> None:
    rows = [ROW, ROW | {"retrieved_contexts": ["a", "b"], "retrieved_context_scores": scores}]
    reader, _ = read(write_lines(tmp_path / "log.jsonl", rows), on_bad_row="skip", required={})
    assert [(bad.column, bad.problem) for bad in reader.bad_rows] == [("retrieved_context_scores", problem)]


@pytest.mark.parametrize("cell", ["[0.9, null, -1e-3]", "[0.9, nan, -0.001]", "[ 0.9    nan -1.e-3]"])
def test_scores_are_read_from_text_cells(cell: str, tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text(
        f"response,retrieved_contexts,retrieved_context_scores\nx,\"['a' 'b' 'c']\",\"{cell}\"\n"
    )
    _, table = read(tmp_path / "log.csv", {})
    assert column(table, "retrieved_context_scores") == [[0.9, None, -0.001]]
