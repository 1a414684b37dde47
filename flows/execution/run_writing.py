"""Write the folder of a run whose stages are computed."""

from functools import partial

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
from tasks.record.run_record import RunRecord
from tasks.reports.run.write_run import ReportingSettings, write_run
from tasks.rows.computed_tables import RunTables
from tasks.runs.judge_family import warn_of_family
from tasks.runs.judge_roles import judge_of_kind
from tasks.runtime import progress
from tasks.stages.samples import SamplesResult

REPORTING = make_prefect_task(Stage.REPORTING, 1, write_run, str(Stage.REPORTING))


def write_run_folder(run: Run, read: SamplesResult, tables: RunTables, started: RunRecord) -> None:
    """Write tables, summary, record and report of a run into its folder.

    Args:
        started: Record of the run with its findings.
    """
    metrics, outputs = run.plan.metrics, run.plan.outputs
    of_servers = warn_about_servers(tables.total, started.foreign_answers)
    server_warnings = (*started.server_warnings, *of_servers)
    unable = warn_of_unanswerable(started.unanswerable) if metrics.options.metrics is not None else ()
    languages = count_languages(tables)
    texts = (
        *text_warnings(tables, started, languages),
        *warn_about_turns(run.plan.source, metrics, tables),
        *follow_up_warnings(tables),
        *warn_of_unread_markers(tables, started.config.citation_pattern),
        *_warn_of_family(run, tables),
    )
    record = started.extend(
        server_warnings=server_warnings,
        rows_read=read.rows_read,
        bad_row_count=read.bad_row_count,
        bad_rows=read.bad_rows,
        **({} if read.judgments is None else {"judgments": read.judgments}),
        languages=dict(languages.rows),
        warnings=(*read.warnings, *texts, *unable, *server_warnings),
    )
    settings = ReportingSettings(
        folder=str(run.folder.path),
        metrics=metrics.metric_settings,
        record=record,
        by=outputs.by,
        weights=outputs.weights,
        traffic=outputs.traffic,
        slices=outputs.slices,
        failed_share=outputs.fail_on_failed,
    )
    run_here(REPORTING, tables, settings, partial(progress.advance, Stage.REPORTING))


def _warn_of_family(run: Run, tables: RunTables) -> tuple[str, ...]:
    judge = judge_of_kind(run.record, [QuestionKind.VERDICT])
    return warn_of_family(tables.shards(Stage.SAMPLES, ["extras"]), judge.model)
