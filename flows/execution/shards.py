"""The shards that are on their way through the stages: few at a time, whatever the length of a run."""

from collections import deque
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from prefect.futures import PrefectFuture

from flows.config.run_config import RunConfig
from flows.execution.runners import max_concurrent_shards
from metric_core.stages import Stage
from tasks.runtime import progress
from tasks.runtime.usage import StageUsage
from tasks.tables.table_store import StageRef

CACHED = "Cached"
"""Prefect's name for the state of a task whose result was kept."""


@dataclass(frozen=True, slots=True)
class Submitted:
    """A stage of a shard that has been submitted.

    Args:
        future: of its table.
        rows: how many samples it is computed for.
    """

    future: PrefectFuture[StageRef]
    rows: int


Way: TypeAlias = Generator[Mapping[Stage, Submitted], Mapping[Stage, StageRef], Sequence[StageRef]]
"""A shard's way through the stages: gives what it has submitted, goes on with the tables, returns those of the shard.

Nothing is submitted before it is the shard's turn.
"""


class Shards:
    """The shards in hand, and the references of those that are done.

    A stage that runs in another process can not say how far it is; for it is said here, in rows, shard by shard.

    Args:
        config: says how many shards are in hand at the same time, and where stages run.
        rows: stage -> the rows that it is computed for, of all shards.
    """

    def __init__(self, config: RunConfig, rows: Mapping[Stage, int]) -> None:
        self._most = max_concurrent_shards(config)
        self._tells = config.runner.engine != "threads"
        self._in_hand: deque[tuple[int, Way, Mapping[Stage, Submitted]]] = deque()
        self._done: dict[int, Sequence[StageRef]] = {}
        self._count = 0
        if self._tells:
            for stage, total in rows.items():
                progress.advance(stage, 0, total)

    def add(self, way: Way) -> None:
        """Sends a shard on its way, as soon as there are not too many in hand."""
        while len(self._in_hand) >= self._most:
            self._go_on()
        number, self._count = self._count, self._count + 1
        self._enter(number, way, None)

    def finished(self) -> list[StageRef]:
        """The tables of all shards, in the order in which they were added, when all are done."""
        while self._in_hand:
            self._go_on()
        return [ref for number in sorted(self._done) for ref in self._done[number]]

    def _go_on(self) -> None:
        """Waits for the first shard in hand, and sends it on; it is the last one then."""
        number, way, submitted = self._in_hand.popleft()
        tables = {}
        for stage, running in submitted.items():
            tables[stage] = wait_for_ref(running.future)
            if self._tells:
                progress.advance(stage, running.rows)
        self._enter(number, way, tables)

    def _enter(self, number: int, way: Way, tables: Mapping[Stage, StageRef] | None) -> None:
        try:
            submitted = next(way) if tables is None else way.send(tables)
        except StopIteration as end:
            self._done[number] = end.value
        else:
            self._in_hand.append((number, way, submitted))


def wait_for_ref(future: PrefectFuture[StageRef]) -> StageRef:
    """The reference to a stage's table; one that was kept cost this run nothing."""
    ref = future.result()
    if future.state.name != CACHED:
        return ref
    return ref.model_copy(update={"usage": StageUsage(questions=ref.usage.questions, stored=ref.usage.questions)})
