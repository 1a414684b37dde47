"""Lists that describe the same passages have one item per passage, or the row is a bad one."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from metric_core.columns import PARALLEL_COLUMNS
from metric_core.evidence import Evidence
from metric_core.metrics.registry import parse_request
from metric_core.records import Score
from tasks.rows.records import read_samples_table
from tests.tasks.sources.helpers import column, read, write_lines

ITEMS: Mapping[str, list[Any]] = {
    "retrieved_contexts": ["Rain.", "Snow.", "Hail."],
    "reference_contexts": ["Rain.", "Snow.", "Hail."],
    "retrieved_context_ids": ["a", "b", "c"],
    "reference_context_ids": ["a", "b", "c"],
    "retrieved_context_scores": [0.75, 0.5, 0.25],
}
PAIRS = [(name, other) for name, others in PARALLEL_COLUMNS.items() for other in others]


@pytest.mark.parametrize(("name", "other"), PAIRS)
@pytest.mark.parametrize("count", [1, 2, 4])
def test_a_list_of_another_length_is_a_bad_row(name: str, other: str, count: int, tmp_path: Path) -> None:
    items = (ITEMS[name] * 2)[:count]
    rows = [{"response": "So.", other: ITEMS[other], name: given} for given in (items, ITEMS[name])]
    reader, table = read(write_lines(tmp_path / "log.jsonl", rows), {}, on_bad_row="skip")
    assert column(table, name) == [ITEMS[name]]
    [bad] = reader.bad_rows
    assert (bad.number, bad.column) == (1, name)
    assert bad.problem == f"got a list of {count}, wanted 3: one for each item of {other}, or null"


@pytest.mark.parametrize(("name", "other"), PAIRS)
def test_a_list_beside_no_passages_is_a_bad_row(name: str, other: str, tmp_path: Path) -> None:
    rows = [{"response": "So.", other: [], name: ITEMS[name]}, {"response": "So.", other: [], name: []}]
    reader, table = read(write_lines(tmp_path / "log.jsonl", rows), {}, on_bad_row="skip")
    assert [bad.problem for bad in reader.bad_rows] == [
        f"got a list of 3, wanted 0: one for each item of {other}, or null"
    ]
    assert column(table, name) == [[]]


@pytest.mark.parametrize(("name", "other"), PAIRS)
@pytest.mark.parametrize("empty", [[], None])
def test_an_empty_list_beside_passages_is_none(name: str, other: str, empty: Any, tmp_path: Path) -> None:
    rows = [{other: ITEMS[other], name: given} for given in (empty, ITEMS[name])]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "log.parquet")
    for path in (write_lines(tmp_path / "log.jsonl", rows), tmp_path / "log.parquet"):
        assert column(read(path, {})[1], name) == [None, ITEMS[name]]


def test_an_empty_list_without_passages_says_that_nothing_was_found(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "log.jsonl", [{"user_input": "Why?", "retrieved_context_ids": []}])
    assert column(read(path, {})[1], "retrieved_context_ids") == [[]]


def test_ids_of_passage_objects_stand_in_for_an_empty_list(tmp_path: Path) -> None:
    passages = [{"text": "Rain.", "id": "a", "score": 0.5}]
    row = {"retrieved_contexts": passages, "retrieved_context_ids": [], "retrieved_context_scores": []}
    _, table = read(write_lines(tmp_path / "log.jsonl", [row]), {})
    assert column(table, "retrieved_context_ids") == [["a"]]
    assert column(table, "retrieved_context_scores") == [[0.5]]


def test_without_ids_a_ranking_is_undefined_and_counted(tmp_path: Path) -> None:
    row = {"retrieved_contexts": ["Rain."], "retrieved_context_ids": [], "qrels": {"a": 1}}
    whole = {"retrieved_contexts": ["Rain."], "retrieved_context_ids": ["a"], "qrels": {"a": 1}}
    path = write_lines(tmp_path / "log.jsonl", [row, whole])
    reader, table = read(path, {"ndcg": ("retrieved_context_ids", "relevance_judgments")})
    scores = [parse_request("ndcg").score(Evidence(sample)) for sample in read_samples_table(table)]
    assert scores == [Score.undefined("no retrieved_context_ids"), Score.scored(1.0)]
    assert "1 of 2 rows have no value in retrieved_context_ids: ndcg is undefined there" in reader.warnings


def test_scores_beyond_a_float_are_a_bad_row(tmp_path: Path) -> None:
    row = {"retrieved_contexts": ["Rain."], "retrieved_context_scores": [10**400]}
    reader, _ = read(write_lines(tmp_path / "log.jsonl", [row, {"response": "So."}]), {}, on_bad_row="skip")
    assert "wanted a list of finite numbers" in reader.bad_rows[0].problem
    passages = [{"text": "Rain.", "score": 10**400}]
    _, table = read(write_lines(tmp_path / "log.jsonl", [{"retrieved_contexts": passages}]), {})
    assert column(table, "retrieved_context_scores") == [None]


def test_a_cell_with_a_number_of_too_many_digits_is_a_bad_row(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text(f"response,retrieved_context_scores\nSo.,[{'1' * 5000}]\nSo.,[1]\n")
    reader, _ = read(tmp_path / "log.csv", {}, on_bad_row="skip")
    assert [bad.number for bad in reader.bad_rows] == [1]
