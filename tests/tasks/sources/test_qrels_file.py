"""Relevance judgments are read from a column in every form, and from files of qrels."""

import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from metric_core.errors import BadRowsError, SourceError
from metric_core.schemas import SAMPLES
from tasks.rows.records import read_samples_table
from tasks.sources.readers import read_limits
from tests.tasks.sources.helpers import column, read, write_lines

ROWS = [
    {"id": "q1", "user_input": "Why?", "retrieved_context_ids": ["a", "b"]},
    {"id": "q2", "user_input": "How?", "retrieved_context_ids": ["c"]},
]
QRELS = "q1 0 a 2\nq1\t0\tb\t0\n\nq2 0 z 1\n"


def grades(table: pa.Table) -> list[Any]:
    """Return the judgments of each row as a mapping."""
    return [sample.relevance_judgments for sample in read_samples_table(table.select(SAMPLES.arrow.names))]


@pytest.mark.parametrize(
    "given",
    [
        {"a": 2, "b": 0},
        [["a", 2], ["b", 0.0]],
        [{"id": "a", "grade": 2}, {"id": "b", "grade": 0}],
        [{"doc_id": "a", "relevance": 2}, {"corpus-id": "b", "score": 0}],
        '{"a": 2, "b": 0}',
        "{'a': 2, 'b': 0}",
        "[('a', 2), ('b', 0)]",
    ],
)
@pytest.mark.parametrize("name", ["relevance_judgments", "qrels"])
def test_judgments_are_read_in_every_form(given: Any, name: str, tmp_path: Path) -> None:
    _, table = read(write_lines(tmp_path / "log.jsonl", [ROWS[0] | {name: given}]), {})
    assert grades(table) == [{"a": 2.0, "b": 0.0}]
    assert column(table, "relevance_judgments") == [[{"id": "a", "grade": 2.0}, {"id": "b", "grade": 0.0}]]


def test_ids_that_are_numbers_become_texts_as_those_of_the_passages_do(tmp_path: Path) -> None:
    rows = [{"retrieved_context_ids": [7, 8], "qrels": [[7, 1], [8.0, 0]]}]
    _, table = read(write_lines(tmp_path / "log.jsonl", rows), {})
    assert grades(table) == [{"7": 1.0, "8": 0.0}]


def test_maps_and_structs_of_arrow_are_judgments(tmp_path: Path) -> None:
    maps = pa.array([[("a", 2)], []], pa.map_(pa.string(), pa.int32()))
    pq.write_table(pa.table({"response": ["x", "y"], "qrels": maps}), tmp_path / "maps.parquet")
    assert grades(read(tmp_path / "maps.parquet", {})[1]) == [{"a": 2.0}, {}]
    structs = pa.array([{"a": 2, "b": None}, {"a": None, "b": 1}])
    pq.write_table(pa.table({"response": ["x", "y"], "qrels": structs}), tmp_path / "structs.parquet")
    assert grades(read(tmp_path / "structs.parquet", {})[1]) == [{"a": 2.0}, {"b": 1.0}]


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ("a:2", "got the text 'a:2', wanted a mapping of passage id to grade, as {\"guide-7\": 2}"),
        ({"a": "high"}, "judgment 1 ('a'): the grade is the text 'high', wanted a finite number"),
        ({"a": 1, "b": None}, "judgment 2 ('b'): the grade is null, wanted a finite number"),
        ({"a": float("nan")}, "judgment 1 ('a'): the grade is the number nan, wanted a finite number"),
        ({"a": float("inf")}, "judgment 1 ('a'): the grade is the number inf, wanted a finite number"),
        ({"a": 10**400}, "judgment 1 ('a'): the grade is the number 1000"),
        ({"a": "1e999"}, "judgment 1 ('a'): the grade is the text '1e999', wanted a finite number"),
        ([["a", None]], "judgment 1 ('a'): the grade is null, wanted a finite number"),
        ([{"id": "a", "rel": None}], "judgment 1 ('a'): the grade is null, wanted a finite number"),
        ('{"a": null}', "judgment 1 ('a'): the grade is null, wanted a finite number"),
        ([["\ud83d", 1]], "character 1 of a text is half of a surrogate pair"),
        ([["a", 1], ["a", 2]], "the passage 'a' has the grades 1 and 2, wanted one grade each"),
        ([{"id": "a"}], "item 1 is the object {'id': 'a'}, wanted an id with a grade"),
        ([["a", 1], "b"], "item 2 is the text 'b', wanted an id with a grade"),
        ([[None, 1]], "the id of judgment 1 is null, wanted a text or a whole number"),
    ],
)
def test_other_values_make_a_bad_row(given: Any, problem: str, tmp_path: Path) -> None:
    path = write_lines(tmp_path / "log.jsonl", [ROWS[0], ROWS[1] | {"qrels": given}])
    reader, _ = read(path, {}, on_bad_row="skip")
    [bad] = reader.bad_rows
    assert bad.column == "relevance_judgments"
    assert bad.problem.startswith(problem)


