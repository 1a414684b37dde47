"""Passages, with the ids and scores that the retriever gave them."""

import json
from csv import writer
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from metric_core.errors import SourceError
from tests.tasks.sources.helpers import column, read, write_lines

ROW = {"user_input": "Why?", "response": "So."}


@pytest.mark.parametrize(
    ("scores", "problem"),
    [
        ([0.5, "high"], "item 2 is the text 'high', wanted a list of finite numbers"),
        ([True, 0.5], "item 1 is true, wanted a list of finite numbers"),
        ([float("inf"), 0.5], "item 1 is the number inf, wanted a list of finite numbers"),
        ([0.5], "got a list of 1, wanted 2: one for each item of retrieved_contexts, or null"),
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


DOCUMENTS = [
    {"page_content": "Rain.", "metadata": {"source": "kb/rain.md"}, "score": 0.5},
    {"text": "Snow.", "id": 7},
    {"node": {"id_": "n1", "text": "Hail."}, "score": 1},
]


def test_passages_that_are_objects_bring_their_ids_and_scores(tmp_path: Path) -> None:
    needed = {"precision": ("retrieved_contexts", "retrieved_context_ids", "retrieved_context_scores")}
    jsonl = write_lines(tmp_path / "log.jsonl", [ROW | {"contexts": DOCUMENTS}])
    csv = tmp_path / "log.csv"
    with csv.open("w", newline="") as handle:
        writer(handle).writerows([["contexts"], [json.dumps(DOCUMENTS)], [str(DOCUMENTS)]])
    parquet = tmp_path / "log.parquet"
    pq.write_table(pa.Table.from_pylist([{"contexts": [{"text": "Rain.", "id": "a", "score": 0.5}]}]), parquet)
    for path in (jsonl, csv):
        reader, table = read(path, needed)
        assert column(table, "retrieved_contexts")[-1] == ["Rain.", "Snow.", "Hail."]
        assert column(table, "retrieved_context_ids")[-1] == ["kb/rain.md", "7", "n1"]
        assert column(table, "retrieved_context_scores")[-1] == [0.5, None, 1.0]
        assert set(needed["precision"]) <= set(reader.columns)
    _, table = read(parquet, needed)
    assert table.select(needed["precision"]).to_pylist() == [
        {"retrieved_contexts": ["Rain."], "retrieved_context_ids": ["a"], "retrieved_context_scores": [0.5]}
    ]


@pytest.mark.parametrize(
    ("fields", "given", "dates"),
    [
        ([{"date": "2023-05-01"}, {"metadata": {"updated": "2024"}}], {}, ["2023-05-01", "2024"]),
        ([{"version": 2}, {"metadata": {"version": 2.1}}], {}, ["2", "2.1"]),
        ([{"date": "2023-05-01"}, {}], {}, None),
        ([{"date": "2023"}, {"date": "2024"}], {"retrieved_context_dates": ["1.0", "1.1"]}, ["1.0", "1.1"]),
    ],
)
def test_passages_bring_their_dates_if_all_have_one(
    fields: list[dict[str, Any]], given: dict[str, Any], dates: list[str] | None, tmp_path: Path
) -> None:
    passages = [{"page_content": "Rain.", "metadata": {}, **each} for each in fields]
    reader, table = read(write_lines(tmp_path / "log.jsonl", [ROW | {"contexts": passages} | given]), {})
    (extras,) = column(table, "extras")
    assert json.loads(extras or "{}").get("retrieved_context_dates") == dates
    assert ("retrieved_context_dates" in reader.other_columns) is (dates is not None)


def test_ids_and_scores_that_are_given_take_precedence(tmp_path: Path) -> None:
    given = {"contexts": DOCUMENTS, "retrieved_context_ids": ["a", "b", "c"], "retrieved_context_scores": None}
    _, table = read(write_lines(tmp_path / "log.jsonl", [ROW | given]), {})
    assert column(table, "retrieved_context_ids") == [["a", "b", "c"]]
    assert column(table, "retrieved_context_scores") == [[0.5, None, 1.0]]


def test_ids_are_left_out_if_a_passage_has_none(tmp_path: Path) -> None:
    rows = [
        ROW | {"contexts": [{"content": "Rain.", "id": "a"}, "Snow."], "reference_contexts": [{"text": "R", "id": 1}]}
    ]
    _, table = read(write_lines(tmp_path / "log.jsonl", rows), {})
    assert column(table, "retrieved_contexts") == [["Rain.", "Snow."]]
    assert column(table, "retrieved_context_ids") == column(table, "retrieved_context_scores") == [None]
    assert column(table, "reference_context_ids") == [["1"]]


def test_a_metric_that_needs_ids_is_refused_where_passages_bring_none(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "log.jsonl", [ROW | {"contexts": [{"text": "Rain."}]}])
    with pytest.raises(SourceError, match="'retrieved_context_ids', for precision"):
        read(path, {"precision": ("retrieved_context_ids",)})
