"""Rows that are not valid samples: the numbers, the messages and the handling of each kind."""

import datetime
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from metric_core.errors import BadRowsError, SourceError
from tasks.sources import SampleReader, SourceOptions, read_samples
from tasks.sources.readers.bad_rows import MOST_DETAILS
from tests.tasks.sources.helpers import column, read, write_lines

GOOD = {"user_input": "Why?", "response": "Because.", "retrieved_contexts": ["It is so."], "reference": "Because."}
NEEDED = {"recall": ("user_input", "retrieved_contexts", "reference"), "accuracy": ("user_input", "response")}

KINDS: dict[str, tuple[Any, str | None, str]] = {
    "number for text": (GOOD | {"response": 5}, "response", "got the number 5, wanted a text"),
    "truth value for text": (GOOD | {"reference": True}, "reference", "got true, wanted a text"),
    "list for text": (GOOD | {"response": ["a"]}, "response", "got the list ['a'], wanted a text"),
    "object for text": (GOOD | {"user_input": {"q": 1}}, "user_input", "got the object {'q': 1}, wanted a text"),
    "text for list": (
        GOOD | {"retrieved_contexts": "one passage"},
        "retrieved_contexts",
        "got the text 'one passage', wanted a list of texts",
    ),
    "null in a list": (
        GOOD | {"retrieved_contexts": ["a", None]},
        "retrieved_contexts",
        "item 2 is null, wanted a list of texts",
    ),
    "objects in a list": (
        GOOD | {"reference_contexts": ["a", {"body": "a"}]},
        "reference_contexts",
        "item 2 is the object {'body': 'a'}, wanted a text, or an object with a text under 'page_content', 'text' or",
    ),
    "text for a list of ids": (
        GOOD | {"reference_context_ids": "d1"},
        "reference_context_ids",
        "got the text 'd1', wanted a list of ids (texts or whole numbers)",
    ),
    "fraction for an id": (
        GOOD | {"retrieved_context_ids": ["d1", 2.5]},
        "retrieved_context_ids",
        "item 2 is the number 2.5, wanted a list of ids (texts or whole numbers)",
    ),
    "key given twice": (
        json.dumps(GOOD)[:-1] + ', "reference": "So."}',
        None,
        "the key 'reference' is given twice, wanted each key once",
    ),
    "key of a part given twice": (
        json.dumps(GOOD)[:-1] + ', "meta": [{"a": 1, "a": 1}]}',
        None,
        "the key 'a' is given twice, wanted each key once",
    ),
    "null in a needed column": (GOOD | {"reference": None}, "reference", "got null, wanted a text (needed by recall)"),
    "needed column not there": (
        {"user_input": "Why?", "response": "Because.", "reference": "Because."},
        "retrieved_contexts",
        "got null, wanted a list of texts (needed by recall)",
    ),
    "not a number in a needed column": (
        json.dumps(GOOD | {"response": float("nan")}),
        "response",
        "got null, wanted a text (needed by accuracy)",
    ),
    "empty text": (GOOD | {"user_input": ""}, "user_input", "got an empty text (needed by recall, accuracy)"),
    "blank text": (GOOD | {"response": " \n\t"}, "response", "got an empty text (needed by accuracy)"),
    "empty row": ({}, None, "the row is empty"),
    "row of nulls": (dict.fromkeys(GOOD), None, "the row is empty"),
    "list": ([1, 2, 3], None, "got the list [1, 2, ...], wanted an object"),
    "number": (17, None, "got the number 17, wanted an object"),
    "null": ("null", None, "got null, wanted an object"),
    "broken JSON": ('{"user_input": "Why', None, "invalid JSON: Unterminated string starting at character 16"),
    "two objects": ("{} {}", None, "invalid JSON: Extra data at character 4"),
    "deep nesting": ("[" * 100_000, None, "JSON that cannot be read: "),
    "endless number": ("9" * 5000, None, "JSON that cannot be read: "),
    "invalid UTF-8": (b'{"user_input": "\xff"}', None, "invalid UTF-8 at byte 17 of the line"),
    "half a surrogate pair": (
        GOOD | {"response": "a\ud800"},
        "response",
        r"character 2 of a text is half of a surrogate pair ('\ud800'), wanted a text that can be stored as UTF-8",
    ),
    "half a surrogate pair in a list": (
        GOOD | {"retrieved_contexts": ["\udfff"]},
        "retrieved_contexts",
        "character 1 of a text is half of a surrogate pair",
    ),
    "one text for a list": (
        GOOD | {"retrieved_contexts": "[1] see the guide"},
        "retrieved_contexts",
        'got the text \'[1] see the guide\', wanted a list of texts, as ["one", "two"]',
    ),
    "null among objects": (
        GOOD | {"retrieved_contexts": [{"page_content": "b", "metadata": {}}, None]},
        "retrieved_contexts",
        "item 2 is null, wanted a text, or an object with a text under 'page_content', 'text' or 'content'",
    ),
    "rubrics as text": (GOOD | {"rubrics": "be kind"}, "rubrics", "got the text 'be kind', wanted a mapping of text"),
    "rubrics with numbers": (
        GOOD | {"rubrics": {"score1_description": 1}},
        "rubrics",
        "the number 1 in the rubrics, wanted a mapping of text to text",
    ),
    "rubrics with a key twice": (
        GOOD | {"rubrics": [{"key": "a", "description": "x"}, {"key": "a", "description": "y"}]},
        "rubrics",
        "the key 'a' twice",
    ),
}