@pytest.mark.parametrize(
    ("given", "grade"),
    [(-1, -1.0), (1.5, 1.5), (True, 1.0), (False, 0.0), ("2", 2.0), ("-0.5", -0.5), (2**70, 2.0**70)],
)
def test_a_grade_is_any_finite_number_in_the_data_and_in_a_file(given: Any, grade: float, tmp_path: Path) -> None:
    rows = write_lines(tmp_path / "log.jsonl", [ROWS[0] | {"qrels": {"a": given}}])
    assert grades(read(rows, {})[1]) == [{"a": grade}]
    bare = write_lines(tmp_path / "bare.jsonl", [ROWS[0]])
    judged = write_lines(tmp_path / "qrels.jsonl", [{"query_id": "q1", "passage_id": "a", "grade": given}])
    assert grades(read(bare, {}, qrels=str(judged))[1]) == [{"a": grade}]


def test_a_null_is_no_grade_only_where_arrow_fills_keys(tmp_path: Path) -> None:
    rows = [{"qrels": {"a": 2, "b": None}}, {"qrels": {"a": None, "b": 1}}]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "log.parquet")
    assert grades(read(tmp_path / "log.parquet", {})[1]) == [{"a": 2.0}, {"b": 1.0}]
    lists = [{"qrels": [{"id": "a", "grade": 2, "rel": None}]}, {"qrels": [{"id": "a", "grade": None, "rel": None}]}]
    pq.write_table(pa.Table.from_pylist(lists), tmp_path / "lists.parquet")
    reader, table = read(tmp_path / "lists.parquet", {}, on_bad_row="skip")
    assert grades(table) == [{"a": 2.0}]
    assert [bad.problem for bad in reader.bad_rows] == ["judgment 1 ('a'): the grade is null, wanted a finite number"]


def test_judgments_do_not_change_the_ids_of_rows(tmp_path: Path) -> None:
    row = {"user_input": "Why?"}
    ids = [
        column(read(write_lines(tmp_path / "log.jsonl", [row | more]), {})[1], "row_id")
        for more in ({}, {"qrels": {"a": 1}})
    ]
    assert ids[0] == ids[1]


def test_a_file_of_qrels_is_joined_by_the_row_id(tmp_path: Path) -> None:
    (tmp_path / "qrels.txt").write_text(QRELS)
    path = write_lines(tmp_path / "log.jsonl", [*ROWS, {"id": "q3", "user_input": "Who?"}])
    reader, table = read(path, {"ndcg": ("relevance_judgments",)}, qrels=str(tmp_path / "qrels.txt"))
    assert "relevance_judgments" in reader.columns
    assert grades(table) == [{"a": 2.0, "b": 0.0}, {"z": 1.0}, None]
    assert any("1 row has no judgments in" in warning for warning in reader.warnings)


