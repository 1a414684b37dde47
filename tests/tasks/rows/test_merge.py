"""Selecting and sorting rows of stage tables."""

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from metric_core.stages import Stage
from tasks.rows import merge
from tasks.rows.merge import select_rows, sort_rows, take_rows
from tasks.rows.records import build_table


def claims(*rows: tuple[str, str]) -> pa.Table:
    return build_table(
        Stage.CLAIMS, [{"row_id": row, "side": "response", "text": text, "status": "answered"} for row, text in rows]
    )


def texts(table: pa.Table) -> list[str]:
    found: list[str] = table["text"].to_pylist()
    return found


def test_rows_of_one_sample_stay_in_their_order() -> None:
    table = claims(("c", "c1"), ("a", "a1"), ("b", "b1"), ("c", "c2"), ("a", "a2"))
    assert texts(sort_rows(table, pa.array(["a", "b", "c"]))) == ["a1", "a2", "b1", "c1", "c2"]


def test_selecting_rows_keeps_the_schema_with_its_version() -> None:
    part = select_rows(claims(("a", "a1"), ("b", "b1")), {"b"})
    assert texts(part) == ["b1"]
    assert part.schema.metadata[b"assay.stage"] == b"claims"


@st.composite
def runs_of_rows(draw: st.DrawFn) -> tuple[int, list[int]]:
    """Draw a size of a table, and numbers of its rows in runs of all lengths, in any order."""
    size = draw(st.integers(0, 200))
    bounds = sorted(draw(st.sets(st.integers(0, size), max_size=8)) | {0, size})
    runs = [range(start, end) for start, end in pairwise(bounds)]
    chosen = draw(st.permutations(runs))[: draw(st.integers(0, len(runs)))]
    return size, [row for run in chosen for row in run]


@given(runs_of_rows(), st.integers(1, 3))
def test_rows_are_those_of_arrow_however_they_lie(drawn: tuple[int, list[int]], chunks: int) -> None:
    size, numbers = drawn
    whole = claims(*((f"row-{i}", f"text {i}") for i in range(size)))
    bounds = [size * i // chunks for i in range(chunks + 1)]
    table = pa.concat_tables(whole.slice(start, end - start) for start, end in pairwise(bounds))
    rows = np.array(numbers, np.int64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(merge, "LONG_RUN", 8)
        found = take_rows(table, rows)
    assert found.schema == table.schema
    assert found.equals(table.take(rows))


def test_long_runs_are_not_copied() -> None:
    table = pa.table({"number": pa.array(range(1000))})
    found = take_rows(table, np.r_[100:1000])
    assert found["number"].chunk(0).buffers()[1].address == table["number"].chunk(0).buffers()[1].address
    assert take_rows(table, np.r_[0:300])["number"].chunk(0).buffers()[1].size < 8 * 1000  # the whole is not kept