@pytest.mark.parametrize(("row", "where", "problem"), KINDS.values(), ids=KINDS.keys())
def test_every_kind_of_bad_row_is_named(row: Any, where: str | None, problem: str, tmp_path: Path) -> None:
    path = write_lines(tmp_path / "log.jsonl", [GOOD, "", row, GOOD | {"response": "Another."}])
    reader, table = read(path, NEEDED, on_bad_row="skip", empty_text="bad")
    assert column(table, "row_number") == [1, 4]
    assert reader.rows_read == 3
    [bad] = reader.bad_rows
    assert (bad.number, bad.place, bad.column) == (3, "line 3", where)
    assert bad.problem.startswith(problem)
    with pytest.raises(BadRowsError, match="1 of 3 rows"):
        read(path, NEEDED, empty_text="bad")


@pytest.mark.parametrize(
    "row",
    [
        GOOD | {"retrieved_contexts": []},
        GOOD | {"retrieved_contexts": [""]},
        GOOD | {"reference_contexts": None},
        GOOD | {"rubrics": {}},
        GOOD | {"retrieved_contexts": ["a", "b", "c"], "retrieved_context_ids": [1, "b", 3.0]},
        GOOD | {"retrieved_contexts": ["a", "b"], "retrieved_context_scores": [1, None]},
        GOOD | {"response": "nul \x00 character"},
        GOOD | {"anything": [{"deep": [None, float("nan")]}], "": 1},
    ],
)
def test_unusual_rows_are_good(row: dict[str, Any], tmp_path: Path) -> None:
    reader, table = read(write_lines(tmp_path / "log.jsonl", [row]), NEEDED)
    assert table.num_rows == 1
    assert reader.bad_rows == []


def test_null_and_empty_are_bad_only_on_demand_and_where_a_metric_needs_the_column(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "log.jsonl", [GOOD | {"reference": None, "response": ""}])
    _, table = read(path, {"relevance": ("user_input", "retrieved_contexts")}, empty_text="bad")
    assert column(table, "reference") == [None]
    assert column(table, "response") == [""]


@pytest.mark.parametrize(("empty_text", "expected"), [("missing", [None, None, None]), ("keep", ["", " \n", None])])
def test_missing_values_are_good_rows(empty_text: str, expected: list[str | None], tmp_path: Path) -> None:
    rows = [GOOD | {"response": response} for response in ("", " \n", None)]
    reader, table = read(write_lines(tmp_path / "log.jsonl", rows), NEEDED, empty_text=empty_text)
    assert column(table, "response") == expected
    assert reader.bad_rows == []


def test_warnings_count_the_rows_that_lack_a_value(tmp_path: Path) -> None:
    lacking = [GOOD | {"reference": None}, GOOD | {"reference": " "}, GOOD | {"response": None}]
    path = write_lines(tmp_path / "log.jsonl", [GOOD, GOOD | {"retrieved_contexts": []}, *lacking, "[]"])
    reader, _ = read(path, NEEDED, on_bad_row="skip")
    assert reader.warnings == [
        "2 of 5 rows have no value in reference: recall is undefined there",
        "1 of 5 rows have no value in response: accuracy is undefined there",
    ]
    assert list(reader)  # reading again counts again
    assert reader.warnings[0].startswith("2 of 5 rows")


