"""Count what a rerun would recompute and ask, without computing or asking anything."""

from dataclasses import dataclass
from functools import partial

from flows.config.run_config import tables_root
from flows.dry_run.dry_run import DryRunner
from flows.dry_run.dry_run_result import DryRun
from flows.execution.rerun_plan import Rerun
from flows.execution.stage_settings import samples_settings
from tasks.engine.earlier_rows import EarlierRows
from tasks.stages.samples import read_shards


@dataclass(frozen=True, slots=True)
class RerunPreview:
    """The work of a rerun.

    Args:
        recomputed: Number of rows that the request names.
        dry_run: Dry run of the stages.
    """

    recomputed: int
    dry_run: DryRun


def preview_rerun(ready: Rerun) -> RerunPreview:
    """Return the work of a prepared rerun.

    Args:
        ready: Prepared rerun.

    Raises:
        RunFolderError: A table of the earlier run cannot be read.
        SourceError: The rerun is about changed rows, and the source cannot be read.
    """
    root = tables_root(ready.config)
    read = ready.read_samples(lambda config, plan: read_shards(samples_settings(config, plan), root))
    chosen = ready.rows(read)
    runner = DryRunner(ready.config, ready.plan)
    given = EarlierRows(ready.earlier, partial(ready.is_row_computed, chosen), runner.store)
    dry_run = runner.run(read, given)
    return RerunPreview(dry_run.rows if chosen is None else len(chosen), dry_run)