@pytest.mark.parametrize(("name", "options"), [("qid", {}), ("topic", {"query_id_column": "topic"})])
def test_a_file_of_qrels_is_joined_by_a_column_of_query_ids(name: str, options: Any, tmp_path: Path) -> None:
    with gzip.open(tmp_path / "qrels.tsv.gz", "wt") as file:
        file.write("query-id\tcorpus-id\tscore\n12\td1\t3\n")
    path = write_lines(tmp_path / "log.jsonl", [{"user_input": "Why?", name: 12}, {"user_input": "How?"}])
    _, table = read(path, {}, qrels=str(tmp_path / "qrels.tsv.gz"), **options)
    assert grades(table) == [{"d1": 3.0}, None]
    assert json.loads(column(table, "extras")[0]) == {name: 12}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "has no judgments, wanted lines with 'QUERY 0 PASSAGE GRADE'"),
        ("q1 0 a 2\n" + "x" * 5000, "line 2: the row has more than 4,096 bytes"),
        ("q1 a 2", "line 1: 3 fields, wanted lines with 'QUERY 0 PASSAGE GRADE'"),
        ("q1 0 a 2\nq1 0 b high", "line 2: the grade is the text 'high', wanted a finite number"),
        ("q1 0 a nan", "line 1: the grade is the text 'nan', wanted a finite number"),
        (f"q1 0 a {'9' * 400}", "line 1: the grade is the text '9999.*9999', wanted a finite number"),
        ("q1 0 a 2\nq1 0 a 1", "line 2: a second grade of 'a' for the query 'q1'"),
        (
            "x1 0 a 2",
            "no row of .* has judgments in .*: its queries are 'x1' and so on, row ids of the rows 'q1', 'q2'",
        ),
    ],
)
def test_a_file_of_another_form_says_what_is_wanted(
    text: str, problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(read_limits, "MAX_ROW_BYTES", 4096)
    (tmp_path / "qrels.txt").write_text(text)
    with pytest.raises(SourceError, match=problem):
        read(write_lines(tmp_path / "log.jsonl", ROWS), {}, qrels=str(tmp_path / "qrels.txt"))


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ({"query_id": "q1", "passage_id": "b", "grade": None}, "line 2: the grade is null, wanted a finite number"),
        ({"query_id": "q1", "passage_id": "b", "grade": float("nan")}, "line 2: the grade is the number nan"),
        ({"query_id": "q1", "passage_id": "b", "grade": 10**400}, "line 2: the grade is the number 1000"),
        ({"query_id": "q1", "passage_id": None, "grade": 1}, "line 2: the id of the passage is null, wanted an id"),
        ({"query_id": "q1", "grade": 1}, "line 2: the columns 'query_id', 'grade', wanted lines with .* or a table"),
        ({"query_id": "q1", "passage_id": "a", "grade": 1}, "line 2: a second grade of 'a' for the query 'q1'"),
        ("[", "line 2: invalid JSON"),
    ],
)
def test_a_table_of_another_form_says_what_is_wanted(row: Any, problem: str, tmp_path: Path) -> None:
    first = {"query_id": "q1", "passage_id": "a", "grade": 2}
    path = write_lines(tmp_path / "qrels.jsonl", [first, row])
    with pytest.raises(SourceError, match=problem):
        read(write_lines(tmp_path / "log.jsonl", ROWS), {}, qrels=str(path))


def test_a_missing_file_or_column_says_what_there_is(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "log.jsonl", ROWS)
    with pytest.raises(SourceError, match=r"qrels\.txt does not exist"):
        read(path, {}, qrels=str(tmp_path / "qrels.txt"))
    (tmp_path / "qrels.txt").write_text(QRELS)
    with pytest.raises(SourceError, match="no query_id_column 'topic'; it has: 'id'"):
        read(path, {}, qrels=str(tmp_path / "qrels.txt"), query_id_column="topic")
    both = write_lines(tmp_path / "both.jsonl", [ROWS[0] | {"qrels": {"a": 1}}])
    with pytest.raises(SourceError, match="both give relevance judgments; leave out one of them"):
        read(both, {}, qrels=str(tmp_path / "qrels.txt"))


def test_bad_rows_are_reported_before_queries_that_do_not_match(tmp_path: Path) -> None:
    (tmp_path / "qrels.txt").write_text(QRELS)
    path = write_lines(tmp_path / "log.jsonl", [{"id": "x", "response": 5}, {"id": "y", "response": "So."}])
    with pytest.raises(BadRowsError, match="got the number 5"):
        read(path, {}, qrels=str(tmp_path / "qrels.txt"))
