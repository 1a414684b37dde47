"""Count what a rerun would recompute and ask, without computing or asking anything."""

from dataclasses import dataclass, replace
from functools import partial

from flows.dry_run.dry_run import DryRunner
from flows.dry_run.dry_run_result import DryRun, StageDryRun
from flows.execution.read_source import samples_settings
from flows.execution.rerun_plan import Rerun
from tasks.engine.registry import STAGES
from tasks.runs.earlier_rows import place_earlier_rows
from tasks.stages.samples import read_shards


@dataclass(frozen=True, slots=True)
class RerunPreview:
    """The work of a rerun.

    Args:
        recomputed: Number of rows that the request names.
        dry_run: Dry run of the stages, those included whose results are never stored.
    """

    recomputed: int
    dry_run: DryRun


def preview_rerun(ready: Rerun) -> RerunPreview:
    """Return the work of a prepared rerun.

    Raises:
        RunFolderError: A table of the earlier run cannot be read.
        SourceError: The rerun is about changed rows, and the source cannot be read.
    """
    root = ready.plan.storage.tables_root
    read = ready.read_samples(lambda plan: read_shards(samples_settings(plan), root))
    chosen = ready.rows(read)
    given = partial(place_earlier_rows, ready.earlier, partial(ready.is_row_computed, chosen))
    dry_run = DryRunner(ready.plan).run(read, given)
    always = [stage for stage in ready.plan.metrics.sharded_stages if not STAGES[stage].cached]
    computed = (StageDryRun(stage, judged=False, missing=dry_run.rows) for stage in always)
    dry_run = replace(dry_run, stages=(*dry_run.stages, *computed))
    return RerunPreview(dry_run.rows if chosen is None else len(chosen), dry_run)
