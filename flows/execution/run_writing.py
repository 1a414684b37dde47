"""Write the folder of a run whose stages are computed."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

from flows.execution.answerable import warn_of_unanswerable
from flows.execution.conversation_warnings import follow_up_warnings, warn_about_turns
from flows.execution.run import Run
from flows.execution.server_warnings import warn_about_servers
from flows.execution.text_warnings import count_languages, text_warnings
from flows.planning.settings import metrics_of
from metric_core.stages import Stage
from tasks.runtime import progress
from tasks.stages.prefect_task import run_here
from tasks.stages.reporting import ReportingSettings, reporting
from tasks.stages.samples import SamplesResult
from tasks.tables.table_store import StageRef


def write_run_folder(run: Run, read: SamplesResult, refs: Sequence[StageRef], findings: Mapping[str, Any]) -> None:
    """Write tables, summary, manifest and report of a run into its folder.

    Args:
        run: The run.
        read: Result of reading the source.
        refs: Tables of all stages and shards, including the samples.
        findings: Further content of run.json.
    """
    metrics, outputs = run.plan.metrics, run.plan.outputs
    server_warnings = (*run.manifest["server_warnings"], *warn_about_servers(refs, run.manifest["foreign_answers"]))
    unable = warn_of_unanswerable(run.manifest["unanswerable"]) if metrics.options.metrics is not None else ()
    texts = (
        *text_warnings(refs, run.manifest),
        *warn_about_turns(run.plan.source, metrics, refs),
        *follow_up_warnings(refs),
    )
    warnings = (*read.warnings, *texts, *unable, *server_warnings)
    manifest = {
        **run.manifest,
        **findings,
        "server_warnings": server_warnings,
        "status": "completed",
        "rows_read": read.rows_read,
        "bad_row_count": read.bad_row_count,
        "bad_rows": [asdict(bad_row) for bad_row in read.bad_rows],
        "languages": count_languages(refs),
        "warnings": warnings,
    }
    settings = ReportingSettings(
        folder=str(run.folder.path),
        metrics=metrics_of(metrics),
        manifest=manifest,
        by=outputs.by,
        slices=outputs.slices,
        max_slices=outputs.max_slices,
        failed_share=outputs.fail_on_failed,
    )
    run_here(reporting, list(refs), settings, partial(progress.advance, Stage.REPORTING))
