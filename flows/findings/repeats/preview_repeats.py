"""Count the questions about rows that are asked about again."""

from dataclasses import replace

from flows.dry_run.dry_run import DryRunner
from flows.dry_run.dry_run_result import Certainty, DryRun, least_certain
from flows.execution.judged_rows import LABELLED
from flows.execution.read_source import samples_settings
from flows.planning.run_plan import RunPlan
from tasks.stages.samples import read_shards


def preview_rows_again(run: RunPlan, rows: int) -> DryRun:
    """Return the dry run of rows that are asked about again; the first ones represent those that are chosen."""
    stages = [stage for stage in run.metrics.stages if stage in LABELLED]
    plan = run.with_options(limit=rows).with_metrics(run.metrics, stages)
    runner = DryRunner(plan, counted=stages)
    found = runner.run(read_shards(samples_settings(plan), plan.storage.tables_root))
    for stage in found.stages:
        stage.certainty = least_certain((stage.certainty, Certainty.ESTIMATED))
    return replace(found, stages=tuple(stage for stage in found.stages if stage.stage in stages))


def repeat_line(again: DryRun, name: str) -> str:
    """Return a line about rows that are asked about again.

    Args:
        name: Name of such a row.
    """
    rows = f"{again.rows:,} {name}{'s' * (again.rows != 1)}"
    return f"About {again.tally.asked:,} questions about {rows} are asked again, past the cache, included below."
