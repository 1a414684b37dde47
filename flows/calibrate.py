"""The flow `calibrate`: evaluate labelled rows, and compare the judge with the labels of people."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from prefect import flow
from prefect.artifacts import create_markdown_artifact
from prefect.runtime import flow_run
from pydantic import Field

from flows.config.run_config import RunConfig
from flows.evaluate import evaluate
from flows.execution.calibration_lookup import judge_name, metric_fingerprint
from flows.execution.run import running_judge
from metric_core.calibration.calibrate import HumanAgreement, measure_agreement
from metric_core.calibration.judge_error import estimate_judge_error
from metric_core.calibration.labels import LabelRules, Scale
from metric_core.errors import ConfigError
from metric_core.metric import MetricRequest
from metric_core.registry import default_suite
from metric_core.statistics.resampling import SEED
from tasks.calibration import calibration_files
from tasks.calibration.calibration_files import Calibration
from tasks.calibration.label_pairing import LabelledData, PairedLabels, pair_labels, read_labelled
from tasks.models.run_models import RunModels, models_for
from tasks.options.narrow import narrow
from tasks.options.settings import Settings
from tasks.prefect_support.patience import crash_without_server
from tasks.reports.calibration.calibration_text import calibration_markdown
from tasks.reports.run.report_page import write_report
from tasks.runs.finished_run import FinishedRun
from tasks.runs.run_folder import CALIBRATION, MANIFEST, RunFolder
from tasks.sources import SourceOptions, available_columns

ARTIFACT = "assay-calibration"
_PREFIXES = ("label_", "human_", "gold_")
_SHORTEST_NAME = 5


class CalibrationRequest(Settings):
    """Parameters of a calibration."""

    config: RunConfig = Field(description="Configuration of the evaluation; its source is the labelled data.")
    label: str = Field(description="Column with the labels of people.")
    metric: str | None = Field(
        None, description="Metric, as on the command line. Default: by the name of the label column."
    )
    positive: str | None = Field(None, description="Label that means yes. Default: 1, yes or true.")
    span: tuple[float, float] | None = Field(None, description="Lowest and highest grade.")
    seed: int = Field(SEED, ge=0, description="Seed of the resampling.")
    keep: bool = Field(True, description="Save the calibration in ASSAY_HOME, for later runs of this judge.")

    @property
    def rules(self) -> LabelRules:
        """The rules for reading the labels."""
        return LabelRules(self.label, self.positive, self.span)


@dataclass(frozen=True, slots=True)
class CalibrationResult:
    """The result of a calibration.

    Args:
        folder: The run folder of the evaluation, with calibration.json in it.
        calibration: The calibration.
        kept: File that later runs read; None if it was not saved.
    """

    folder: str
    calibration: Calibration
    kept: str | None


@flow(name="calibrate", persist_result=False, validate_parameters=True)
@crash_without_server
def calibrate(request: CalibrationRequest) -> CalibrationResult:
    """Evaluate labelled rows and measure how far the judge agrees with people.

    Args:
        request: The judge, the labelled data and how to read it.

    Returns:
        The calibration and its files.

    Raises:
        AssayError: Anything that the user can fix; the message says how.
    """
    ready = prepare(request)
    with running_judge(ready.config) as config:
        evaluation = evaluate(config)
        calibration = _calibration(ready, config, Path(evaluation.folder), models_for(str(flow_run.id)))
    folder = RunFolder(Path(evaluation.folder))
    calibration_files.save(calibration, folder.path / CALIBRATION)
    kept = calibration_files.save_latest(calibration) if request.keep else None
    _write_to_run(folder, calibration)
    create_markdown_artifact(
        calibration_markdown(calibration),
        key=ARTIFACT,
        description=f"{calibration.metric} compared with {calibration.label}",
    )
    return CalibrationResult(
        folder=evaluation.folder, calibration=calibration, kept=None if kept is None else str(kept)
    )


@dataclass(frozen=True, slots=True)
class Ready:
    """A calibration that is ready to run.

    Args:
        request: Parameters of the calibration.
        config: Configuration of its evaluation.
        metric: The metric.
        data: The labels.
    """

    request: CalibrationRequest
    config: RunConfig
    metric: MetricRequest
    data: LabelledData


def prepare(request: CalibrationRequest) -> Ready:
    """Read the labels and find the metric, before the judge is asked.

    Raises:
        ConfigError: No source is named, or the metric cannot be determined.
        SourceError: The labels cannot be used.
    """
    config = request.config
    if config.source is None:
        raise ConfigError("there is nothing to calibrate on: name the labelled data as SOURCE")
    options = narrow(config, SourceOptions)
    data = read_labelled(config.source, options, request.rules, config.by)
    config = config.model_copy(update={"calibration": "none", "explain": "none", "baseline": None})
    if request.metric is not None:
        config = config.model_copy(update={"metrics": (request.metric,)})
    requested = config.requests() or default_suite(available_columns(config.source, options))
    metric = requested[0] if len(requested) == 1 else _guess_metric(request, requested)
    metrics = (metric.key,) if config.metrics is None else (config.metrics[requested.index(metric)],)
    return Ready(request, config.model_copy(update={"metrics": metrics}), metric, data)


def _guess_metric(request: CalibrationRequest, possible: Sequence[MetricRequest]) -> MetricRequest:
    """Return the metric that the labels are about, guessed from the name of their column."""
    label = request.label.casefold().replace("-", "_")
    for prefix in _PREFIXES:
        label = label.removeprefix(prefix)
    matching = [metric for metric in possible if _is_about(label, metric)]
    if len(matching) == 1:
        return matching[0]
    names = ", ".join(metric.key for metric in matching or possible)
    raise ConfigError(f"which metric are the labels in {request.label!r} about? Name it with --metric: {names}")


def _is_about(label: str, request: MetricRequest) -> bool:
    names = (request.metric.name, *request.metric.aliases)
    return any(name in label or (len(label) >= _SHORTEST_NAME and name.startswith(label)) for name in names)


def _calibration(ready: Ready, config: RunConfig, folder: Path, models: RunModels) -> Calibration:
    request, metric = ready.request, ready.metric
    run = FinishedRun(folder)
    rows = pair_labels(run, metric, ready.data, request.rules)
    agreement = measure_agreement(rows.judged, request.seed)
    return Calibration(
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        identity=metric_fingerprint(config, metric, models),
        judge=judge_name(config, models),
        metric=metric.key,
        name=metric.metric.name,
        parameters=dict(metric.parameters),
        verdict=config.verdict_kind,
        source=config.source or "",
        data=_data_digest(run, ready.data),
        label=request.label,
        positive=request.positive,
        scale=rows.judged.scale,
        span=rows.span,
        counts=rows.counts,
        seed=request.seed,
        versions={"rag-assay": version("rag-assay")},
        **_results(agreement, rows),
    )


def _results(agreement: HumanAgreement, rows: PairedLabels) -> dict[str, Any]:
    judged = rows.judged
    has_ends = judged.scale is Scale.BINARY or rows.span is not None
    error = estimate_judge_error(judged.labels, judged.scores, judged.groups) if has_ends else None
    return {
        "figures": agreement.figures,
        "best": agreement.best,
        "middle": agreement.middle,
        "map": agreement.map,
        "error": error,
        "warnings": rows.warnings,
    }


def _data_digest(run: FinishedRun, data: LabelledData) -> str:
    digests = run.manifest["stages"]["samples"]["digests"]
    return calibration_files.digest_rows([*digests, *sorted(data.labels.values.items())])


def _write_to_run(folder: RunFolder, calibration: Calibration) -> None:
    """Write the calibration to the manifest of its own run."""
    manifest = folder.read_json(MANIFEST)
    facts = calibration.manifest_entry(calibration.verdict, applied=False)
    # These rows are labelled, so their mean label needs no estimate.
    entry = {"metrics": {calibration.metric: {**facts, "error": None}}, "not_covered": []}
    folder.write_json(MANIFEST, {**manifest, "calibration": entry})
    write_report(folder.path)
