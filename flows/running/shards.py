"""The shards that are on their way through the stages: few at a time, whatever the length of a run."""

from collections import deque
from collections.abc import Iterable, Mapping

from prefect.futures import PrefectFuture

from flows.config import RunConfig
from flows.running.runners import shards_at_once
from metric_core.products import Stage
from tasks import progress
from tasks.tables.store import StageRef
from tasks.usage import StageUsage

CACHED = "Cached"
"""Prefect's name for the state of a task whose result was kept."""


class Shards:
    """The shards in hand, and the references of those that are done.

    A stage that runs in another process can not say how far it is; for it is said here, in rows, shard by shard.

    Args:
        config: says how many shards are in hand at the same time, and where stages run.
        stages: the stages of every shard.
        rows: rows of all shards.
    """

    def __init__(self, config: RunConfig, stages: Iterable[Stage], rows: int) -> None:
        self._most = shards_at_once(config)
        self._tells = config.runner.engine != "threads"
        self._in_hand: deque[tuple[int, Mapping[Stage, PrefectFuture[StageRef]]]] = deque()
        self._refs: list[StageRef] = []
        if self._tells:
            for stage in stages:
                progress.advance(stage, 0, rows)

    def add(self, rows: int, futures: Mapping[Stage, PrefectFuture[StageRef]]) -> None:
        """Takes a shard whose stages have been submitted; waits for the first one in hand if there are too many.

        Args:
            rows: rows of the shard.
            futures: of its tables.
        """
        self._in_hand.append((rows, futures))
        if len(self._in_hand) >= self._most:
            self._finish_first()

    def finished(self) -> list[StageRef]:
        """The tables of all shards, when all are done."""
        while self._in_hand:
            self._finish_first()
        return self._refs

    def _finish_first(self) -> None:
        rows, futures = self._in_hand.popleft()
        for stage, future in futures.items():
            self._refs.append(ref_of(future))
            if self._tells:
                progress.advance(stage, rows)


def ref_of(future: PrefectFuture[StageRef]) -> StageRef:
    """The reference to a stage's table; one that was kept cost this run nothing."""
    ref = future.result()
    if future.state.name != CACHED:
        return ref
    return ref.model_copy(update={"usage": StageUsage(questions=ref.usage.questions, stored=ref.usage.questions)})
