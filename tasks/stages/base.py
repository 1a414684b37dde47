"""The one wrapper that makes a stage's function a Prefect task.

A stage is a plain function from tables and settings to a table. Wrapped, it takes references and returns one, so
that tables never pass through Prefect: the wrapper reads the inputs, measures, and stores the output.
"""

import hashlib
import importlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version as version_of
from typing import Any, Generic, TypeAlias, TypeVar, cast

import pyarrow as pa
from prefect import Task
from prefect.cache_policies import NO_CACHE, CachePolicy
from prefect.client.schemas.objects import State, TaskRun
from prefect.context import TaskRunContext
from prefect.futures import PrefectFuture

from metric_core.schemas import SCHEMAS
from metric_core.stages import Stage
from tasks.models.models import reset_clients_for_run
from tasks.options.settings import Settings
from tasks.prefect_support.concurrency_limits import hold_slot
from tasks.prefect_support.locks import ProcessLocks
from tasks.prefect_support.stage_results import StageRefSerializer, StageResults
from tasks.runtime import progress
from tasks.runtime.usage import StageUsage
from tasks.tables.table_store import StageRef, TableStore, read

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


@dataclass(frozen=True, slots=True)
class TableStorage:
    """Where a stage's tables are kept, and under which key.

    Args:
        tables: root of the store of stage tables.
        identity: digest of all that determines the table besides the tables it is made from; None for a stage that
            is always computed.
        refresh: compute the table although it is there.
    """

    tables: str
    identity: str | None = None
    refresh: bool = False


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
        self._task = make_prefect_task(stage, version, self._run, f"{stage}-{{shard}}")

    def submit(
        self, refs: Sequence["StageRef | PrefectFuture[Any]"], settings: S, keeping: TableStorage, shard: int
    ) -> "PrefectFuture[Any]":
        """Starts the stage for one shard, unless its table is there.

        Args:
            refs: the tables it reads, as references or as futures of them.
            settings: what it needs to know.
            keeping: where its table is kept.
            shard: number of the shard, for people.

        Returns:
            A future of the StageRef of its table.
        """
        task = self._task if keeping.identity is None else self._kept(keeping)
        return task.submit(list(refs), settings, keeping.tables, shard)

    def __reduce__(self) -> tuple[Callable[[str, str], "StageTask[Any]"], tuple[str, str]]:
        """What another process gets of a stage is its name: the code is its own."""
        return _stage_of, (self.compute.__module__, self.compute.__name__)

    def key(self, refs: Sequence[StageRef], identity: str) -> str:
        """The key of the table that is made from these tables: equal keys, equal tables."""
        content = [self.stage, self.version, SCHEMAS[self.stage].version, version_of("rag-assay"), identity]
        content += [[ref.stage, ref.digest] for ref in refs]
        return hashlib.sha256(json.dumps(content).encode()).hexdigest()

    def _kept(self, keeping: TableStorage) -> Task[..., Any]:
        policy = _StageKey(self, keeping.identity or "")
        task = self._task.with_options(
            persist_result=True,
            result_serializer=StageRefSerializer(),
            cache_policy=policy.configure(isolation_level="SERIALIZABLE", lock_manager=ProcessLocks()),
            refresh_cache=keeping.refresh,
        )
        # As an option, Prefect takes only storage that is saved on its server, where it would outlive the folder.
        task.result_storage = StageResults(root=keeping.tables)
        return task

    def _run(self, refs: list[StageRef], settings: S, tables: str, shard: int) -> StageRef:
        del shard  # only names the task run
        start = time.monotonic()
        if (context := TaskRunContext.get()) is not None:
            reset_clients_for_run(str(context.task_run.flow_run_id))
        with hold_slot(settings):
            output = self.compute({ref.stage: read(ref) for ref in refs}, settings)
        usage = output.usage + StageUsage(seconds=time.monotonic() - start)
        return TableStore(tables).write(output.table, SCHEMAS[self.stage], usage)


class _StageKey(CachePolicy):
    """Prefect's way to ask for a key: from the references that the task was given."""

    def __init__(self, stage_task: StageTask[Any], identity: str) -> None:
        super().__init__()
        self._stage_task = stage_task
        self._identity = identity

    def compute_key(
        self, task_ctx: TaskRunContext, inputs: dict[str, Any], flow_parameters: dict[str, Any], **kwargs: Any
    ) -> str:
        """The key of the table."""
        del task_ctx, flow_parameters, kwargs
        return self._stage_task.key(inputs["refs"], self._identity)


def _stage_of(module: str, name: str) -> StageTask[Any]:
    found: StageTask[Any] = getattr(importlib.import_module(module), name)
    return found


def stage(name: Stage, version: int) -> Callable[[Callable[[Tables, S], StageOutput]], StageTask[S]]:
    """Decorates a stage's function; the function stays callable as `.compute`."""

    def wrap(compute: Callable[[Tables, S], StageOutput]) -> StageTask[S]:
        return StageTask(name, version, compute)

    return wrap


def make_prefect_task(name: Stage, version: int, function: Callable[..., Any], run_name: str) -> Task[..., Any]:
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


def run_here(task: Task[..., Any], *arguments: Any) -> Any:
    """The result of a task that runs in the flow's own process, wherever the stages run.

    Whatever reads the user's files or writes the run folder does: other machines do not see them.
    """
    return cast("Callable[..., Any]", task)(*arguments)


def progress_reporter(name: Stage) -> Callable[[int, int], None]:
    """A function that reports how far a stage is: units done, and by how many its total grew."""
    return lambda done, total: progress.advance(name, done, total)


def _is_transient(_task: Task[..., Any], _run: TaskRun, state: State[Any]) -> bool:
    return isinstance(state.data, ConnectionError | TimeoutError)
