"""Run stages as Prefect tasks.

A task takes references to tables and returns one, so that tables never pass through Prefect. A table is computed window
by window: in the process of the run, the stages of a shard pass their windows on to each other while they compute; in
another process, a stage starts when the tables that it reads are stored.
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from prefect.context import TaskRunContext
from prefect.futures import PrefectFuture

from metric_core.schemas import SCHEMAS
from metric_core.stages import Stage
from tasks.models.run_models import RunModels, models_for
from tasks.options.settings import Settings
from tasks.prefect_support.concurrency_limits import hold_slot
from tasks.runtime import progress
from tasks.stages.definition import StageDefinition, StageOutput, Tables
from tasks.stages.fingerprint import settings_fingerprint
from tasks.stages.formulas import digest_formulas
from tasks.stages.prefect_task import make_prefect_task
from tasks.stages.registry import STAGES
from tasks.tables.kept_tables import KeptTables
from tasks.tables.table_store import StageRef, TableStore
from tasks.windows.schedule import ShardWindows, open_schedule

WINDOWS_ELSEWHERE = 2
"""Windows that a stage in another process computes at the same time: the second keeps the judge busy while the first
ends."""

TABLE_ORDER = "by sample"
"""Order of the rows of a table, which is part of its key: tables of earlier versions had another one."""


@dataclass(frozen=True, slots=True)
class TableStorage:
    """The place of a stage's tables in the table store.

    Args:
        tables: Root of the table store.
        identity: Digest of everything but the input tables that determines the table; None for a stage that is always
            computed.
        refresh: True to compute the table even if it is stored.
    """

    tables: str
    identity: str | None = None
    refresh: bool = False


class StageTask:
    """A stage as a Prefect task.

    Args:
        definition: Declaration of the stage.
    """

    def __init__(self, definition: StageDefinition[Any]) -> None:
        self.definition = definition
        self._task = make_prefect_task(definition.stage, definition.version, self._run, f"{definition.stage}-{{shard}}")

    def submit(
        self,
        inputs: Mapping[Stage, "StageRef | PrefectFuture[Any] | None"],
        settings: Settings,
        storage: TableStorage,
        shard: int,
        windows: ShardWindows | int,
    ) -> "PrefectFuture[Any]":
        """Start the stage for one shard.

        Args:
            inputs: Tables that it reads, as references or as futures of references; None for tables that come window
                by window.
            settings: Settings of the stage.
            storage: Place of its table.
            shard: Number of the shard, which names the task run.
            windows: Windows of the shard, in this process; in another one, the number of rows per window.

        Returns:
            A future of the StageRef of its table.
        """
        refs = [ref for ref in inputs.values() if ref is not None]
        return self._task.submit(list(inputs), refs, settings, storage, shard, windows)

    def find(self, refs: Sequence[StageRef], storage: TableStorage, kept: KeptTables) -> StageRef | None:
        """Return the table computed from these tables, if it is kept and not to be refreshed.

        Args:
            refs: Tables that the stage reads.
            storage: Place of its table.
            kept: Tables that are kept there.
        """
        if storage.identity is None or storage.refresh:
            return None
        return kept.find(self.key(refs, storage.identity))

    def __reduce__(self) -> tuple[Callable[[Stage], "StageTask"], tuple[Stage]]:
        """Pickle only the name of the stage, because the other process has the code."""
        return _stage_task, (self.definition.stage,)

    def fingerprint(self, settings: Settings, models: RunModels) -> str:
        """Return the digest of everything that the settings determine.

        Args:
            settings: Settings of the stage.
            models: Models of the run, which the settings select from.

        Raises:
            AssayError: A model that the settings name cannot be opened.
        """
        return settings_fingerprint(settings, models.select(settings), self.definition.asks)

    def identity(self, settings: Settings, models: RunModels) -> str | None:
        """Return the digest of everything but the input tables that determines a table; None if it cannot be kept.

        Args:
            settings: Settings of the stage.
            models: Models of the run, which the settings select from.

        Raises:
            AssayError: A model that the settings name cannot be opened.
        """
        if self.definition.formulas is None:
            return self.fingerprint(settings, models) if self.definition.cached else None
        formulas = self.definition.formulas(settings)
        return None if formulas is None else f"{self.fingerprint(settings, models)}/{formulas}"

    def key(self, refs: Sequence[StageRef], identity: str) -> str:
        """Return the cache key of the table computed from these tables; equal keys mean equal tables.

        Args:
            refs: Tables that the stage reads.
            identity: Digest of everything else that determines the table.
        """
        stage, version = self.definition.stage, self.definition.version
        content = [stage, version, SCHEMAS[stage].version, digest_formulas(), identity]
        content += [TABLE_ORDER, *([ref.stage, ref.digest] for ref in refs)]
        return hashlib.sha256(json.dumps(content).encode()).hexdigest()

    def recipe(self, reads: Sequence[Stage], storage: TableStorage) -> str | None:
        """Return the digest of everything but the input tables that determines a table; None if it is always computed.

        Args:
            reads: Stages that the run includes and that it reads.
            storage: Place of its table.
        """
        if storage.identity is None:
            return None
        return f"{self.key((), storage.identity)} {' '.join(reads)}"

    def _run(  # noqa: PLR0913, PLR0917 parameters of a Prefect task
        self,
        reads: list[Stage],
        refs: list[StageRef],
        settings: Settings,
        storage: TableStorage,
        shard: int,
        windows: ShardWindows | int,
    ) -> StageRef:
        del shard  # only names the task run
        if not isinstance(windows, int):
            return self._compute(windows, reads, settings, storage)
        if (found := self.find(refs, storage, KeptTables(storage.tables))) is not None:
            return found
        with open_schedule(WINDOWS_ELSEWHERE) as schedule:
            given = {ref.stage: ref for ref in refs}
            alone = schedule.open_shard(given[Stage.SAMPLES], given, (), windows)
            return self._compute(alone, reads, settings, storage)

    def _compute(
        self, windows: ShardWindows, reads: Sequence[Stage], settings: Settings, storage: TableStorage
    ) -> StageRef:
        """Compute the table window by window, store it, and record it under its key."""
        stage, models = self.definition.stage, _models_of_run().select(settings)

        def compute(tables: Tables) -> StageOutput:
            with hold_slot(settings, self.definition.asked_kinds(settings), models.judge):
                return self.definition.compute(tables, settings, models, partial(progress.advance, stage))

        output = windows.compute(stage, reads, compute, is_judged=bool(self.definition.asks))
        ref = TableStore(storage.tables).write(output.table, SCHEMAS[stage], output.usage)
        if storage.identity is not None:
            KeptTables(storage.tables).keep(self.key(windows.refs_of(reads), storage.identity), ref)
        windows.finish(stage, ref)
        return ref


def _stage_task(stage: Stage) -> StageTask:
    return STAGE_TASKS[stage]


def _models_of_run() -> RunModels:
    context = TaskRunContext.get()
    return RunModels() if context is None else models_for(str(context.task_run.flow_run_id))


STAGE_TASKS: dict[Stage, StageTask] = {stage: StageTask(definition) for stage, definition in STAGES.items()}
"""The stages that work shard by shard, as Prefect tasks."""
