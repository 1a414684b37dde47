"""Write the folder of a run whose stages are computed."""

from collections.abc import Mapping
from dataclasses import asdict
from functools import partial
from typing import Any

from flows.execution.run import Run
from flows.execution.run_warnings import (
    count_languages,
    follow_up_warnings,
    text_warnings,
    warn_about_servers,
    warn_about_turns,
    warn_of_unanswerable,
    warn_of_unread_markers,
)
from metric_core.question_kinds import QuestionKind
from metric_core.stages import Stage
from tasks.prefect_support.prefect_task import make_prefect_task, run_here
from tasks.reports.run.write_run import ReportingSettings, write_run
from tasks.rows.computed_tables import RunTables
from tasks.runs.carried_evidence import ENTRY
from tasks.runs.judge_family import warn_of_family
from tasks.runs.judge_roles import judge_of_kind
from tasks.runtime import progress
from tasks.stages.samples import SamplesResult

REPORTING = make_prefect_task(Stage.REPORTING, 1, write_run, str(Stage.REPORTING))


def write_run_folder(run: Run, read: SamplesResult, tables: RunTables, findings: Mapping[str, Any]) -> None:
    """Write tables, summary, manifest and report of a run into its folder.

    Args:
        findings: Further content of run.json.
    """
    metrics, outputs = run.plan.metrics, run.plan.outputs
    of_servers = warn_about_servers(tables.total, run.manifest["foreign_answers"])
    server_warnings = (*run.manifest["server_warnings"], *of_servers)
    unable = warn_of_unanswerable(run.manifest["unanswerable"]) if metrics.options.metrics is not None else ()
    texts = (
        *text_warnings(tables, run.manifest),
        *warn_about_turns(run.plan.source, metrics, tables),
        *follow_up_warnings(tables),
        *warn_of_unread_markers(tables, (run.manifest.get("config") or {}).get("citation_pattern")),
        *_warn_of_family(run, tables),
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
        **({} if read.judgments is None else {ENTRY: read.judgments}),
        "languages": count_languages(tables),
        "warnings": warnings,
    }
    settings = ReportingSettings(
        folder=str(run.folder.path),
        metrics=metrics.metric_settings,
        manifest=manifest,
        by=outputs.by,
        slices=outputs.slices,
        failed_share=outputs.fail_on_failed,
    )
    run_here(REPORTING, tables, settings, partial(progress.advance, Stage.REPORTING))


def _warn_of_family(run: Run, tables: RunTables) -> tuple[str, ...]:
    judge = judge_of_kind(run.manifest, [QuestionKind.VERDICT])
    return warn_of_family(tables.shards(Stage.SAMPLES, ["extras"]), str(judge.get("model") or ""))