def test_a_column_without_any_value_is_named_with_its_metrics(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "log.jsonl", [GOOD | {"reference": None}, GOOD | {"reference": ""}])
    reader, table = read(path, dict.fromkeys(("a", "b", "c", "d", "e"), ("reference",)))
    assert table.num_rows == 2
    assert reader.warnings == ["none of the 2 rows has a value in reference: a, b, c and 2 more are undefined there"]


MISSING = ["nan", "NaN", "None", "null", "NULL", "NA", "N/A", "n/a", "<NA>", "#N/A", "NaT", "", "  ", " nan "]


@pytest.mark.parametrize("text", MISSING)
@pytest.mark.parametrize("name", ["response", "retrieved_contexts"])
def test_texts_of_a_csv_file_that_stand_for_a_missing_value_are_read_as_one(
    text: str, name: str, tmp_path: Path
) -> None:
    path = tmp_path / "log.csv"
    path.write_text(f'user_input,{name},note\nWhy?,"{text}","{text}"\nHow?,"[""a""]",x\n')
    reader, table = read(path, {"any": (name,)})
    assert column(table, name)[0] is None
    assert reader.warnings[-1] == f"1 of 2 rows have no value in {name}: any is undefined there"
    if text.strip():
        told = f'read as missing values: 1 cell of {name} ({text.strip()!r}); --missing-texts "" reads them as texts'
        assert reader.warnings[0] == told
        assert json.loads(column(table, "extras")[0]) == {"note": text}


