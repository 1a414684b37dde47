"""Collect the declared stages, and derive the order in which they run from the tables that they read.

The stage `NAME` is declared as `NAME` in `tasks/stages/NAME.py`, so a new member of `Stage` needs no registration.
"""

from graphlib import TopologicalSorter
from importlib import import_module
from typing import Any

from metric_core.stages import Stage
from tasks.stages.definition import StageDefinition

_ONCE_PER_RUN = (Stage.SAMPLES, Stage.REPORTING)
"""The stages that do not work shard by shard: one makes the shards, the other collects their tables."""


def _import_stage(stage: Stage) -> StageDefinition[Any]:
    definition: StageDefinition[Any] = getattr(import_module(f"tasks.stages.{stage}"), stage)
    return definition


STAGES: dict[Stage, StageDefinition[Any]] = {
    stage: _import_stage(stage) for stage in Stage if stage not in _ONCE_PER_RUN
}
"""The stages that work shard by shard."""


def _rank(stage: Stage) -> tuple[bool, int]:
    """Return the sort key within a level: stages that wait for a judge start first."""
    is_judged = stage in STAGES and bool(STAGES[stage].asks)
    return not is_judged, list(Stage).index(stage)


def _levels() -> tuple[tuple[Stage, ...], ...]:
    sorter = TopologicalSorter({stage: definition.reads for stage, definition in STAGES.items()})
    sorter.prepare()
    levels = []
    while sorter.is_active():
        ready = sorter.get_ready()
        levels.append(tuple(sorted(ready, key=_rank)))
        sorter.done(*ready)
    return (*levels, (Stage.REPORTING,))


LEVELS = _levels()
"""All stages, level by level: those of one level can run at the same time."""
