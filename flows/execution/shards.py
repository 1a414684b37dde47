"""Compute the stages of a run shard by shard, a few shards at a time however long the run is."""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from prefect.futures import PrefectFuture

from flows.execution.runners import max_concurrent_shards
from flows.execution.spending import count_elsewhere
from flows.planning.run_plan import StoragePlan
from metric_core.stages import Stage
from tasks.options.run_model_options import RunModelOptions
from tasks.runtime import progress
from tasks.tables.table_store import StageRef


@dataclass(frozen=True, slots=True)
class Submitted:
    """A stage of a shard that has been submitted.

    Args:
        future: Future of its table.
        rows: Number of samples that it is computed for.
    """

    future: PrefectFuture[StageRef]
    rows: int


class Shard(ABC):
    """A shard of a run, with the tables computed for it so far.

    Args:
        number: Position of the shard among all shards, from 0.
        tables: Tables of the shard; `advance` and `collect` add those of later stages.
    """

    def __init__(self, number: int, tables: Mapping[Stage, StageRef]) -> None:
        self.number = number
        self.tables = dict(tables)

    @abstractmethod
    def submit(self, level: Sequence[Stage]) -> Mapping[Stage, Submitted]:
        """Submit the stages of a level, except those whose tables are kept.

        Called when the tables of the level before are collected.
        """

    def collect(self, done: Mapping[Stage, StageRef]) -> None:
        """Add the tables of the submitted stages."""
        self.tables.update(done)


@dataclass(frozen=True, slots=True)
class _Work:
    """A shard, the level that it has reached, and the stages submitted for that level."""

    shard: Shard
    level: int
    submitted: Mapping[Stage, Submitted]


class ShardQueue:
    """A queue of shards and the level that each has reached.

    Results are awaited for the shard at the head, which then rejoins at the tail with its next level. Stages that run
    in another process cannot report their progress; the queue reports it for them, in rows, shard by shard.

    Args:
        storage: Place where the stages are computed, which limits the shards in the queue.
        models: Models of the run, and their prices.
        levels: Stages to submit together, level by level.
        rows: Number of rows that each stage is computed for, over all shards.
    """

    def __init__(
        self,
        storage: StoragePlan,
        models: RunModelOptions,
        levels: Sequence[Sequence[Stage]],
        rows: Mapping[Stage, int],
    ) -> None:
        self._models = models
        self._levels = levels
        self._limit = max_concurrent_shards(storage)
        self._reports = storage.runner.engine != "threads"
        self._queue: deque[_Work] = deque()
        self._done: dict[int, Sequence[StageRef]] = {}
        if self._reports:
            for stage, total in rows.items():
                progress.advance(stage, 0, total)

    def run(self, shards: Iterable[Shard]) -> list[StageRef]:
        """Compute all levels of all shards and return their tables, in the order of the shards.

        Args:
            shards: Shards, taken lazily: at most one before there is room for it in the queue.
        """
        for shard in shards:
            while len(self._queue) >= self._limit:
                self._advance()
            self._submit(shard, 0)
        while self._queue:
            self._advance()
        return [ref for number in sorted(self._done) for ref in self._done[number]]

    def _submit(self, shard: Shard, level: int) -> None:
        if level < len(self._levels):
            self._queue.append(_Work(shard, level, shard.submit(self._levels[level])))
        else:
            self._done[shard.number] = tuple(shard.tables.values())

    def _advance(self) -> None:
        """Wait for the work at the head of the queue, and submit the next level of its shard."""
        work = self._queue.popleft()
        tables = {}
        for stage, submitted in work.submitted.items():
            tables[stage] = submitted.future.result()
            if self._reports:
                count_elsewhere(self._models, tables[stage].usage)
                progress.advance(stage, submitted.rows)
        work.shard.collect(tables)
        self._submit(work.shard, work.level + 1)
