"""Count the rows that a rerun would recompute in each stage, without computing any."""

from dataclasses import dataclass
from typing import Literal

from flows.execution.rerun_plan import Rerun
from flows.execution.source_settings import samples_settings
from metric_core.stages import Stage
from tasks.runs.row_reuse import RowReuse
from tasks.stages.registry import STAGES
from tasks.stages.samples import read_shards


@dataclass(frozen=True, slots=True)
class StagePreview:
    """The work of a rerun in one stage.

    Args:
        stage: The stage.
        recomputed: Number of rows that it computes.
        reused: Number of rows that it takes from the earlier run.
        asked: Questions about the recomputed rows that the judge is asked: "all", or "missing" for those without a
            cached answer; None for a stage that asks no judge, or computes no row.
    """

    stage: Stage
    recomputed: int
    reused: int
    asked: Literal["all", "missing"] | None


@dataclass(frozen=True, slots=True)
class RerunPreview:
    """The work of a rerun.

    Args:
        rows: Number of rows of the new run.
        recomputed: Number of rows that the request names.
        stages: Stages in the order of the plan.
    """

    rows: int
    recomputed: int
    stages: tuple[StagePreview, ...]


def preview_rerun(ready: Rerun) -> RerunPreview:
    """Return the work of a prepared rerun.

    Args:
        ready: Prepared rerun.

    Raises:
        SourceError: The rerun is about changed rows, and the source cannot be read.
    """
    storage = ready.plan.storage
    root = storage.tables_root
    read = ready.read_samples(RowReuse(ready.earlier, root), lambda plan: read_shards(samples_settings(plan), root))
    total, chosen = sum(ref.rows for ref in read.refs), ready.rows(read)
    some = total if chosen is None else len(chosen)
    stages = []
    for stage in ready.plan.metrics.sharded_stages:
        count = (total if ready.is_whole(stage) else some) if ready.is_computed(stage) else 0
        asks = bool(STAGES[stage].asks) and count > 0
        asked: Literal["all", "missing"] = "all" if stage in storage.refresh else "missing"
        stages.append(StagePreview(stage, count, total - count, asked if asks else None))
    return RerunPreview(total, some, tuple(stages))
