"""Rows that lack a result are packed, each once and in order, and their results put back where they belong."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from metric_core.schemas import SAMPLES
from metric_core.stages import Stage
from tasks.engine.lookup import LookedUpShard, look_up, pack_shards
from tasks.rows.placed_rows import PlacedRows, Segment
from tasks.rows.row_digests import Digests
from tasks.rows.row_store import RowStore
from tasks.tables.table_store import StageRef, TableStore
from tests.tasks.engine.small_runs import make_plan, run_small, samples

PATTERNS = st.lists(st.lists(st.tuples(st.booleans(), st.booleans()), max_size=6), max_size=5)
"""For each row of each shard, whether the results of two stages are known."""

REF = StageRef(stage=Stage.SAMPLES, path="", digest="", rows=0, schema_version=1)


def digests_of(numbers: Sequence[int]) -> Digests:
    return np.frombuffer(b"".join(number.to_bytes(16, "little") for number in numbers), "V16")


def place(numbers: Sequence[int], are_known: Sequence[bool], path: str) -> PlacedRows:
    """Return places of known results, whose digests are the numbers of the rows."""
    known = np.array(are_known, bool)
    segment, zeros = np.where(known, 0, -1).astype(np.int32), np.zeros(len(numbers), np.int32)
    return PlacedRows((Segment(path),), segment, zeros, zeros, digests_of(numbers)).select(np.arange(len(numbers)))


def looked_up(pattern: Sequence[Sequence[tuple[bool, bool]]]) -> list[LookedUpShard]:
    """Return shards whose rows are numbered through."""
    shards, first = [], 0
    for rows in pattern:
        numbers = range(first, first + len(rows))
        claims, verdicts = ([row[place] for row in rows] for place in (0, 1))
        placed = {Stage.CLAIMS: place(numbers, claims, "claims"), Stage.VERDICTS: place(numbers, verdicts, "verdicts")}
        shards.append(LookedUpShard(REF, digests_of(numbers), placed))
        first += len(rows)
    return shards


@given(PATTERNS, st.integers(1, 4))
def test_each_row_that_lacks_a_result_is_packed_once(pattern: list[list[tuple[bool, bool]]], limit: int) -> None:
    shards = looked_up(pattern)
    packed = list(pack_shards(shards, limit))
    assert [shard.number for shard in packed] == list(range(len(packed)))
    assert all(len(shard) == limit for shard in packed[:-1])
    assert all(0 < len(shard) <= limit for shard in packed)
    opened = [shard.open(shards) for shard in packed]
    everything = [known for rows in pattern for known in rows]
    wanted = [number for number, known in enumerate(everything) if not all(known)]
    assert b"".join(shard.digests.tobytes() for shard in opened) == digests_of(wanted).tobytes()
    for place_of_stage, stage in enumerate((Stage.CLAIMS, Stage.VERDICTS)):
        missing = [bool(each) for shard in opened for each in shard.known[stage].missing]
        assert missing == [not everything[number][place_of_stage] for number in wanted]


@given(PATTERNS, st.integers(1, 4))
def test_results_are_put_where_the_rows_are(pattern: list[list[tuple[bool, bool]]], limit: int) -> None:
    shards = looked_up(pattern)
    for packed in list(pack_shards(shards, limit)):
        rows = packed.open(shards)
        for stage in shards[0].placed:
            computed = PlacedRows.nothing(len(packed)).fill(
                np.arange(len(packed)),
                PlacedRows(
                    (Segment(f"{stage} {packed.number}"),),
                    np.zeros(len(packed), np.int32),
                    np.arange(len(packed), dtype=np.int32),
                    np.ones(len(packed), np.int32),
                    rows.digests,
                ),
            )
            packed.fill(shards, stage, computed)
    first = 0
    for shard in shards:
        numbers = range(first, first + len(shard.digests))
        first += len(numbers)
        assert not len(shard.find_incomplete())
        assert all(placed.digests.tobytes() == digests_of(numbers).tobytes() for placed in shard.placed.values())


def test_a_stage_is_looked_up_once_what_it_reads_is_known(tmp_path: Path) -> None:
    plan = make_plan(str(tmp_path))
    run_small(plan, {"a": "one", "b": "two"})
    ref = TableStore(str(tmp_path)).write(samples({"a": "one", "b": "  two", "c": "one"}), SAMPLES)
    found = look_up(plan, RowStore(str(tmp_path)), ref).placed
    # The response of the second row has changed; that its claims have not is not known before they are made.
    assert {stage: placed.missing.tolist() for stage, placed in found.items()} == {
        Stage.CLAIMS: [False, True, True],
        Stage.VERDICTS: [False, True, True],
    }


class Given:
    """Results that are given for some rows."""

    def __init__(self, store: RowStore, placed: PlacedRows, ids: Sequence[str]) -> None:
        self.store = store
        self._placed = placed
        self._ids = ids

    def place(self, stage: Stage, row_ids: pa.Array) -> PlacedRows:
        """Return the places of the claims of some rows."""
        nothing = PlacedRows.nothing(len(row_ids))
        if stage is not Stage.CLAIMS:
            return nothing
        positions = [row_ids.to_pylist().index(row_id) for row_id in self._ids]
        return nothing.fill(np.array(positions), self._placed)


def test_results_that_are_given_are_taken_and_the_others_looked_up(tmp_path: Path) -> None:
    plan = make_plan(str(tmp_path))
    tables = run_small(plan, {"a": "one", "b": "two"}).tables
    given_claims = tables.placed[Stage.CLAIMS][0].select(np.array([1]))
    rows = {"a": "one", "b": "another response", "c": "three"}
    ref = TableStore(str(tmp_path)).write(samples(rows), SAMPLES)
    store = RowStore(str(tmp_path))
    found = look_up(plan, store, ref, Given(store, given_claims, ["b"]))
    assert {stage: placed.missing.tolist() for stage, placed in found.placed.items()} == {
        Stage.CLAIMS: [False, False, True],
        Stage.VERDICTS: [False, False, True],  # those on the given claims are stored too
    }
    assert found.placed[Stage.CLAIMS].digests[1] == given_claims.digests[0]


def test_samples_are_found_wherever_they_are_in_a_shard(tmp_path: Path) -> None:
    rows = {name: f"word{name}" for name in "abcdef"}
    plan = make_plan(str(tmp_path))
    run_small(plan, rows)
    again = run_small(plan, dict(sorted(rows.items(), reverse=True)))
    assert again.asked == {Stage.CLAIMS: [], Stage.VERDICTS: []}
    assert again.table(Stage.CLAIMS)["row_id"].to_pylist() == sorted(rows, reverse=True)