def test_texts_that_stand_for_a_missing_value_are_an_option(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("response\nNone\n-\nNot none\n")
    assert column(read(tmp_path / "log.csv", {}, missing_texts="")[1], "response") == ["None", "-", "Not none"]
    assert column(read(tmp_path / "log.csv", {}, missing_texts="-")[1], "response") == ["None", None, "Not none"]
    assert column(read(tmp_path / "log.csv", {})[1], "response") == [None, "-", "Not none"]


def test_such_texts_in_other_formats_are_texts_with_a_warning(tmp_path: Path) -> None:
    rows = [GOOD | {"response": text} for text in ("nan", "None", "Yes.")]
    reader, table = read(write_lines(tmp_path / "log.jsonl", rows), NEEDED)
    assert column(table, "response") == ["nan", "None", "Yes."]
    assert reader.warnings == [
        "evaluated as texts, although they may mean missing values: 2 values of response ('nan', 'None')"
    ]


def test_the_error_names_the_rows_and_the_options(tmp_path: Path) -> None:
    rows = [{"id": 1, **GOOD}, {"id": 1, **GOOD}, {"id": 2, **GOOD, "response": ""}, *[[]] * 12]
    with pytest.raises(BadRowsError) as caught:
        read(write_lines(tmp_path / "log.jsonl", rows), NEEDED, empty_text="bad")
    ways_out = (
        'Correct the data, or: --id-column NAME reads the ids from another column; --id-column "" derives them from '
        "the content; --empty-text missing scores the other metrics of rows that lack a value; "
        "--on-bad-row skip leaves the bad rows out."
    )
    assert str(caught.value).splitlines() == [
        f"14 of 15 rows of {tmp_path}/log.jsonl cannot be evaluated:",
        "  line 2, id: the id '1' is a duplicate, first used in line 1",
        "  line 3, response: got an empty text (needed by accuracy)",
        *[f"  line {number}: got the list [], wanted an object" for number in range(4, 12)],
        "  and 4 more",
        ways_out,
    ]


def test_good_batches_come_before_the_error(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "log.jsonl", [GOOD, [], GOOD | {"response": "Two."}])
    reader = read_samples(path, SourceOptions(batch_rows=1), NEEDED)
    batches = iter(reader)
    assert [next(batches).num_rows, next(batches).num_rows] == [1, 1]
    with pytest.raises(BadRowsError):
        next(batches)


@pytest.mark.parametrize("on_bad_row", ["fail", "skip"])
def test_a_source_of_bad_rows_alone_is_an_error(on_bad_row: str, tmp_path: Path) -> None:
    path = write_lines(tmp_path / "log.jsonl", [GOOD | {"response": 1}, GOOD | {"response": 2}])
    with pytest.raises(SourceError, match="2 of 2 rows"):
        read(path, NEEDED, on_bad_row=on_bad_row)


@pytest.mark.parametrize("on_bad_row", ["fail", "skip"])
def test_a_document_named_as_lines_is_recognized(on_bad_row: str, tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_text(json.dumps([GOOD], indent=1))
    with pytest.raises(SourceError, match=r"or: name a file that is one JSON list \.json\."):
        read(tmp_path / "log.jsonl", NEEDED, on_bad_row=on_bad_row)


def test_a_key_given_twice_is_a_bad_row_of_a_document(tmp_path: Path) -> None:
    good, path = json.dumps(GOOD), tmp_path / "log.json"
    doubled = good[:-1] + ', "reference": "So."}'
    nested = good[:-1] + ', "meta": {"a": 1, "a": 2}}'
    path.write_text(f'{{"data": [{good}, {doubled}, {nested}, {good}]}}')
    with pytest.raises(BadRowsError) as caught:
        read(path)
    assert str(caught.value).splitlines()[1:3] == [
        "  row 2: the key 'reference' is given twice, wanted each key once",
        "  row 3: the key 'a' is given twice, wanted each key once",
    ]
    assert read(path, on_bad_row="skip")[1].num_rows == 2
    path.write_text(f'{{"data": [], "data": [{good}]}}')
    with pytest.raises(SourceError, match=r"log.json gives the key 'data' twice; wanted a list of rows"):
        read(path)
    path.write_text(f"{doubled}\n{good}\n")  # JSON Lines by another name
    with pytest.raises(BadRowsError, match="line 1: the key 'reference' is given twice"):
        read(path)


@pytest.mark.parametrize("cell", ['{"score1": "a", "score1": "b"}', "{'score1': 'a', 'score1': 'b'}"])
def test_a_key_given_twice_in_a_cell_is_a_bad_row(cell: str, tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text('response,rubrics\nYes,"' + cell.replace('"', '""') + '"\n')
    with pytest.raises(SourceError, match="rubrics: the key 'score1' is given twice"):
        read(path, {})


def test_details_are_bounded_but_all_are_counted(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "log.jsonl", [GOOD, *["[]"] * (MOST_DETAILS + 5)])
    reader, _ = read(path, NEEDED, on_bad_row="skip")
    assert len(reader.bad_rows) == MOST_DETAILS
    assert reader.bad_row_count == MOST_DETAILS + 5


def test_reading_again_counts_again(tmp_path: Path) -> None:
    reader, _ = read(write_lines(tmp_path / "log.jsonl", [GOOD, []]), NEEDED, on_bad_row="skip")
    again = pa.concat_tables(list(reader))
    assert (again.num_rows, reader.rows_read, reader.bad_row_count) == (1, 2, 1)


def _csv_reader(tmp_path: Path, text: bytes) -> SampleReader:
    (tmp_path / "log.csv").write_bytes(text)
    options = SourceOptions(on_bad_row="skip", empty_text="bad")
    return read_samples(tmp_path / "log.csv", options, {"any": ("response", "retrieved_contexts")})


CSV_ROWS: dict[str, tuple[bytes, str | None, str]] = {
    "too many cells": (b"a,[],c", None, "got 3 cells, wanted 2 as in the header"),
    "too few cells": (b"a", None, "got 1 cell, wanted 2 as in the header"),
    "text behind a quote": (b'"a"b,[]', None, "invalid CSV: ',' expected after '\"'"),
    "empty": (b",", None, "the row is empty"),
    "empty text": (b",[]", "response", "got an empty cell, wanted a text (needed by any)"),
    "blank text": (b"  ,[]", "response", "got an empty text (needed by any)"),
    "text for a missing value": (b"nan,[]", "response", "got an empty cell, wanted a text (needed by any)"),
    "empty list cell": (b"a,", "retrieved_contexts", "got an empty cell, wanted a list of texts (needed by any)"),
    "text for a list": (b"a,b", "retrieved_contexts", "got the text 'b', wanted a list of texts"),
    "broken list": (b"a,['b'", "retrieved_contexts", "got the text \"['b'\", wanted a list of texts"),
    "number for a list": (b"a,7", "retrieved_contexts", "got the text '7', wanted a list of texts"),
    "forgotten comma": (
        b"a,\"['b' 'c', 'd']\"",
        "retrieved_contexts",
        "3 texts in a list of 2: a comma is missing between two of them",
    ),
    "abridged array": (b"a,['b' ... 'c']", "retrieved_contexts", "got the text \"['b' ... 'c']\", wanted a list"),
    "invalid UTF-8": (b"a\xfe,[]", None, "invalid UTF-8 at byte 2 of line 5"),
}


@pytest.mark.parametrize(("record", "where", "problem"), CSV_ROWS.values(), ids=CSV_ROWS.keys())
def test_bad_records_of_a_csv_file(record: bytes, where: str | None, problem: str, tmp_path: Path) -> None:
    reader = _csv_reader(tmp_path, b'response,retrieved_contexts\n"two\nlines",[]\n\n' + record + b"\nlast,[]\n")
    table = pa.concat_tables(list(reader))
    assert column(table, "response") == ["two\nlines", "last"]
    assert column(table, "row_number") == [1, 3]
    [bad] = reader.bad_rows
    assert (bad.number, bad.place, bad.column) == (2, "row 2 (line 5)", where)
    assert bad.problem.startswith(problem)


def test_a_quote_that_never_closes_is_no_single_bad_row(tmp_path: Path) -> None:
    reader = _csv_reader(tmp_path, b'response,retrieved_contexts\na,[]\n"b,[]\nc,[]\n')
    with pytest.raises(SourceError, match="line 3 on: a quoted cell that begins there never ends"):
        list(reader)


@pytest.mark.parametrize(
    ("value", "kind", "problem"),
    [
        (None, pa.string(), "got null, wanted a text (needed by any)"),
        (5, pa.int64(), "got the number 5, wanted a text"),
        (b"x", pa.binary(), "got the bytes b'x', wanted a text"),
        ("", pa.string(), "got an empty text (needed by any)"),
    ],
)
def test_bad_rows_of_a_parquet_folder(value: object, kind: pa.DataType, problem: str, tmp_path: Path) -> None:
    pq.write_table(pa.table({"response": ["a", "b"]}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"response": pa.array([value], kind), "note": ["x"]}), tmp_path / "2.parquet")
    reader, table = read(tmp_path, {"any": ("response",)}, on_bad_row="skip", empty_text="bad")
    assert table.num_rows == 2
    assert list(map(str, reader.bad_rows)) == [f"row 3 (2.parquet, row 1), response: {problem}"]


def test_invalid_text_in_parquet_is_one_bad_row(tmp_path: Path) -> None:
    broken = pa.Array.from_buffers(pa.string(), 3, pa.array([b"a", b"\xff", b"c"], pa.binary()).buffers())
    pq.write_table(pa.table({"response": broken}), tmp_path / "log.parquet")
    reader, table = read(tmp_path / "log.parquet", {"any": ("response",)}, on_bad_row="skip")
    assert column(table, "response") == ["a", "c"]
    assert [bad.number for bad in reader.bad_rows] == [2]
    assert "a value that cannot be read" in reader.bad_rows[0].problem


def test_extras_that_json_does_not_know_become_text(tmp_path: Path) -> None:
    table = pa.table({"response": ["a"], "at": [datetime.date(2024, 5, 1)], "raw": [b"x"], "share": [float("nan")]})
    pq.write_table(table, tmp_path / "log.parquet")
    _, read_table = read(tmp_path / "log.parquet", {"any": ("response",)})
    assert json.loads(column(read_table, "extras")[0]) == {"at": "2024-05-01", "raw": "b'x'", "share": "nan"}


def test_extras_keep_half_surrogate_pairs_escaped(tmp_path: Path) -> None:
    _, table = read(write_lines(tmp_path / "log.jsonl", [GOOD | {"note": "\ud800"}]), NEEDED)
    assert column(table, "extras") == ['{"note": "\\ud800"}']
