"""The one wrapper that makes a stage's function a Prefect task.

A stage is a plain function from tables and settings to a table. Wrapped, it takes references and returns one, so
that tables never pass through Prefect: the wrapper reads the inputs, measures, and stores the output.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeAlias, TypeVar

import pyarrow as pa
from prefect import Task
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State, TaskRun
from prefect.futures import PrefectFuture

from metric_core.products import Stage
from metric_core.schemas import SCHEMAS
from tasks import progress
from tasks.settings import Settings
from tasks.tables.store import StageRef, TableStore, read
from tasks.usage import StageUsage

Tables: TypeAlias = Mapping[Stage, pa.Table]
S = TypeVar("S", bound=Settings)

RETRIES = 2
RETRY_SECONDS = [1.0, 10.0]


@dataclass(frozen=True, slots=True)
class StageOutput:
    """What a stage's function returns.

    Args:
        table: in the stage's schema.
        usage: what it cost; the wrapper fills in the seconds.
    """

    table: pa.Table
    usage: StageUsage = field(default_factory=StageUsage)


class StageTask(Generic[S]):
    """A stage as a Prefect task.

    Args:
        stage: its name, in Prefect's interface too.
        version: raised whenever the same inputs would give another table.
        compute: tables of the stages before it and its settings -> its own table.
    """

    def __init__(self, stage: Stage, version: int, compute: Callable[[Tables, S], StageOutput]) -> None:
        self.stage = stage
        self.version = version
        self.compute = compute
        self._task = prefect_task(stage, version, self._run, f"{stage}-{{shard}}")

    def submit(
        self, refs: Sequence["StageRef | PrefectFuture[Any]"], settings: S, tables: str, shard: int
    ) -> "PrefectFuture[Any]":
        """Starts the stage for one shard.

        Args:
            refs: the tables it reads, as references or as futures of them.
            settings: what it needs to know.
            tables: root of the store of stage tables.
            shard: number of the shard, for people.

        Returns:
            A future of the StageRef of its table.
        """
        return self._task.submit(list(refs), settings, tables, shard)

    def _run(self, refs: list[StageRef], settings: S, tables: str, shard: int) -> StageRef:
        del shard  # only names the task run
        start = time.monotonic()
        output = self.compute({ref.stage: read(ref) for ref in refs}, settings)
        usage = output.usage + StageUsage(seconds=time.monotonic() - start)
        return TableStore(tables).write(output.table, SCHEMAS[self.stage], usage)


def stage(name: Stage, version: int) -> Callable[[Callable[[Tables, S], StageOutput]], StageTask[S]]:
    """Decorates a stage's function; the function stays callable as `.compute`."""

    def wrap(compute: Callable[[Tables, S], StageOutput]) -> StageTask[S]:
        return StageTask(name, version, compute)

    return wrap


def prefect_task(name: Stage, version: int, function: Callable[..., Any], run_name: str) -> Task[..., Any]:
    """A Prefect task with what all stages have in common: the name, retries for transient faults, quiet results."""
    return Task(
        function,
        name=str(name),
        version=str(version),
        task_run_name=run_name,
        cache_policy=NO_CACHE,
        persist_result=False,
        retries=RETRIES,
        retry_delay_seconds=RETRY_SECONDS,
        retry_condition_fn=_is_transient,
    )


def report(name: Stage) -> Callable[[int, int], None]:
    """A function that reports how far a stage is: units done, and by how many its total grew."""
    return lambda done, total: progress.advance(name, done, total)


def _is_transient(_task: Task[..., Any], _run: TaskRun, state: State[Any]) -> bool:
    return isinstance(state.data, ConnectionError | TimeoutError)
