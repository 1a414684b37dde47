"""The flow `calibrate`: a judge against the labels of people, on rows that an ordinary evaluation scores."""

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
from tasks.options.settings import Settings
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

    config: RunConfig = Field(description="the labelled data, the judge, and everything else of an evaluation")
    label: str = Field(description="the column with the labels of people")
    metric: str | None = Field(None, description="the metric, as on the command line; default by the label's name")
    positive: str | None = Field(None, description="the label that means yes; by default 1, yes or true")
    span: tuple[float, float] | None = Field(None, description="the lowest and the highest grade")
    by: str | None = Field(None, description="column whose equal values make rows a group, not independent")
    seed: int = Field(SEED, ge=0, description="where resampling starts")
    keep: bool = Field(True, description="keep it in ASSAY_HOME, for the runs of this judge")

    @property
    def rules(self) -> LabelRules:
        """The rules by which the labels are read."""
        return LabelRules(self.label, self.positive, self.span)


@dataclass(frozen=True, slots=True)
class CalibrationResult:
    """The result of a calibration.

    Args:
        folder: The run folder of the evaluation, with calibration.json in it.
        calibration: The calibration.
        kept: File that later runs read; None if it was not kept.
    """

    folder: str
    calibration: Calibration
    kept: str | None


@flow(name="calibrate", persist_result=False, validate_parameters=True)
def calibrate(request: CalibrationRequest) -> CalibrationResult:
    """Evaluate labelled rows and measure how far the judge agrees with people.

    Args:
        request: The judge, the labelled data and how to read it.

    Returns:
        The calibration and its files.

    Raises:
        AssayError: Anything that the user can correct; the message says how.
    """
    ready = prepare(request)
    with running_judge(ready.config) as config:
        evaluation = evaluate(config)
        found = _calibration(ready, config, Path(evaluation.folder), models_for(str(flow_run.id)))
    folder = RunFolder(Path(evaluation.folder))
    calibration_files.save(found, folder.path / CALIBRATION)
    kept = calibration_files.save_latest(found) if request.keep else None
    _write_to_run(folder, found)
    create_markdown_artifact(
        calibration_markdown(found), key=ARTIFACT, description=f"{found.metric} beside {found.label}"
    )
    return CalibrationResult(folder=evaluation.folder, calibration=found, kept=None if kept is None else str(kept))


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
    options = SourceOptions(column_map=config.column_map, id_column=config.id_column, limit=config.limit)
    data = read_labelled(config.source, options, request.rules, request.by)
    config = config.model_copy(update={"calibration": "none", "explain": "none", "baseline": None})
    if request.metric is not None:
        config = config.model_copy(update={"metrics": (request.metric,)})
    named = config.requests() or default_suite(available_columns(config.source, options))
    metric = named[0] if len(named) == 1 else _suggest(request, named)
    metrics = (metric.key,) if config.metrics is None else (config.metrics[named.index(metric)],)
    return Ready(request, config.model_copy(update={"metrics": metrics}), metric, data)


def _suggest(request: CalibrationRequest, possible: Sequence[MetricRequest]) -> MetricRequest:
    """Return the metric that the labels are about, guessed from the name of their column."""
    label = request.label.casefold().replace("-", "_")
    for prefix in _PREFIXES:
        label = label.removeprefix(prefix)
    fitting = [found for found in possible if _is_about(label, found)]
    if len(fitting) == 1:
        return fitting[0]
    names = ", ".join(found.key for found in fitting or possible)
    raise ConfigError(f"which metric are the labels in {request.label!r} about? Name it with --metric: {names}")


def _is_about(label: str, request: MetricRequest) -> bool:
    names = (request.metric.name, *request.metric.aliases)
    return any(name in label or (len(label) >= _SHORTEST_NAME and name.startswith(label)) for name in names)


def _calibration(ready: Ready, config: RunConfig, folder: Path, models: RunModels) -> Calibration:
    request, metric = ready.request, ready.metric
    run = FinishedRun(folder)
    rows = pair_labels(run, metric, ready.data, request.rules)
    found = measure_agreement(rows.judged, request.seed)
    return Calibration(
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        identity=metric_fingerprint(config, metric, models),
        judge=judge_name(config, models),
        metric=metric.key,
        name=metric.metric.name,
        parameters=dict(metric.parameters),
        verdict=config.verdict,
        source=config.source or "",
        data=_data_digest(run, ready.data),
        label=request.label,
        positive=request.positive,
        scale=rows.judged.scale,
        span=rows.span,
        counts=rows.counts,
        seed=request.seed,
        versions={"rag-assay": version("rag-assay")},
        **_findings(found, rows),
    )


def _findings(found: HumanAgreement, rows: PairedLabels) -> dict[str, Any]:
    judged = rows.judged
    has_ends = judged.scale is Scale.BINARY or rows.span is not None
    error = estimate_judge_error(judged.labels, judged.scores, judged.groups) if has_ends else None
    return {
        "figures": found.figures,
        "best": found.best,
        "middle": found.middle,
        "map": found.map,
        "error": error,
        "warnings": rows.warnings,
    }


def _data_digest(run: FinishedRun, data: LabelledData) -> str:
    digests = run.manifest["stages"]["samples"]["digests"]
    return calibration_files.digest_rows([*digests, *sorted(data.labels.values.items())])


def _write_to_run(folder: RunFolder, found: Calibration) -> None:
    """Write the calibration to the manifest of its own run."""
    manifest = folder.read_json(MANIFEST)
    facts = found.manifest_entry(found.verdict, applied=False)
    # These rows are labelled, so their mean label needs no estimate.
    entry = {"metrics": {found.metric: {**facts, "error": None}}, "not_covered": []}
    folder.write_json(MANIFEST, {**manifest, "calibration": entry})
    write_report(folder.path)
