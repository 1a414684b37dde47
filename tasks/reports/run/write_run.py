"""Write the run folder from the tables of all stages."""

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path

from metric_core.columns import SESSION_ID
from metric_core.declarations.metric import MetricRequest
from metric_core.stages import Stage
from metric_core.statistics.failed_cells import ALL, find_failures
from metric_core.statistics.summary import MetricSummary
from tasks.findings.finding import WrittenRows
from tasks.findings.table import count_findings
from tasks.options.grouping_options import GroupingOptions
from tasks.options.metric_settings import MetricSettings
from tasks.options.settings import Settings
from tasks.options.slicing_options import SlicingOptions
from tasks.record.run_record import MetricRecord, RunRecord, StageRecord
from tasks.record.run_summary import RunSummary
from tasks.reports.run.report_page import write_report
from tasks.rows.computed_tables import RunTables
from tasks.runs.judge_roles import with_usage
from tasks.runs.row_grouping import (
    MOST_CHECKED,
    REPEATED_TEXTS,
    ROW_ID,
    columns_with,
    find_repetition,
    find_session_column,
    read_groups,
)
from tasks.runs.row_weights import RowWeights, read_weights
from tasks.runs.run_folder import RunFolder


class ReportingSettings(SlicingOptions, GroupingOptions, Settings):
    """Settings of the stage `reporting`.

    Args:
        metrics: Metrics, in the order of the report.
        record: Record of the run, to which the stage adds rows, metrics, stages, usage and failures.
        failed_share: Share of failed cells of a metric from which on the run counts as failed.
    """

    only_options = False

    folder: str
    metrics: tuple[MetricSettings, ...]
    record: RunRecord
    failed_share: float = ALL


def write_run(tables: RunTables, settings: ReportingSettings, progress: Callable[[int, int], None]) -> str:
    """Write tables, summary, manifest and report into the run folder, and return the folder.

    Args:
        progress: Called when the folder is written.
    """
    progress(0, 1)
    folder = RunFolder(Path(settings.folder))
    with folder.translate_write_errors():
        _write(folder, tables, settings)
    progress(1, 0)
    return settings.folder


def _write(folder: RunFolder, tables: RunTables, settings: ReportingSettings) -> None:
    rows = tables.rows(Stage.SAMPLES)
    requests = [metric.request() for metric in settings.metrics]
    folder.write_tables(tables)
    by = settings.by or find_session_column(folder.read_samples([SESSION_ID]))
    groups = None if by is None else read_groups(folder.read_samples(columns_with(by)), by)
    weighting = RowWeights(settings.weights, settings.traffic)
    weights = read_weights(folder.read_samples(weighting.columns), settings.weights, settings.traffic)
    summaries = folder.summarize_scores(requests, groups, weights)
    started = settings.record
    counted = count_findings(WrittenRows(folder, tables, started, requests, settings.slices, groups, weights))
    folder.write_summary(
        RunSummary(
            rows=rows,
            metrics=tuple(summaries),
            verdict=started.config.verdict if Stage.VERDICTS in tables.stages else None,
        ).with_findings(*counted)
    )
    folder.write_record(
        started.extend(
            status="completed",
            config=started.config.extend(by=by),
            rows=rows,
            repetition=None if groups is not None else _describe_repetition(folder, requests, summaries),
            metrics=tuple(map(_describe_metric, requests)),
            stages={stage: _describe_stage(stage, tables) for stage in tables.stages},
            usage=tables.total,
            judges=with_usage(started.judges, tables.total.kinds),
            failures=tuple(find_failures(summaries, settings.failed_share)),
        )
    )
    write_report(folder.path)


def _describe_metric(request: MetricRequest) -> MetricRecord:
    metric = request.metric
    record = MetricRecord(
        key=request.key,
        name=metric.name,
        origin=metric.origin,
        code=MetricSettings.from_request(request).code,
        summary=metric.summary,
        question=_question(request),
        family=metric.family,
        direction=metric.direction,
        bounds=request.bounds,
        parameters=dict(request.parameters),
        language_model=request.needs_language_model,
        undefined=dict(metric.undefined),
    )
    return record if metric.tolerated is None else record.extend(tolerated=metric.tolerated)


def _question(request: MetricRequest) -> str:
    """Return the question of a metric to people, with its parameters."""
    question = request.metric.question
    for name, value in request.parameters.items():
        question = question.replace(f"{{{name}}}", str(value))
    return question


def _describe_repetition(
    folder: RunFolder, requests: Sequence[MetricRequest], summaries: Sequence[MetricSummary]
) -> str | None:
    """Return how much wider intervals are if rows that repeat a text are resampled together; None if hardly any is.

    It is measured on at most `MOST_CHECKED` rows.
    """
    repetition = find_repetition(folder.read_samples(REPEATED_TEXTS))
    if repetition is None:
        return None
    groups: dict[str, str] = {}
    for shard in folder.read_samples([ROW_ID, repetition.column]):
        texts = zip(shard[ROW_ID].to_pylist(), shard[repetition.column].to_pylist(), strict=True)
        groups.update((row_id, _digest(str(text))) for row_id, text in texts if text)
        if len(groups) > MOST_CHECKED:
            return None
    intervals = [
        {
            each.metric: each.distribution.interval
            for each in found
            if each.distribution is not None and each.distribution.interval is not None
        }
        for found in (summaries, folder.summarize_scores(requests, groups))
    ]
    return repetition.describe(*intervals)


def _digest(text: str) -> str:
    """Return a short name of a text that is the same in every process, as the order of groups decides what is drawn."""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]


def _describe_stage(stage: Stage, tables: RunTables) -> StageRecord:
    return StageRecord(
        rows=tables.rows(stage),
        schema_version=int(tables.schema(stage).metadata[b"assay.version"]),
        digests=tuple(tables.digests(stage)),
        **dict(tables.usage(stage)),
    )
