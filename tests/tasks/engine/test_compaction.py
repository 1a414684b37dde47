"""Results that lie in many segments are stored together, and found there by later runs."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from metric_core.stages import Stage
from tasks.engine.compaction import MAX_SEGMENTS, gather_known
from tasks.engine.lookup import look_up, pack_shards, read_known
from tasks.rows.row_store import RowStore
from tasks.rows.shard import Shard
from tasks.stages.verdicts import verdicts
from tests.tasks.engine.small_runs import (
    FAILS,
    SmallRun,
    claims_table,
    make_plan,
    run_small,
    verdicts_table,
    write_shards,
)

STAGES = (Stage.CLAIMS, Stage.VERDICTS)


def grow(folder: Path, count: int, first: str = "one", *, elsewhere: bool = False) -> tuple[SmallRun, dict[str, str]]:
    """Run as many times, each time with one row more, in one shard."""
    rows: dict[str, str] = {}
    for number in range(count):
        rows[f"r{number}"] = first if not number else f"word{number}"
        run = run_small(make_plan(str(folder), shard_rows=100), rows, elsewhere=elsewhere)
    return run, rows


def rows_of(ids: Sequence[str]) -> dict[str, str]:
    return {row_id: f"word {row_id}" for row_id in ids}


def files(folder: Path) -> set[Path]:
    return set((folder / "rows").rglob("*.parquet"))


def test_few_segments_stay(tmp_path: Path) -> None:
    run, rows = grow(tmp_path, MAX_SEGMENTS)
    assert [run.segments(stage) for stage in STAGES] == [[MAX_SEGMENTS]] * 2
    before = files(tmp_path)
    assert len(before) == 2 * MAX_SEGMENTS
    run_small(make_plan(str(tmp_path), shard_rows=100), rows)
    assert files(tmp_path) == before


def test_one_more_makes_them_one(tmp_path: Path) -> None:
    run, rows = grow(tmp_path, MAX_SEGMENTS + 1)
    assert [run.segments(stage) for stage in STAGES] == [[1], [1]]
    before = files(tmp_path)
    later = run_small(make_plan(str(tmp_path), shard_rows=100), rows)
    assert [later.segments(stage) for stage in STAGES] == [[1], [1]]
    assert later.asked == {Stage.CLAIMS: [], Stage.VERDICTS: []}
    assert later.table(Stage.CLAIMS).equals(claims_table(rows).combine_chunks())
    assert later.table(Stage.VERDICTS).equals(verdicts_table(rows).combine_chunks())
    assert files(tmp_path) == before


def test_a_row_with_a_failed_answer_stays_one_that_is_not_found(tmp_path: Path) -> None:
    _, rows = grow(tmp_path, MAX_SEGMENTS + 1, first=f"one {FAILS}")
    again = run_small(make_plan(str(tmp_path), shard_rows=100), rows)
    assert again.asked == {Stage.CLAIMS: [], Stage.VERDICTS: ["r0"]}


@pytest.mark.parametrize("elsewhere", [False, True])
def test_costs_of_found_results_stay_the_same(tmp_path: Path, elsewhere: bool) -> None:
    run, rows = grow(tmp_path, MAX_SEGMENTS + 1, elsewhere=elsewhere)
    later = run_small(make_plan(str(tmp_path), shard_rows=100), rows)
    placed = later.tables.places[Stage.CLAIMS][0]
    usage = later.tables.store.usage_of([placed])
    assert (usage.questions, usage.stored) == (len(rows), len(rows))
    assert run.tables.usage(Stage.CLAIMS).questions == 1


def test_a_source_in_another_order_leaves_the_segments(tmp_path: Path) -> None:
    plan, ids = make_plan(str(tmp_path), shard_rows=10), [f"r{number}" for number in range(100)]

    def run(stride: int) -> SmallRun:
        """Run over the rows in steps of a stride, so that a shard has rows of all shards of the first run."""
        order = [ids[(place * stride + place * stride // 100) % 100] for place in range(100)]
        assert sorted(order) == sorted(ids)
        return run_small(plan, rows_of(order))

    run(1)
    before = files(tmp_path)
    scattered = run(10)
    assert files(tmp_path) == before
    assert scattered.segments(Stage.CLAIMS) == [10] * 10
    assert scattered.asked == {Stage.CLAIMS: [], Stage.VERDICTS: []}


def test_what_other_processes_read_lies_in_one_segment_per_shard(tmp_path: Path) -> None:
    ids = [f"r{number}" for number in range(60)]
    run_small(make_plan(str(tmp_path), shard_rows=10), rows_of(ids))
    order = rows_of([row_id for place in range(10) for row_id in ids[place::10]])
    plan = make_plan(str(tmp_path), shard_rows=10)
    plan = replace(plan, steps={**plan.steps, Stage.VERDICTS: replace(plan.steps[Stage.VERDICTS], recipe="another")})
    store = RowStore(str(tmp_path))

    def pack() -> list[Shard]:
        return [*pack_shards(look_up(plan, store, write_shards(plan, order)), 10, store.arrays)]

    assert [len(shard.places[Stage.CLAIMS].segments) for shard in pack()] == [6] * 6
    wanted = [known[Stage.CLAIMS] for known in read_known(plan, store, pack(), whole=True)]
    gathered = [*gather_known(plan, store, pack())]
    assert [len(shard.places[Stage.CLAIMS].segments) for shard in gathered] == [1] * 6
    for shard, rows in zip(gathered, wanted, strict=True):
        (found,) = read_known(plan, RowStore(str(tmp_path)), [shard], whole=True)
        assert found[Stage.CLAIMS].table.equals(rows.table)
        assert found[Stage.CLAIMS].digests.tobytes() == rows.digests.tobytes()
    before = files(tmp_path)
    in_order = [
        *gather_known(
            plan, store, [*pack_shards(look_up(plan, store, write_shards(plan, rows_of(ids))), 10, store.arrays)]
        )
    ]
    assert files(tmp_path) == before  # results in the order of the source are read where they are
    assert [len(shard.places[Stage.CLAIMS].segments) for shard in in_order] == [1] * 6


def test_of_known_results_only_the_columns_are_read_that_a_missing_stage_reads(tmp_path: Path) -> None:
    rows = rows_of(["r0", "r1"])
    run_small(make_plan(str(tmp_path)), rows)
    plan = make_plan(str(tmp_path), refresh=(Stage.VERDICTS,))
    store = RowStore(str(tmp_path))
    (shard,) = pack_shards(look_up(plan, store, write_shards(plan, rows)), 10, store.arrays)
    (narrow,), (whole,) = (read_known(plan, store, [shard], whole=whole) for whole in (False, True))
    names = verdicts.columns[Stage.CLAIMS]
    assert set(names) < set(whole[Stage.CLAIMS].table.column_names)
    assert narrow[Stage.CLAIMS].table.equals(whole[Stage.CLAIMS].table.select(sorted(names)))


def test_many_segments_per_shard_are_stored_together(tmp_path: Path) -> None:
    plan = make_plan(str(tmp_path), shard_rows=1)
    rows = {f"r{number}": f"word{number}" for number in range(2 * MAX_SEGMENTS)}
    run_small(plan, rows)
    run = run_small(make_plan(str(tmp_path), shard_rows=MAX_SEGMENTS), rows)
    assert [run.segments(stage) for stage in STAGES] == [[1, 1], [1, 1]]
    assert run.table(Stage.CLAIMS).equals(claims_table(rows).combine_chunks())
