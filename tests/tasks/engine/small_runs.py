"""Runs of two stages over rows of words, in one process and without a judge.

The first stage makes a claim of each word of a response; the second gives a verdict on each claim, and reads nothing
else. The verdict on the word `fails` fails, so its row is asked about in each run.
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, field
from threading import Lock

import numpy as np
import pyarrow as pa

from metric_core.stages import Stage
from tasks.engine.compaction import compact
from tasks.engine.computation import Compute
from tasks.engine.lookup import Given, look_up, pack_shards, read_known
from tasks.engine.schedule import Schedule, open_schedule
from tasks.engine.stage_step import EnginePlan, StageStep
from tasks.options.settings import Settings
from tasks.rows.computed_tables import RunTables
from tasks.rows.records import build_table
from tasks.rows.row_digests import digest_rows
from tasks.rows.row_store import RowStore
from tasks.rows.shard import Shard
from tasks.rows.stage_rows import StageRows
from tasks.rows.table_store import Samples, TableStore
from tasks.runtime.usage import StageUsage
from tasks.stages.definition import StageOutput, Tables
from tests.tasks.builders import samples_table

FAILS = "fails"
READS: Mapping[Stage, tuple[Stage, ...]] = {Stage.CLAIMS: (Stage.SAMPLES,), Stage.VERDICTS: (Stage.CLAIMS,)}


def samples(rows: Mapping[str, str]) -> pa.Table:
    """Return the samples with these responses by row id."""
    return samples_table(*({"row_id": row_id, "response": response} for row_id, response in rows.items()))


def rows_of_samples(table: pa.Table) -> StageRows:
    """Return samples as what a stage reads."""
    return StageRows.of_samples(table, digest_rows(table, np.arange(table.num_rows + 1), Stage.SAMPLES))


def claims_table(rows: Mapping[str, str]) -> pa.Table:
    """Return the claims of rows, none for a response without words."""
    return build_table(
        Stage.CLAIMS,
        [
            {"row_id": row_id, "side": "response", "claim_id": f"response:{k}", "text": word, "status": "answered"}
            for row_id, response in rows.items()
            for k, word in enumerate(response.split())
        ],
    )


def verdicts_table(rows: Mapping[str, str]) -> pa.Table:
    """Return the verdicts on the claims of rows."""
    return build_table(
        Stage.VERDICTS,
        [
            {
                "row_id": row_id,
                "kind": "support",
                "claim_id": f"response:{k}",
                "premise": "contexts",
                "verdict": None if word == FAILS else len(word) % 2,
                "status": "failed" if word == FAILS else "answered",
            }
            for row_id, response in rows.items()
            for k, word in enumerate(response.split())
        ],
    )


def make_plan(
    root: str, window_rows: int = 2, shard_rows: int = 4, recipe: str | None = "one way", refresh: Sequence[Stage] = ()
) -> EnginePlan:
    """Return the plan of a run.

    Args:
        root: Folder of the store.
        window_rows: Number of rows per window.
        shard_rows: Maximum number of rows per shard.
        recipe: Recipe of both stages.
        refresh: Stages that are computed for all rows.
    """
    steps = {stage: StageStep(stage, Settings(), reads, recipe, stage in refresh) for stage, reads in READS.items()}
    return EnginePlan(steps, root, window_rows, shard_rows)


@dataclass
class Asked:
    """The functions of the stages, which note the rows that they compute.

    Args:
        rows: Ids of the rows that were computed, by stage.
    """

    rows: dict[Stage, list[str]] = field(default_factory=lambda: {stage: [] for stage in READS})
    lock: Lock = field(default_factory=Lock)

    def compute(self, stage: Stage) -> Compute:
        """Return the function of a stage."""

        def claims(tables: Tables) -> StageOutput:
            read = tables[Stage.SAMPLES].select(["row_id", "response"]).to_pydict()
            return self._note(stage, claims_table(dict(zip(read["row_id"], read["response"], strict=True))))

        def verdicts(tables: Tables) -> StageOutput:
            words: dict[str, list[str]] = {}
            for claim in tables[Stage.CLAIMS].to_pylist():
                words.setdefault(claim["row_id"], []).append(claim["text"])
            return self._note(stage, verdicts_table({row_id: " ".join(each) for row_id, each in words.items()}))

        return claims if stage is Stage.CLAIMS else verdicts

    def _note(self, stage: Stage, table: pa.Table) -> StageOutput:
        with self.lock:
            self.rows[stage] += list(dict.fromkeys(table["row_id"].to_pylist()))
        return StageOutput(table, StageUsage(questions=table.num_rows))


@dataclass(frozen=True)
class SmallRun:
    """A run.

    Args:
        tables: Its tables.
        asked: Ids of the rows that each stage computed and that have words, sorted.
    """

    tables: RunTables
    asked: Mapping[Stage, Sequence[str]]

    def table(self, stage: Stage) -> pa.Table:
        """Return the whole table of a stage."""
        return pa.concat_tables(self.tables.shards(stage)).combine_chunks()

    def segments(self, stage: Stage) -> list[int]:
        """Return the number of segments that have the results of each shard."""
        return [len(places.segments) for places in self.tables.places[stage]]


def run_small(
    plan: EnginePlan,
    rows: Mapping[str, str],
    store: RowStore | None = None,
    given: Given | None = None,
    *,
    elsewhere: bool = False,
) -> SmallRun:
    """Compute the stages for rows as a run does.

    Args:
        plan: Plan of the run.
        rows: Responses by row id.
        store: Row store; None for a new one, as in a new process.
        given: Results that are taken as they are.
        elsewhere: True to compute shards as another process does.
    """
    store, asked = store or RowStore(plan.tables), Asked()
    refs = write_shards(plan, rows)
    shards = look_up(plan, store, refs, given)
    usages = dict.fromkeys(plan.steps, StageUsage())
    for shard in pack_shards(shards, plan.shard_rows, store.arrays):
        with open_schedule(plan, RowStore(plan.tables) if elsewhere else store, 3) as schedule:
            compute_shard(shard, schedule, asked).give_back(shards)
        for stage, usage in shard.usages.items():
            usages[stage] += usage
    if given is None:
        compact(plan, store, shards)
    places = {stage: [shard.places[stage] for shard in shards] for stage in plan.steps}
    tables = RunTables(store, refs, places, usages)
    return SmallRun(tables, {stage: sorted(found) for stage, found in asked.rows.items()})


def write_shards(plan: EnginePlan, rows: Mapping[str, str]) -> list[Samples]:
    """Write the samples of rows, shard by shard."""
    table, store = samples(rows), TableStore(plan.tables)
    starts = range(0, table.num_rows, plan.shard_rows)
    return [store.write(table.slice(start, plan.shard_rows)) for start in starts]


def compute_shard(shard: Shard, schedule: Schedule, asked: Asked) -> Shard:
    """Compute the stages of a shard, each in a thread as their tasks do."""
    (known,) = read_known(schedule.plan, schedule.store, [shard])
    opened = schedule.open_shard(shard, known)
    with ThreadPoolExecutor() as threads:
        futures = [
            threads.submit(copy_context().run, windows.compute, asked.compute(windows.step.stage))
            for windows in reversed(opened)
        ]
        for future in futures:
            future.result()
    schedule.close_shard(opened)
    return shard
