"""The flow `calibrate`: evaluate labelled rows, and compare the judge with the labels of people."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from prefect import flow
from prefect.artifacts import create_markdown_artifact
from prefect.runtime import flow_run

from flows.config.calibration_request import CalibrationRequest
from flows.config.run_config import RunConfig
from flows.evaluate import evaluate_plan
from flows.execution.calibration_lookup import (
    data_digest,
    judge_name,
    metric_fingerprint,
    number_of_look,
    recorded_judge_name,
    sample_name,
)
from flows.execution.deployed_parameters import as_deployed, is_own_run
from flows.execution.run import running_judges
from flows.planning.planner import plan_run, plan_source
from flows.planning.run_plan import RunPlan
from flows.publishing.artifacts import write_artifact
from metric_core.calibration.calibrate import HumanAgreement, measure_human_agreement
from metric_core.calibration.judge_error import estimate_judge_error
from metric_core.calibration.labels import Scale, describe_model_annotators, guess_metric
from metric_core.calibration.looks import tail_of_look
from metric_core.calibration.random_sample import describe_strictness
from metric_core.declarations.metric import MetricRequest
from metric_core.errors import ConfigError
from metric_core.metrics.registry import default_suite
from metric_core.statistics.resampling import LEVEL
from tasks.calibration import calibration_files
from tasks.calibration.bias_correction import (
    correct_means,
    find_label_needs,
)
from tasks.calibration.calibration_files import Calibration
from tasks.calibration.cascade_thresholds import measure_cascade
from tasks.calibration.corrected_means import CorrectedMeanRecord, CorrectedMeans
from tasks.calibration.label_pairing import LabelledData, PairedLabels, pair_labels, read_labelled
from tasks.calibration.run_labels import refuse_fewer_labels, weigh, write_labels
from tasks.calibration.stored_labels import STORED, pair_stored
from tasks.documents.calibration.calibration_text import calibration_markdown
from tasks.opening.run_models import models_for
from tasks.options.metric_options import is_packaged_metric
from tasks.prefect_support.budget_stop import stop_at_budget
from tasks.prefect_support.flow_parameters import with_function
from tasks.prefect_support.lost_server import SERVER_GONE, outlive_server
from tasks.prefect_support.patience import crash_without_server
from tasks.record.judge_quality import OwnLabels
from tasks.record.stored_figures import JudgeName
from tasks.reports.run.report_page import write_report
from tasks.runs.finished_run import FinishedRun
from tasks.runs.row_grouping import group_names, read_groups
from tasks.runs.run_folder import CALIBRATION, RunFolder
from tasks.runtime.release import version
from tasks.sources import available_columns

ARTIFACT = "assay-calibration"
_NO_LABELS = "there is nothing to calibrate on: name the labelled data as SOURCE"
_GRADES = "grades of other rows do not say what people would give here: `assay label` draws rows of the run itself"


@dataclass(frozen=True, slots=True)
class CalibrationResult:
    """The result of a calibration.

    Args:
        folder: The run folder of the evaluation, with calibration.json in it.
        kept: File that later runs read; None if it was not saved.
        corrected: Bias-corrected mean of the metric; None if there is none.
        needed: Number of more labels that would halve its interval; None if none would.
        warnings: Sentences on what could not be reported to Prefect.
    """

    folder: str
    calibration: Calibration
    kept: str | None
    corrected: CorrectedMeanRecord | None = None
    needed: int | None = None
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Ready:
    """A calibration that is ready to run."""

    request: CalibrationRequest
    config: RunConfig
    metric: MetricRequest
    data: LabelledData


@flow(name="calibrate", persist_result=False, validate_parameters=False)
@crash_without_server
@stop_at_budget
@as_deployed(
    request__label=True,
    request__metric=is_packaged_metric,
    request__positive=True,
    request__sampling=True,
    request__run=is_own_run,
)
def calibrate(request: CalibrationRequest) -> CalibrationResult:
    """Evaluate labelled rows and measure how far the judge agrees with people.

    Args:
        request: The judge, the labelled data and how to read it.

    Returns:
        The calibration and its files.

    Raises:
        AssayError: Anything that the user can fix; the message says how.
    """
    if request.run is not None:
        return calibrate_run(request)
    ready = prepare_calibration(request)
    return _calibrate(ready, plan_run(ready.config))


def _calibrate(ready: Ready, plan: RunPlan) -> CalibrationResult:
    request = ready.request
    with running_judges(ready.config) as urls:
        plan = plan.with_launched_judges(urls)
        evaluation = evaluate_plan(plan)
        models = models_for(str(flow_run.id), plan.storage.tables_root)
        identity = metric_fingerprint(plan, ready.metric, models)
        judge = judge_name(plan, models, ready.metric)
    run = FinishedRun(evaluation.folder)
    rows = pair_labels(run, ready.metric, ready.data, request.rules)
    look = number_of_look(request, run, ready.metric, ready.data, identity)
    calibration = _measure(request, run, ready.metric, ready.data, rows, (identity, judge), look)
    folder = RunFolder(Path(evaluation.folder))
    calibration_files.save(calibration, folder.path / CALIBRATION)
    corrected, needed = _write_to_run(folder, calibration, rows)
    description = f"{calibration.metric} compared with {calibration.label}"
    text = calibration_markdown(calibration)
    unpublished = write_artifact(
        ARTIFACT, lambda: create_markdown_artifact(text, key=ARTIFACT, description=description)
    )
    kept = calibration_files.save_latest(calibration, request.replace) if request.keep else None
    return CalibrationResult(
        folder=evaluation.folder,
        calibration=calibration,
        kept=None if kept is None else str(kept),
        corrected=corrected,
        needed=needed,
        warnings=unpublished,
    )


def calibrate_plan(ready: Ready, plan: RunPlan) -> CalibrationResult:
    """Run the flow `calibrate` by a checked plan; if the Prefect server goes away meanwhile, a warning says so."""

    @crash_without_server
    @stop_at_budget
    def run(request: CalibrationRequest) -> CalibrationResult:
        del request  # it is ready
        return _calibrate(ready, plan)

    result, is_gone = outlive_server(lambda: with_function(calibrate, run)(ready.request))
    return replace(result, warnings=(*result.warnings, SERVER_GONE)) if is_gone else result


def calibrate_run(request: CalibrationRequest) -> CalibrationResult:
    """Compare labels with the scores of a finished run, and write what follows into its folder. No judge is asked.

    Raises:
        AssayError: Anything that the user can fix; the message says how.
    """
    run = FinishedRun(str(request.run))
    metric = _metric_of_run(request, run)
    groups = None
    if (by := request.config.by or run.record.config.by) is not None:
        ids = [row_id for shard in run.samples() for row_id in shard["row_id"].to_pylist()]
        groups = dict(zip(ids, group_names(ids, read_groups(run.samples(), by)), strict=True))
    if request.config.source is None:
        data, rows = pair_stored(run, metric, request.rules, groups)
    else:
        data = replace(_read_data(request), groups=groups)
        rows = pair_labels(run, metric, data, request.rules)
    recorded = run.record.calibration
    name = recorded_judge_name(run.record, metric)
    identity = recorded.identities.get(metric.key, "")
    look = number_of_look(request, run, metric, data, identity)
    cascade = measure_cascade(run, metric, rows.of_run, is_random=rows.is_random, look=look)
    rows = replace(rows, of_run=weigh(rows.of_run, run), warnings=(*rows.warnings, *filter(None, [cascade.warning])))
    calibration = _measure(request, run, metric, data, rows, (identity, name), look)
    calibration = calibration.model_copy(update={"sure": cascade.found})
    if not request.replace:
        refuse_fewer_labels(run.folder, metric.key, rows.of_run)
    folder = RunFolder(run.folder)
    if request.keep and not identity:
        raise ConfigError(
            f"{run.folder} does not record what determines the scores of {metric.key}, so that its calibration "
            "cannot be saved for later runs: an older rag-assay made it. Evaluate it again, or use --no-keep."
        )
    kept = calibration_files.save_latest(calibration, request.replace) if request.keep else None
    calibration_files.save(calibration, folder.path / CALIBRATION)
    corrected, needed = _write_to_run(folder, calibration, rows)
    return CalibrationResult(
        folder=str(run.folder),
        calibration=calibration,
        kept=None if kept is None else str(kept),
        corrected=corrected,
        needed=needed,
    )


def prepare_calibration(request: CalibrationRequest) -> Ready:
    """Read the labels and find the metric, before the judge is asked.

    Raises:
        ConfigError: No source is named, or the metric cannot be determined.
        SourceError: The labels cannot be used.
    """
    config = request.config
    if config.source is None:
        raise ConfigError(_NO_LABELS)
    options = plan_source(config).options()
    data = _read_data(request)
    changes = {"calibration": "none", "explain": "none", "baseline": None}
    config = config.without_series().model_copy(update=changes)
    if request.metric is not None:
        config = config.model_copy(update={"metrics": (request.metric,)})
    requested = config.requests() or default_suite(available_columns(config.source, options), config.can_rate)
    metric = requested[0] if len(requested) == 1 else guess_metric(request.label, requested)
    metrics = (metric.key,) if config.metrics is None else (config.metrics[requested.index(metric)],)
    return Ready(request, config.model_copy(update={"metrics": metrics}), metric, data)


def _read_data(request: CalibrationRequest) -> LabelledData:
    config = request.config
    if config.source is None:
        raise ConfigError(_NO_LABELS)
    by = config.by if request.run is None else None  # of all rows of a run, only the run knows the groups
    return read_labelled(config.source, plan_source(config).options(), request.rules, by, request.sampling)


def _metric_of_run(request: CalibrationRequest, run: FinishedRun) -> MetricRequest:
    """Return the metric of a run that the labels are about."""
    computed = run.requests
    if request.metric is None:
        return computed[0] if len(computed) == 1 else guess_metric(request.label, computed)
    found = [
        metric for metric in computed if request.metric in (metric.key, metric.metric.name, *metric.metric.aliases)
    ]
    if len(found) != 1:
        names = ", ".join(metric.key for metric in computed)
        raise ConfigError(f"the run {run.folder} has no metric {request.metric!r}; it has: {names}")
    return found[0]


def _measure(  # noqa: PLR0913, PLR0917 what a calibration records
    request: CalibrationRequest,
    run: FinishedRun,
    metric: MetricRequest,
    data: LabelledData,
    rows: PairedLabels,
    judge: tuple[str, JudgeName],
    look: int,
) -> Calibration:
    counts = {name: len(labels) for name, labels in data.annotators.items()}
    said = (describe_model_annotators(counts, judge[1].model), describe_strictness(data.annotators))
    agreement = measure_human_agreement(rows.judged, request.seed, 1 - tail_of_look(1 - LEVEL, look))
    return Calibration(
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        identity=judge[0],
        judge=judge[1],
        metric=metric.key,
        name=metric.metric.name,
        parameters=dict(metric.parameters),
        verdict=run.record.config.verdict,
        source=request.config.source or STORED,
        data=data_digest(run, data),
        sample=sample_name(request, run),
        look=look,
        label=request.label,
        positive=request.positive,
        annotators=counts,
        scale=rows.judged.scale,
        span=rows.span,
        counts=rows.counts,
        seed=request.seed,
        versions={"rag-assay": version()},
        **_results(agreement, rows, said),
    )


def _results(agreement: HumanAgreement, rows: PairedLabels, warnings: Sequence[str]) -> dict[str, Any]:
    judged = rows.judged
    error = None
    if judged.scale is Scale.BINARY and judged.bounds is not None and not rows.selected:
        error = estimate_judge_error(judged.labels, judged.scores, judged.bounds, judged.groups, judged.weights)
    return {
        "figures": agreement.figures,
        "map": agreement.map,
        "error": error,
        "refused": rows.selected or (_GRADES if judged.scale is Scale.GRADED else ""),
        "warnings": (
            *filter(None, (*warnings, *rows.warnings)),
            *([f"no bias-corrected mean: {rows.selected}"] if rows.selected else []),
        ),
    }


def _write_to_run(
    folder: RunFolder, calibration: Calibration, rows: PairedLabels
) -> tuple[CorrectedMeanRecord | None, int | None]:
    """Write labels and calibration to the run of the labelled rows.

    Returns:
        The run's bias-corrected mean, and the number of labels that would halve its interval.
    """
    record, summary = folder.read_finished_record(), folder.read_summary()
    key = calibration.metric
    is_random = rows.is_random and rows.of_run is not None
    unit = {"unit": "claims"} if rows.of_run is not None and rows.of_run.weights is not None else {}
    own = OwnLabels(label=calibration.label, span=calibration.span, is_random=is_random, **unit)
    if rows.of_run is not None:
        write_labels(folder.path, key, rows.of_run)
    facts = calibration.to_record(calibration.verdict, applied=False).extend(own=own)
    metrics = {**record.calibration.metrics, key: facts}
    record = record.extend(calibration=record.calibration.extend(metrics=metrics))
    folder.write_record(record)
    corrected = correct_means(folder.path, record)
    folder.write_summary(summary.with_findings(CorrectedMeans(corrected)))
    write_report(folder.path)
    return corrected.get(key), find_label_needs(folder.path, record, key)
