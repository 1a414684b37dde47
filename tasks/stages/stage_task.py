"""Run stages as Prefect tasks.

A task takes references to tables and returns one, so that tables never pass through Prefect: it reads the input tables,
computes, and stores the output table.
"""

import hashlib
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version as version_of
from typing import Any

from prefect.context import TaskRunContext
from prefect.futures import PrefectFuture

from metric_core.schemas import SCHEMAS
from metric_core.stages import Stage
from tasks.models.run_models import RunModels, models_for
from tasks.options.settings import Settings
from tasks.prefect_support.concurrency_limits import hold_slot
from tasks.runtime import progress
from tasks.runtime.usage import StageUsage
from tasks.stages.definition import StageDefinition
from tasks.stages.fingerprint import settings_fingerprint
from tasks.stages.prefect_task import make_prefect_task
from tasks.stages.registry import STAGES
from tasks.tables.kept_tables import KeptTables
from tasks.tables.table_store import StageRef, TableStore, read


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
        self, refs: Sequence["StageRef | PrefectFuture[Any]"], settings: Settings, storage: TableStorage, shard: int
    ) -> "PrefectFuture[Any]":
        """Start the stage for one shard.

        Args:
            refs: Tables that it reads, as references or as futures of references.
            settings: Settings of the stage.
            storage: Place of its table.
            shard: Number of the shard, which names the task run.

        Returns:
            A future of the StageRef of its table.
        """
        return self._task.submit(list(refs), settings, storage, shard)

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

    def key(self, refs: Sequence[StageRef], identity: str) -> str:
        """Return the cache key of the table computed from these tables; equal keys mean equal tables.

        Args:
            refs: Tables that the stage reads.
            identity: Digest of everything else that determines the table.
        """
        stage, version = self.definition.stage, self.definition.version
        content = [stage, version, SCHEMAS[stage].version, version_of("rag-assay"), identity]
        content += [[ref.stage, ref.digest] for ref in refs]
        return hashlib.sha256(json.dumps(content).encode()).hexdigest()

    def _run(self, refs: list[StageRef], settings: Settings, storage: TableStorage, shard: int) -> StageRef:
        del shard  # only names the task run
        stage, kept = self.definition.stage, KeptTables(storage.tables)
        if (found := self.find(refs, storage, kept)) is not None:
            return found
        start = time.monotonic()
        models = _models_of_run().select(settings)
        with hold_slot(settings):
            inputs = {ref.stage: read(ref) for ref in refs}
            output = self.definition.compute(inputs, settings, models, partial(progress.advance, stage))
        usage = output.usage + StageUsage(seconds=time.monotonic() - start)
        ref = TableStore(storage.tables).write(output.table, SCHEMAS[stage], usage)
        if storage.identity is not None:
            kept.keep(self.key(refs, storage.identity), ref)
        return ref


def _stage_task(stage: Stage) -> StageTask:
    return STAGE_TASKS[stage]


def _models_of_run() -> RunModels:
    context = TaskRunContext.get()
    return RunModels() if context is None else models_for(str(context.task_run.flow_run_id))


STAGE_TASKS: dict[Stage, StageTask] = {stage: StageTask(definition) for stage, definition in STAGES.items()}
"""The stages that work shard by shard, as Prefect tasks."""
