"""The stage `reporting`: assembles the run folder from the tables of all stages."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from metric_core.stages import Stage
from tasks.calibration.bias_correction import BIAS_CORRECTED, correct_means
from tasks.options.metric_settings import MetricSettings
from tasks.options.settings import Settings
from tasks.reports.run.report_page import write_report
from tasks.runs import run_folder
from tasks.runs.panel_agreement import measure_panel_agreement
from tasks.runtime.usage import StageUsage
from tasks.stages.base import make_prefect_task, progress_reporter
from tasks.tables.table_store import StageRef


class ReportingSettings(Settings):
    """What the stage writes, and where.

    Args:
        folder: the run folder.
        metrics: the metrics, in the order in which tables show them.
        manifest: what run.json says beside what the stage adds: rows, stages, usage.
    """

    folder: str
    metrics: tuple[MetricSettings, ...]
    manifest: dict[str, Any]


def write_run(refs: list[StageRef], settings: ReportingSettings) -> str:
    """Writes tables, summary, manifest and report into the run folder; returns the folder.

    Args:
        refs: the tables of all stages and shards.
        settings: what to write, and where.
    """
    tell = progress_reporter(Stage.REPORTING)
    tell(0, 1)
    folder = Path(settings.folder)
    with run_folder.translate_write_errors(folder):
        _write(folder, refs, settings)
    tell(1, 0)
    return str(folder)


def _write(folder: Path, refs: Sequence[StageRef], settings: ReportingSettings) -> None:
    by_stage: dict[Stage, list[StageRef]] = {}
    for ref in refs:
        by_stage.setdefault(ref.stage, []).append(ref)
    rows = sum(ref.rows for ref in by_stage[Stage.SAMPLES])
    requests = [metric.request() for metric in settings.metrics]
    run_folder.write_tables(folder, by_stage)
    summaries = run_folder.summarize_scores(folder, requests)
    more = {"agreement": measure_panel_agreement(folder), BIAS_CORRECTED: correct_means(folder, settings.manifest)}
    run_folder.write_summary(folder, rows, summaries, more)
    manifest = {
        **settings.manifest,
        "rows": rows,
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
                "language_model": request.metric.language_model,
                "undefined": dict(request.metric.undefined),
            }
            for request in requests
        ],
        "stages": {stage: _stage_entry(shards) for stage, shards in by_stage.items()},
        "usage": _total(refs).model_dump(),
    }
    run_folder.write_json(folder / run_folder.MANIFEST, manifest)
    write_report(folder)


def _stage_entry(shards: Sequence[StageRef]) -> Mapping[str, Any]:
    return {
        "rows": sum(ref.rows for ref in shards),
        "schema_version": shards[0].schema_version,
        "digests": [ref.digest for ref in shards],
        **_total(shards).model_dump(),
    }


def _total(refs: Sequence[StageRef]) -> StageUsage:
    return sum((ref.usage for ref in refs), StageUsage())


reporting = make_prefect_task(Stage.REPORTING, 1, write_run, str(Stage.REPORTING))
