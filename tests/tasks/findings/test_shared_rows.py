"""A run whose means are of different rows says how many rows they have in common."""

from types import SimpleNamespace
from typing import cast

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.findings.finding import RunRecords, WrittenRows
from tasks.findings.shared_rows.shared_rows_finding import SharedRows, count, how_to_read

METRICS = ("faithfulness", "answer_correctness", "context_recall")


def write_scores(scored: dict[str, set[int]], rows: int, shards: int = 2) -> WrittenRows:
    """Return a run in shards whose metrics have scores of these rows."""
    cells = [
        [(f"row-{row}", metric, 0.5 if row in scored.get(metric, ()) else None) for metric in METRICS]
        for row in range(rows)
    ]
    tables = [
        pa.Table.from_pylist(
            [dict(zip(("row_id", "metric", "value"), cell, strict=True)) for row in cells[i::shards] for cell in row],
            schema=pa.schema([("row_id", pa.string()), ("metric", pa.string()), ("value", pa.float64())]),
        )
        for i in range(shards)
    ]
    requests = [SimpleNamespace(key=metric) for metric in METRICS]
    run = SimpleNamespace(folder=SimpleNamespace(read_shards=lambda *_: iter(tables)), requests=requests)
    return cast("WrittenRows", run)


def test_the_rows_that_have_every_score_are_counted() -> None:
    scored = {"faithfulness": set(range(20)), "answer_correctness": set(range(12, 20)) - {13}}
    (found,) = count(write_scores(scored, 20))
    assert found == SharedRows(rows=7, metrics={"faithfulness": 20, "answer_correctness": 7})
    summary = SimpleNamespace(find=lambda _: found)
    (sentence,) = how_to_read(cast("RunRecords", SimpleNamespace(summary=summary)))
    assert sentence == "Means of different rows: faithfulness 20, answer_correctness 7; 7 rows have every score."


@pytest.mark.parametrize("scored", [{}, {"faithfulness": {1, 2}}, {key: set(range(20)) for key in METRICS}])
def test_means_of_the_same_rows_have_no_sentence(scored: dict[str, set[int]]) -> None:
    assert list(count(write_scores(scored, 20))) == []


@given(st.lists(st.sets(st.integers(0, 19)), min_size=3, max_size=3))
def test_there_is_a_sentence_exactly_if_a_tenth_of_the_rows_lacks_a_score(sets: list[set[int]]) -> None:
    scored = {metric: rows for metric, rows in zip(METRICS, sets, strict=True) if rows}
    shared = len(set.intersection(*scored.values())) if scored else 0
    is_said = bool(scored) and shared < 0.9 * max(map(len, scored.values()))
    assert bool(list(count(write_scores(scored, 20)))) is is_said
