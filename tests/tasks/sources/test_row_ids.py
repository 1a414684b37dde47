"""Ids of rows: from a column, or stable digests."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from metric_core.errors import SourceError
from tasks.sources import SourceOptions, read_samples
from tests.tasks.sources.helpers import column, read, write_lines

ROWS = [
    {"user_input": "q1", "response": "r1", "retrieved_contexts": ["a", "b"]},
    {"user_input": "q2", "response": "ré2", "retrieved_contexts": []},
    {"user_input": "q1", "response": "r1", "retrieved_contexts": ["b", "a"]},
]


def _ids(path: Path, **options: object) -> list[str]:
    return list(column(read(path, {}, **options)[1], "row_id"))


def test_derived_ids_are_short_digests_of_the_content(tmp_path: Path) -> None:
    ids = _ids(write_lines(tmp_path / "log.jsonl", ROWS))
    assert len(set(ids)) == 3
    assert all(len(row_id) == 16 and int(row_id, 16) >= 0 for row_id in ids)


def test_derived_ids_do_not_depend_on_order_names_or_extras(tmp_path: Path) -> None:
    ids = _ids(write_lines(tmp_path / "log.jsonl", ROWS))
    renamed = [
        {
            "note": number,
            "contexts": row["retrieved_contexts"],
            "answer": row["response"],
            "Question": row["user_input"],
        }
        for number, row in enumerate(reversed(ROWS))
    ]
    assert _ids(write_lines(tmp_path / "other.jsonl", renamed)) == ids[::-1]
    (tmp_path / "log.csv").write_text(
        "q,response,retrieved_contexts,reference\n"
        + "".join(f'{row["user_input"]},{row["response"]},"{row["retrieved_contexts"]}",\n' for row in ROWS),
        encoding="utf-8",
    )
    assert _ids(tmp_path / "log.csv", column_map={"q": "user_input"}) == ids


def test_equal_rows_have_different_ids(tmp_path: Path) -> None:
    first, second, _ = _ids(write_lines(tmp_path / "log.jsonl", ROWS))
    assert _ids(write_lines(tmp_path / "log.jsonl", [ROWS[0], ROWS[1], ROWS[0], ROWS[0]])) == [
        first,
        second,
        f"{first}-2",
        f"{first}-3",
    ]


def test_rubrics_make_the_same_id_in_any_order(tmp_path: Path) -> None:
    rubrics = {"score1_description": "bad", "score2_description": "good"}
    rows = [{"rubrics": rubrics}, {"rubrics": dict(reversed(rubrics.items()))}]
    first, second = _ids(write_lines(tmp_path / "log.jsonl", rows))
    assert second == f"{first}-2"


@pytest.mark.parametrize(
    ("row", "wanted"),
    [
        ({"id": "a", "response": "r"}, "a"),
        ({"id": 7, "response": "r"}, "7"),
        ({"ID": 7.0, "response": "r"}, "7"),
        ({"id": "a", "row_id": "b", "response": "r"}, "b"),
    ],
)
def test_ids_in_a_column_are_found(row: dict[str, object], wanted: str, tmp_path: Path) -> None:
    assert _ids(write_lines(tmp_path / "log.jsonl", [row])) == [wanted]


def test_the_id_column_is_no_extra_and_the_other_one_is(tmp_path: Path) -> None:
    _, table = read(write_lines(tmp_path / "log.jsonl", [{"id": "a", "row_id": "b", "response": "r"}]), {})
    assert column(table, "extras") == ['{"id": "a"}']


def test_an_id_column_can_be_named_and_be_a_sample_column_too(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "log.jsonl", [{"id": "a", "question": "q1"}])
    _, table = read(path, {}, id_column="question")
    assert (column(table, "row_id"), column(table, "user_input")) == (["q1"], ["q1"])


def test_a_missing_id_column_is_refused(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "log.jsonl", [{"uid": "a", "question": "q1"}])
    with pytest.raises(SourceError, match=r"has no id_column 'uidd'; it has: 'uid', 'question'. Did you mean 'uid'\?"):
        read_samples(path, SourceOptions(id_column="uidd"), {})


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (None, "null or empty, wanted an id (a text or a whole number)"),
        ("", "null or empty, wanted an id (a text or a whole number)"),
        (True, "got true, wanted an id (a text or a whole number)"),
        (1.5, "got the number 1.5, wanted an id (a text or a whole number)"),
        (["a"], "got the list ['a'], wanted an id (a text or a whole number)"),
        ("a", "the id 'a' is a duplicate, first used in line 1"),
    ],
)
def test_bad_ids(value: object, problem: str, tmp_path: Path) -> None:
    rows = [{"id": "a", "response": "r"}, {"id": value, "response": "r"}]
    reader, _ = read(write_lines(tmp_path / "log.jsonl", rows), {}, on_bad_row="skip")
    assert [(bad.number, bad.column, bad.problem) for bad in reader.bad_rows] == [(2, "id", problem)]


def test_an_empty_id_column_asks_for_derived_ids(tmp_path: Path) -> None:
    rows = [{"id": "same", **row} for row in ROWS]
    wanted = _ids(write_lines(tmp_path / "plain.jsonl", ROWS))
    assert _ids(write_lines(tmp_path / "log.jsonl", rows), id_column="") == wanted


def test_whole_numbers_stored_as_floating_point_numbers_are_ids(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [1.0, 2.0], "response": ["a", "b"]}), tmp_path / "log.parquet")
    assert _ids(tmp_path / "log.parquet") == ["1", "2"]


def test_numbers_in_id_lists_become_text(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("retrieved_context_ids,reference_context_ids\n[1 2],\"[3, 'd']\"\n")
    _, table = read(tmp_path / "log.csv", {})
    assert column(table, "retrieved_context_ids") == [["1", "2"]]
    assert column(table, "reference_context_ids") == [["3", "d"]]


def test_a_bad_row_does_not_occupy_its_id(tmp_path: Path) -> None:
    rows = [{"id": "a", "response": 1}, {"id": "a", "response": "r"}]
    reader, table = read(write_lines(tmp_path / "log.jsonl", rows), {}, on_bad_row="skip")
    assert column(table, "row_id") == ["a"]
    assert [bad.number for bad in reader.bad_rows] == [1]


def test_line_ends_inside_cells_are_no_other_row(tmp_path: Path) -> None:
    text = 'question,answer,contexts\r\n"Where{0}is it?","In{0}Delft.","[""a{1}b""]"\r\n'
    ids: list[str] = []
    for name, ends in {"lf": "\n", "crlf": "\r\n", "cr": "\r"}.items():
        path = tmp_path / f"{name}.csv"
        path.write_bytes(text.format(ends, ends.encode("unicode_escape").decode()).encode())
        ids += column(read(path, {})[1], "row_id")
    row = {"question": "Where\nis it?", "answer": "In\nDelft.", "contexts": ["a\nb"]}
    ids += column(read(write_lines(tmp_path / "a.jsonl", [row]), {})[1], "row_id")
    assert len(ids) == 4
    assert len(set(ids)) == 1
