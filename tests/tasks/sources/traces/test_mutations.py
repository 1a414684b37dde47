"""Damaged records never stop the reading of traces: whatever they hold, they are rows or have a reason."""

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

from tests.tasks.sources.traces import test_otlp, test_products
from tests.tasks.sources.traces.builders import Recorder, otlp_json, read_traces, write_json_lines

JUNK: list[Any] = [
    *(None, 5, -1.5, True, "", "x", "{", "[1", [], {}, [None], [[]], {"a": 1}, [{"a": [1]}], "{'a': }", "\ud800"),
    *("[{1: 2}]", "{1: 2}", {"role": [], "data": {"content": "x"}}, [{"content": [{"type": []}], "role": "ai"}]),
    *([{"role": "user", "content": None}], {"role": 5}, {"kwargs": 5}, [{"document": 5}], {"id": []}, float("nan")),
]
Place = tuple[str | int, ...]


def places(value: Any, place: Place = ()) -> Iterator[Place]:
    """Yield the places of all values inside a value."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield (*place, key)
        yield from places(inner, (*place, key))


def mutate(record: Any, random: Random) -> Any:
    """Return a record with one value in it removed or replaced."""
    record = copy.deepcopy(record)
    *path, last = random.choice(list(places(record)))
    holder = record
    for key in path:
        holder = holder[key]
    if isinstance(holder, dict) and random.random() < 0.3:
        holder.pop(last)
    else:
        holder[last] = copy.deepcopy(random.choice(JUNK))
    return record


def test_mutated_records_are_rows_or_have_a_reason(tmp_path: Path) -> None:
    recorder = Recorder()
    test_otlp.record(recorder)
    test_otlp.gen_ai(recorder, as_events=True)
    products = [
        test_products.LANGFUSE_TRACE,
        *test_products.LANGFUSE_OBSERVATIONS,
        *test_products.RUNS,
        *test_products.PHOENIX,
    ]
    originals = [otlp_json(recorder.spans), *products, *(json.loads(span.to_json()) for span in recorder.spans)]
    random = Random(1)
    for number in range(10):
        records = [mutate(random.choice(originals), random) for _ in range(50)]
        reader, rows = read_traces(write_json_lines(tmp_path / f"{number}.jsonl", records))
        assert len(rows) + reader.bad_row_count == reader.rows_read
        assert all(row["row_id"] and isinstance(row["user_input"], str | None) for row in rows)
        assert all(bad.problem for bad in reader.bad_rows)
