"""Find the calibrations that hold for a run, and apply their maps.

A calibration holds if everything that determines the metric's tables is the same. So its identity is a digest of the
metric's settings and of the fingerprints that the stages would have if the metric were the only one.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from flows.config.calibration_request import CalibrationRequest
from flows.planning.capabilities import scoring_kinds
from flows.planning.metric_plan import MetricPlan
from flows.planning.run_plan import RunPlan
from metric_core.calibration.platt import ProbabilityMap
from metric_core.declarations.metric import MetricRequest
from metric_core.errors import ConfigError
from metric_core.stages import Stage, any_judged, closure
from tasks.calibration import calibration_files
from tasks.calibration.calibration_files import Calibration
from tasks.calibration.label_pairing import LabelledData
from tasks.engine.registry import STAGES
from tasks.engine.stage_step import fingerprint_stage
from tasks.models.judges.routed_judge import roles_of
from tasks.opening.run_models import RunModels
from tasks.options.metric_settings import MetricSettings
from tasks.options.settings import Settings
from tasks.record.judge_quality import CalibrationRecord
from tasks.record.run_record import RunRecord
from tasks.record.stored_figures import JudgeName
from tasks.runs.finished_run import FinishedRun
from tasks.runs.judge_roles import judge_of_kind
from tasks.runs.run_folder import CALIBRATION
from tasks.stages.aggregation import AggregationSettings


@dataclass(frozen=True, slots=True)
class MatchingCalibrations:
    """The calibrations that hold for a run.

    Args:
        by_metric: Key of a metric -> its calibration.
        not_covered: Sentences on calibrations of the same metrics and judge model that do not hold.
    """

    by_metric: dict[str, Calibration]
    not_covered: tuple[str, ...]


def metric_fingerprint(plan: RunPlan, request: MetricRequest, models: RunModels) -> str:
    """Return the digest of all that determines a metric, independent of the other metrics of the run.

    Args:
        plan: Plan of a run whose judge is running.
    """
    alone = replace(request, key=request.metric.name)
    metrics = MetricPlan((alone,), closure(alone.products), {})
    settings = metrics.settings_instead(plan.stages)
    stages = {
        stage: [STAGES[stage].version, fingerprint_stage(stage, settings[stage], models)]
        for stage in metrics.cached_stages
    }
    content = [MetricSettings.from_request(alone).model_dump(mode="json"), stages]
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def judge_name(plan: RunPlan, models: RunModels, request: MetricRequest) -> JudgeName:
    """Return the identity of the judge whose answers are the scores of a metric: its verdicts or its ratings.

    Args:
        plan: Plan of a run whose judge is running.
    """
    judge = models.open_judges(plan.judged)
    roles = roles_of(judge, scoring_kinds(request))
    identity = (roles[0].judge if len(roles) == 1 else judge).identity
    return JudgeName(backend=identity.backend, model=identity.model, revision=identity.revision)


def recorded_judge_name(record: RunRecord, request: MetricRequest) -> JudgeName:
    """Return the name of the judge whose answers were the scores of a metric in a finished run."""
    judge = judge_of_kind(record, scoring_kinds(request))
    return JudgeName(judge.backend, judge.model, judge.revision)


def number_of_look(
    request: CalibrationRequest, run: FinishedRun, metric: MetricRequest, data: LabelledData, identity: str
) -> int:
    """Return the number of this look at a sample: those in ASSAY_HOME count, and the last one of the run.

    Raises:
        ConfigError: The last one of the run cannot be read.
    """
    file = run.folder / CALIBRATION
    try:
        last = [calibration_files.load_calibration(file)] if file.exists() else []
    except ConfigError as error:
        raise ConfigError(
            f"it is not known how often this sample was looked at: {error}. Restore the file, or delete it to count "
            "only the looks in ASSAY_HOME"
        ) from error
    where = (identity, metric.key, sample_name(request, run))
    return calibration_files.count_looks(*where, data_digest(run, data), last)


def sample_name(request: CalibrationRequest, run: FinishedRun) -> str:
    """Return the name of what labels were drawn from: the run, or the source of labels from elsewhere."""
    if request.run is not None:
        return f"run {run.record.run_id}"
    return f"{request.config.source}, {request.label}"


def data_digest(run: FinishedRun, data: LabelledData) -> str:
    """Return the digest of the rows of a run and their labels."""
    digests = run.record.stages[Stage.SAMPLES].digests
    return calibration_files.digest_label_rows([*digests, *sorted(data.labels.values.items())])


def find_agreement(plan: RunPlan, models: RunModels) -> CalibrationRecord:
    """Return what is known of the judge's agreement with people.

    Args:
        plan: Plan of a run whose judge is running.

    Raises:
        ConfigError: The plan asks for a calibration that does not hold for this judge.
    """
    calibrations = _find_calibrations(plan, models)
    applied = _select_maps(plan, calibrations, models)
    metrics = {
        key: each.to_record(plan.metrics.verdict, key in applied) for key, each in calibrations.by_metric.items()
    }
    identities = {
        request.key: metric_fingerprint(plan, request, models)
        for request in plan.metrics.requests
        if any_judged(request.products)
    }
    return CalibrationRecord(metrics=metrics, not_covered=calibrations.not_covered, identities=identities)


def mapped_settings(plan: RunPlan, models: RunModels) -> Mapping[Stage, Settings]:
    """Return the settings of all stages with the maps of the calibration that the plan asks for.

    Args:
        plan: Plan of a run whose judge is running.

    Raises:
        ConfigError: The plan asks for a calibration that does not hold for this judge.
    """
    aggregation = plan.stages[Stage.AGGREGATION]
    if plan.metrics.options.calibration == "none" or not isinstance(aggregation, AggregationSettings):
        return plan.stages
    maps = _select_maps(plan, _find_calibrations(plan, models), models)
    return {**plan.stages, Stage.AGGREGATION: aggregation.model_copy(update={"maps": maps})}


def _find_calibrations(plan: RunPlan, models: RunModels) -> MatchingCalibrations:
    requests, chosen = plan.metrics.requests, plan.metrics.options.calibration
    is_file = chosen not in ("none", "latest")
    known = (
        [calibration_files.load_calibration(Path(chosen).expanduser())] if is_file else calibration_files.load_latest()
    )
    if not known:
        return MatchingCalibrations({}, ())
    identities = {request.key: metric_fingerprint(plan, request, models) for request in requests}
    by_identity = {calibration.identity: calibration for calibration in reversed(known)}
    by_metric = {key: by_identity[identity] for key, identity in identities.items() if identity in by_identity}
    if is_file and not by_metric:
        raise ConfigError(_wrong_file(known[0], plan, models))
    lacking = {request.metric.name: request for request in requests if request.key not in by_metric}
    others = [(each, judge_name(plan, models, lacking[each.name])) for each in known if each.name in lacking]
    return MatchingCalibrations(by_metric, tuple(dict.fromkeys(_sentences(others))))


def _sentences(others: Iterable[tuple[Calibration, JudgeName]]) -> Iterator[str]:
    for calibration, judge in others:
        if (why := calibration_files.describe_mismatch(calibration, judge)) is not None:
            day = calibration_files.format_date(calibration.created)
            yield f"the calibration of {calibration.metric} of {day} does not hold here: it is {why}"


def _wrong_file(calibration: Calibration, plan: RunPlan, models: RunModels) -> str:
    file = plan.metrics.options.calibration
    request = next((each for each in plan.metrics.requests if each.metric.name == calibration.name), None)
    if request is None:
        return f"the calibration {file} is for {calibration.metric}, which this run does not compute"
    judge = judge_name(plan, models, request)
    why = calibration_files.describe_mismatch(calibration, judge) or f"of the judge {calibration.judge}, not {judge}"
    return (
        f"the calibration {file} does not hold for this run: it is {why}. Calibrate this judge with `assay calibrate`."
    )


def _select_maps(plan: RunPlan, calibrations: MatchingCalibrations, models: RunModels) -> dict[str, ProbabilityMap]:
    chosen = plan.metrics.options.calibration
    if chosen == "none":
        return {}
    if plan.metrics.verdict != "probability":
        raise ConfigError(
            f'calibration = "{chosen}" changes probabilities, but verdict is "binary"; set verdict = "probability"'
        )
    maps = {key: each.map for key, each in calibrations.by_metric.items() if each.map is not None}
    if not maps:
        identity = models.open_judges(plan.judged).identity
        judge = JudgeName(backend=identity.backend, model=identity.model, revision=identity.revision)
        notes = "".join(f"; {note}" for note in calibrations.not_covered)
        raise ConfigError(
            f"no calibration with a map is saved for the judge {judge} and these metrics{notes}. "
            "`assay calibrate` makes one from labelled rows."
        )
    return maps
