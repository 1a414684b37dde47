"""Write the run folder from the tables of all stages."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from metric_core.columns import SESSION_ID
from metric_core.declarations.metric import MetricRequest
from metric_core.question_kinds import QuestionKind
from metric_core.stages import Stage
from metric_core.statistics.failed_cells import ALL, find_failures
from metric_core.statistics.summary import MetricSummary
from tasks.calibration.bias_correction import BIAS_CORRECTED, correct_means
from tasks.models.judges.protocol import CASCADE
from tasks.options.grouping_options import GroupingOptions
from tasks.options.metric_settings import MetricSettings
from tasks.options.settings import Settings
from tasks.options.slicing_options import SlicingOptions
from tasks.reports.run.report_page import write_report
from tasks.rows.computed_tables import RunTables
from tasks.runs.judge_roles import judge_of_kind, with_usage
from tasks.runs.panel_agreement import count_cascade, measure_panel_agreement
from tasks.runs.row_grouping import (
    MOST_CHECKED,
    REPEATED_TEXTS,
    ROW_ID,
    columns_with,
    find_repetition,
    find_session_column,
    read_groups,
)
from tasks.runs.row_slicing import read_slices
from tasks.runs.run_diagnosis import ENTRY as DIAGNOSIS_ENTRY
from tasks.runs.run_diagnosis import count_diagnoses
from tasks.runs.run_folder import MANIFEST, RunFolder
from tasks.runs.slice_summaries import SLICES, summarize_slices_of_run


class ReportingSettings(SlicingOptions, GroupingOptions, Settings):
    """Settings of the stage `reporting`.

    Args:
        metrics: Metrics, in the order of the report.
        manifest: Content of run.json, to which the stage adds rows, metrics, stages, usage and failures.
        failed_share: Share of failed cells of a metric from which on the run counts as failed.
    """

    only_options = False

    folder: str
    metrics: tuple[MetricSettings, ...]
    manifest: dict[str, Any]
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
    summaries = folder.summarize_scores(requests, groups)
    slices = read_slices(folder.read_samples(columns_with(*settings.slices)), settings.slices)
    more = {
        SLICES: summarize_slices_of_run(folder, requests, slices, groups),
        **_read_votes(folder.path, settings.manifest),
        BIAS_CORRECTED: correct_means(folder.path, settings.manifest),
        DIAGNOSIS_ENTRY: count_diagnoses(folder, groups, is_served=_is_served(settings.manifest)),
        "verdict": settings.manifest["config"].get("verdict") if Stage.VERDICTS in tables.stages else None,
    }
    folder.write_summary(rows, summaries, more)
    manifest = {
        **settings.manifest,
        "config": {**settings.manifest["config"], "by": by},
        "rows": rows,
        "warnings": [*settings.manifest.get("warnings", ())],
        "repetition": None if groups is not None else _describe_repetition(folder, requests, summaries),
        "metrics": [
            {
                "key": request.key,
                "name": request.metric.name,
                "origin": request.metric.origin,
                "code": request.metric.code,
                "summary": request.metric.summary,
                "family": request.metric.family,
                "direction": request.metric.direction,
                "bounds": request.bounds,
                "parameters": dict(request.parameters),
                "language_model": request.needs_language_model,
                "undefined": dict(request.metric.undefined),
            }
            for request in requests
        ],
        "stages": {stage: _stage_entry(stage, tables) for stage in tables.stages},
        "usage": tables.total.model_dump(),
        "judges": with_usage(settings.manifest.get("judges") or (), tables.total.kinds),
        "failures": find_failures(summaries, settings.failed_share),
    }
    folder.write_json(MANIFEST, manifest)
    write_report(folder.path)


def _read_votes(folder: Path, manifest: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what the votes say: the agreement of a panel, or who gave the verdicts of a cascade.

    Of a cascade, two judges see only what one of them is unsure of: their agreement there says little.
    """
    is_cascade = bool(manifest.get(CASCADE))
    return {CASCADE: count_cascade(folder)} if is_cascade else {"agreement": measure_panel_agreement(folder)}


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
        groups.update((row_id, str(hash(str(text)))) for row_id, text in texts if text)
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


def _is_served(manifest: Mapping[str, Any]) -> bool:
    """Return whether a language model recognized refusals."""
    return bool(judge_of_kind(manifest, [QuestionKind.REFUSAL]).get("language_model"))


def _stage_entry(stage: Stage, tables: RunTables) -> Mapping[str, Any]:
    return {
        "rows": tables.rows(stage),
        "schema_version": int(tables.schema(stage).metadata[b"assay.version"]),
        "digests": tables.digests(stage),
        **tables.usage(stage).model_dump(),
    }
