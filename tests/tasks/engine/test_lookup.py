"""Rows that lack a result are packed, each once and in order, and their results put back where they belong."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from metric_core.stages import Stage
from tasks.engine import lookup
from tasks.engine.lookup import look_up, pack_shards
from tasks.rows import mapped_arrays
from tasks.rows.mapped_arrays import MappedArrays
from tasks.rows.places import Places, Segment
from tasks.rows.row_digests import Digests
from tasks.rows.row_store import RowStore
from tasks.rows.shard import Shard
from tasks.rows.table_store import Samples, TableStore
from tasks.runtime.usage import StageUsage
from tests.tasks.engine.small_runs import make_plan, run_small, samples

PATTERNS = st.lists(st.lists(st.tuples(st.booleans(), st.booleans()), max_size=6), max_size=5)
"""For each row of each shard, whether the results of two stages are known."""

REF = Samples(path="", digest="", rows=0, schema_version=1)


def digests_of(numbers: Sequence[int]) -> Digests:
    return np.frombuffer(b"".join(number.to_bytes(16, "little") for number in numbers), "V16")


def place(numbers: Sequence[int], are_known: Sequence[bool], path: str) -> Places:
    """Return places of known results, whose digests are the numbers of the rows."""
    known = np.array(are_known, bool)
    segment, zeros = np.where(known, 0, -1).astype(np.int32), np.zeros(len(numbers), np.int32)
    return Places((Segment(path),), segment, zeros, zeros, digests_of(numbers)).select(np.arange(len(numbers)))


def looked_up(pattern: Sequence[Sequence[tuple[bool, bool]]]) -> list[Shard]:
    """Return shards whose rows are numbered through."""
    shards: list[Shard] = []
    first = 0
    for rows in pattern:
        numbers = range(first, first + len(rows))
        claims, verdicts = ([row[place] for row in rows] for place in (0, 1))
        places = {Stage.CLAIMS: place(numbers, claims, "claims"), Stage.VERDICTS: place(numbers, verdicts, "verdicts")}
        parts = ((len(shards), np.arange(len(rows))),)
        shards.append(Shard(len(shards), (REF,), parts, digests_of(numbers), places))
        first += len(rows)
    return shards


@pytest.mark.parametrize("shards_in_memory", [1, 1024])
@given(PATTERNS, st.integers(1, 4))
def test_each_row_that_lacks_a_result_is_packed_once(
    shards_in_memory: int, pattern: list[list[tuple[bool, bool]]], limit: int
) -> None:
    shards = looked_up(pattern)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lookup, "SHARDS_IN_MEMORY", shards_in_memory)
        patch.setattr(mapped_arrays, "MAPPED_BYTES", 1)
        packed = list(pack_shards(shards, limit, MappedArrays()))
    assert [shard.number for shard in packed] == list(range(len(packed)))
    assert all(len(shard) == limit for shard in packed[:-1])
    assert all(0 < len(shard) <= limit for shard in packed)
    everything = [known for rows in pattern for known in rows]
    wanted = [number for number, known in enumerate(everything) if not all(known)]
    assert b"".join(shard.digests.tobytes() for shard in packed) == digests_of(wanted).tobytes()
    for place_of_stage, stage in enumerate((Stage.CLAIMS, Stage.VERDICTS)):
        missing = [bool(each) for shard in packed for each in shard.places[stage].missing]
        assert missing == [not everything[number][place_of_stage] for number in wanted]


@given(PATTERNS, st.integers(1, 4))
def test_results_are_put_where_the_rows_are(pattern: list[list[tuple[bool, bool]]], limit: int) -> None:
    shards = looked_up(pattern)
    for shard in pack_shards(shards, limit, MappedArrays()):
        for stage in shard.missing:
            everything, ones = np.arange(len(shard), dtype=np.int32), np.ones(len(shard), np.int32)
            computed = Places((Segment(f"{stage} {shard.number}"),), ones - 1, everything, ones, shard.digests)
            shard.add(stage, computed, StageUsage())
        shard.give_back(shards)
    first = 0
    for shard in shards:
        numbers = range(first, first + len(shard.digests))
        first += len(numbers)
        assert not len(shard.find_incomplete())
        assert all(places.digests.tobytes() == digests_of(numbers).tobytes() for places in shard.places.values())


def test_a_stage_is_looked_up_once_what_it_reads_is_known(tmp_path: Path) -> None:
    plan = make_plan(str(tmp_path))
    run_small(plan, {"a": "one", "b": "two"})
    ref = TableStore(str(tmp_path)).write(samples({"a": "one", "b": "  two", "c": "one"}))
    (found,) = look_up(plan, RowStore(str(tmp_path)), [ref])
    # The response of the second row has changed; that its claims have not is not known before they are made.
    assert {stage: places.missing.tolist() for stage, places in found.places.items()} == {
        Stage.CLAIMS: [False, True, True],
        Stage.VERDICTS: [False, True, True],
    }


def test_results_that_are_given_are_taken_and_the_others_looked_up(tmp_path: Path) -> None:
    plan = make_plan(str(tmp_path))
    tables = run_small(plan, {"a": "one", "b": "two"}).tables
    given_claims = tables.places[Stage.CLAIMS][0].select(np.array([1]))
    rows = {"a": "one", "b": "another response", "c": "three"}
    ref = TableStore(str(tmp_path)).write(samples(rows))

    def give(_store: RowStore, stage: Stage, row_ids: pa.Array) -> Places:
        """Return the places of the claims of one row."""
        nothing = Places.nothing(len(row_ids))
        if stage is not Stage.CLAIMS:
            return nothing
        return nothing.fill(np.array([row_ids.to_pylist().index("b")]), given_claims)

    (found,) = look_up(plan, RowStore(str(tmp_path)), [ref], give)
    assert {stage: places.missing.tolist() for stage, places in found.places.items()} == {
        Stage.CLAIMS: [False, False, True],
        Stage.VERDICTS: [False, False, True],  # those on the given claims are stored too
    }
    assert found.places[Stage.CLAIMS].digests[1] == given_claims.digests[0]


def test_samples_are_found_wherever_they_are_in_a_shard(tmp_path: Path) -> None:
    rows = {name: f"word{name}" for name in "abcdef"}
    plan = make_plan(str(tmp_path))
    run_small(plan, rows)
    again = run_small(plan, dict(sorted(rows.items(), reverse=True)))
    assert again.asked == {Stage.CLAIMS: [], Stage.VERDICTS: []}
    assert again.table(Stage.CLAIMS)["row_id"].to_pylist() == sorted(rows, reverse=True)


@pytest.mark.parametrize("elsewhere", [False, True])
def test_each_row_is_looked_up_once_in_each_stage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, elsewhere: bool
) -> None:
    looked_up: Counter[Stage] = Counter()
    find = RowStore.find

    def count(store: RowStore, stage: Stage, recipe: str, keys: Digests) -> Places:
        looked_up[stage] += len(keys)
        return find(store, stage, recipe, keys)

    monkeypatch.setattr(RowStore, "find", count)
    rows = {f"r{number}": f"word{number % 7} fails" for number in range(10)}
    plan = make_plan(str(tmp_path))
    for changed in ({}, {"r3": "another response"}, {"r4": "  word4 fails"}, {}):
        rows |= changed
        run_small(plan, rows, elsewhere=elsewhere)
        assert looked_up == {Stage.CLAIMS: len(rows), Stage.VERDICTS: len(rows)}
        looked_up.clear()
