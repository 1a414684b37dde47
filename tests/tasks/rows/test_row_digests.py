"""Digests of rows are equal if and only if the rows are, however their table is laid out in memory."""

import itertools
import struct
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from metric_core.schemas import SAMPLES, SCHEMAS
from metric_core.stages import Stage
from tasks.rows.records import build_table
from tasks.rows.row_digests import bounds_of, digest_rows, row_keys
from tests.tasks.builders import samples_table

GOLDEN = ["acd108b6b65eacb3b30d4e5a572f2321", "389c6668781ba083357693bf6a7ebe6d", "ef15b0d7ac71a06d749a51e8211b4fa3"]
"""If these change, every stored row is computed again."""

_TEXTS = st.text(alphabet="ab\x00é", max_size=3)


def _values(kind: pa.DataType, nullable: bool) -> st.SearchStrategy[Any]:
    """Return cells of a type, few enough that equal ones are common."""
    if pa.types.is_string(kind):
        values: st.SearchStrategy[Any] = _TEXTS
    elif pa.types.is_boolean(kind):
        values = st.booleans()
    elif pa.types.is_integer(kind):
        values = st.integers(-1, 1)
    elif pa.types.is_floating(kind):
        values = st.sampled_from([0.0, -0.0, 0.5, float("nan")])
    elif pa.types.is_list(kind):
        values = st.lists(_values(kind.value_type, nullable=True), max_size=3)
    else:
        values = st.fixed_dictionaries({field.name: _values(field.type, field.nullable) for field in kind})
    return st.none() | values if nullable else values


@st.composite
def _tables(draw: st.DrawFn, stage: Stage) -> tuple[pa.Table, Sequence[int]]:
    """Return a table, and the bounds of its samples."""
    schema = SCHEMAS[stage].arrow
    row = st.fixed_dictionaries({field.name: _values(field.type, field.nullable) for field in schema})
    few = draw(st.lists(row, min_size=1, max_size=3))
    rows = draw(st.lists(st.sampled_from(few), max_size=8))
    cuts = draw(st.lists(st.integers(0, len(rows)), max_size=6))
    return pa.Table.from_pylist(rows, schema=schema), [0, *sorted(cuts), len(rows)]


def _content(value: Any) -> Any:
    """Return a cell such that equal ones have equal bytes: 0.0 and -0.0 differ, and NaN equals itself."""
    if isinstance(value, float):
        return struct.pack("d", value)
    if isinstance(value, Mapping):
        return tuple((name, _content(member)) for name, member in value.items())
    return tuple(map(_content, value)) if isinstance(value, list) else value


def _contents(table: pa.Table, bounds: Sequence[int]) -> list[Any]:
    rows = [tuple(_content(value) for name, value in row.items() if name != "row_number") for row in table.to_pylist()]
    return [tuple(rows[start:end]) for start, end in itertools.pairwise(bounds)]


def _laid_out_otherwise(draw: st.DrawFn, table: pa.Table) -> pa.Table:
    """Return an equal table: in chunks that are slices of longer arrays, with other bytes below its nulls."""
    cuts = sorted({0, table.num_rows, *draw(st.lists(st.integers(0, table.num_rows), max_size=3))})
    twice = pa.concat_tables([table, table]).combine_chunks()
    parts = [twice.slice(start, end - start) for start, end in itertools.pairwise(cuts)]
    return pa.concat_tables([table.slice(0, 0), *parts])


@pytest.mark.parametrize("stage", SCHEMAS)
def test_digests_are_equal_exactly_if_the_rows_are(stage: Stage) -> None:
    @given(st.data())
    def check(data: st.DataObject) -> None:
        table, bounds = data.draw(_tables(stage))
        digests = [bytes(digest) for digest in digest_rows(table, np.array(bounds), stage)]
        contents = _contents(table, bounds)
        assert len(digests) == len(contents)
        for one, content in zip(digests, contents, strict=True):
            assert [other == one for other in digests] == [other == content for other in contents]
        otherwise = data.draw(st.composite(lambda draw: _laid_out_otherwise(draw, table))())
        assert [bytes(digest) for digest in digest_rows(otherwise, np.array(bounds), stage)] == digests
        alone = [
            bytes(digest_rows(table.slice(start, end - start), np.array([0, end - start]), stage)[0])
            for start, end in itertools.pairwise(bounds)
        ]
        assert alone == digests

    check()


def test_cells_that_are_easily_confused_differ() -> None:
    several: list[dict[str, Any]] = [
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
        {"rubrics": [{"key": "score1", "description": None}]},
        {"retrieved_context_scores": [0.5, 0.25]},
        {"retrieved_context_scores": [None, 0.5]},
        {"earlier_contexts": None, "tool_results": ["three"]},
        {"earlier_contexts": ["three"], "earlier_answers": []},
        {"conversation": "User: Hi!"},
        {"earlier_turns": "User: Hi!"},
        {"relevance_judgments": [{"id": "1", "grade": 3.0}]},
        {"relevance_judgments": []},
        {},
    ]
    row: dict[str, Any] = {
        "row_id": "a",
        "user_input": "Why?",
        "response": "It rains.",
        "retrieved_contexts": ["one", "two"],
    }
    row |= {"reference_contexts": [], "rubrics": [{"key": "score1", "description": "wet"}]}
    table = samples_table(*({**row, **cells} for cells in several))
    digests = {bytes(digest) for digest in digest_rows(table, np.arange(len(several) + 1), Stage.SAMPLES)}
    assert len(digests) == len(several)


def test_digests_are_those_of_earlier_versions() -> None:
    samples = samples_table({"row_id": "a", "user_input": "Why?", "retrieved_contexts": ["one", "two"]})
    similarity = {"row_id": "a", "pair": "response", "k": 0, "cosine": 0.5, "status": "answered"}
    tables = {Stage.SAMPLES: samples, Stage.SIMILARITY: build_table(Stage.SIMILARITY, [similarity, similarity])}
    found = [digest_rows(table, np.array([0, table.num_rows]), stage) for stage, table in tables.items()]
    found.append(row_keys("ask for questions in one way", found))
    assert [digest.tobytes().hex() for digest in found] == GOLDEN


def _masked(kind: pa.DataType, values: Sequence[Any], below: Sequence[Any]) -> pa.Array:
    """Return an array with nulls, below which other values lie."""
    filled = pa.array([one if two is None else two for one, two in zip(below, values, strict=True)], kind)
    mask = pa.array([value is not None for value in values]).buffers()[1]
    buffers = [mask, *filled.buffers()[1:]]
    if pa.types.is_list(kind):
        return pa.Array.from_buffers(kind, len(values), [mask, filled.buffers()[1]], children=[filled.values])
    if pa.types.is_struct(kind):
        members = [filled.field(number) for number in range(kind.num_fields)]
        return pa.Array.from_buffers(kind, len(values), [mask], children=members)
    return pa.Array.from_buffers(kind, len(values), buffers)


def test_bytes_below_nulls_do_not_matter() -> None:
    bounds = np.array([0, 1, 2, 3])
    for name, values, below in (
        ("user_input", ["a", None, "b"], ["", "under", ""]),
        ("retrieved_contexts", [["a"], None, ["b", None]], [[], ["under", None], []]),
        ("rubrics", [None, None, []], [[{"key": "k", "description": None}], [], []]),
        ("retrieved_context_scores", [None, [0.5], None], [[1.5, 2.5], [], [None]]),
    ):
        plain = samples_table({}, {}, {})
        position, kind = plain.schema.get_field_index(name), plain.schema.field(name).type
        tables = [
            plain.set_column(position, plain.schema.field(name), array)
            for array in (pa.array(values, kind), _masked(kind, values, below))
        ]
        one, other = (digest_rows(table, bounds, Stage.SAMPLES) for table in tables)
        assert tables[0].equals(tables[1])
        assert one.tobytes() == other.tobytes()
    similarity = SCHEMAS[Stage.SIMILARITY].arrow
    numbers = [pa.array([1, None, 3], pa.int32()), _masked(pa.int32(), [1, None, 3], [0, 7, 0])]
    texts = pa.array(["x", "x", "x"])
    cosines = pa.array([0.5, None, None])
    one, other = (
        digest_rows(
            pa.Table.from_arrays([texts, texts, k, cosines, texts, texts], schema=similarity), bounds, Stage.SIMILARITY
        )
        for k in numbers
    )
    assert one.tobytes() == other.tobytes()


def test_an_optional_column_counts_only_where_it_has_a_value() -> None:
    rows = [{"user_input": "Why?"}, {"user_input": "How?"}]
    scored = samples_table(rows[0], {**rows[1], "retrieved_context_scores": [0.5]})
    bounds = np.arange(3)
    plain = samples_table(*rows).drop_columns(list(SAMPLES.optional))
    expected = [bytes(digest) for digest in digest_rows(plain, bounds, Stage.SAMPLES)]
    for table in (samples_table(*rows), scored.drop_columns(["retrieved_context_scores"])):
        assert [bytes(digest) for digest in digest_rows(table, bounds, Stage.SAMPLES)] == expected
    found = [bytes(digest) for digest in digest_rows(scored, bounds, Stage.SAMPLES)]
    assert (found[0] == expected[0], found[1] == expected[1]) == (True, False)


def test_position_in_the_source_does_not_change_the_digest() -> None:
    one, other = samples_table({"row_number": 1}), samples_table({"row_number": 7})
    assert digest_rows(one, np.arange(2), Stage.SAMPLES) == digest_rows(other, np.arange(2), Stage.SAMPLES)


def test_keys_follow_from_the_recipe_and_each_input_in_its_place() -> None:
    samples = samples_table({"user_input": "Why?"}, {"user_input": "How?"})
    one = digest_rows(samples, np.arange(3), Stage.SAMPLES)
    other = one[::-1].copy()
    several = [
        row_keys(recipe, inputs)
        for recipe in ("ask once", "ask twice")
        for inputs in ([one], [other], [one, other], [other, one], [one, one])
    ]
    swapped = row_keys("ask once", [other])
    assert [bytes(key) for key in swapped[::-1]] == [bytes(key) for key in row_keys("ask once", [one])]
    firsts = {bytes(keys[0]) for keys in several}
    assert len(firsts) == len(several)
    assert len(row_keys("ask once", [one[:0], one[:0]])) == 0


def test_bounds_include_samples_without_rows() -> None:
    table = pa.table({"row_id": ["b", "b", "d"]})
    assert bounds_of(table, pa.array(["a", "b", "c", "d", "e"])).tolist() == [0, 0, 2, 2, 3, 3]
    assert bounds_of(table.slice(0, 0), pa.array([], pa.string())).tolist() == [0]
