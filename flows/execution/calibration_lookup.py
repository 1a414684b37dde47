"""Find the calibrations that hold for a run, and apply their maps.

A calibration holds if everything that determines the metric's tables is the same. So its identity is a digest of the
metric's settings and of the fingerprints that the stages would have if the metric were the only one.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from flows.config.run_config import RunConfig
from flows.execution.answerable import scoring_kinds
from flows.execution.plan import Plan
from flows.execution.stage_settings import judged_settings, stage_settings
from metric_core.calibration.platt import ProbabilityMap
from metric_core.errors import ConfigError
from metric_core.metric import MetricRequest
from metric_core.stages import Stage, any_judged, closure
from tasks.calibration import calibration_files
from tasks.calibration.calibration_files import Calibration, JudgeName
from tasks.engine.stage_step import fingerprint_stage
from tasks.judges.routed_judge import roles_of
from tasks.models.run_models import RunModels
from tasks.options.metric_settings import MetricSettings
from tasks.options.settings import Settings
from tasks.runs.judge_roles import IDENTITY, judge_of_kind
from tasks.stages.aggregation import AggregationSettings
from tasks.stages.registry import STAGES


@dataclass(frozen=True, slots=True)
class MatchingCalibrations:
    """The calibrations that hold for a run.

    Args:
        by_metric: Key of a metric -> its calibration.
        not_covered: Sentences on calibrations of the same metrics and judge model that do not hold.
    """

    by_metric: dict[str, Calibration]
    not_covered: tuple[str, ...]


def metric_fingerprint(config: RunConfig, request: MetricRequest, models: RunModels) -> str:
    """Return the digest of all that determines a metric, independent of the other metrics of the run.

    Args:
        config: Configuration of a run whose judge is running.
        request: Metric with its parameters.
        models: Models of the run.
    """
    alone = replace(request, key=request.metric.name)
    plan = Plan((alone,), closure(alone.products), {}, "none")
    settings = stage_settings(config.model_copy(update={"verdict": "binary", "refresh": ()}), plan)
    stages = {
        stage: [STAGES[stage].version, fingerprint_stage(stage, settings[stage], models)]
        for stage in plan.cached_stages
    }
    content = [MetricSettings.from_request(alone).model_dump(mode="json"), stages]
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def judge_name(config: RunConfig, models: RunModels, request: MetricRequest) -> JudgeName:
    """Return the identity of the judge whose answers are the scores of a metric: its verdicts or its ratings.

    Args:
        config: Configuration of a run whose judge is running.
        models: Models of the run.
        request: Metric with its parameters.
    """
    judge = models.open_judges(judged_settings(config))
    roles = roles_of(judge, scoring_kinds(request))
    identity = (roles[0].judge if len(roles) == 1 else judge).identity
    return JudgeName(backend=identity.backend, model=identity.model, revision=identity.revision)


def recorded_judge_name(manifest: Mapping[str, Any], request: MetricRequest) -> JudgeName:
    """Return the identity of the judge whose answers were the scores of a metric in a finished run.

    Args:
        manifest: Content of run.json.
        request: Metric with its parameters.
    """
    judge = judge_of_kind(manifest, scoring_kinds(request))
    return JudgeName(**{field: str(judge.get(field) or "") for field in IDENTITY})


def calibration_entry(config: RunConfig, plan: Plan, models: RunModels) -> dict[str, Any]:
    """Return the entry of run.json on the judge's agreement with people.

    Args:
        config: Configuration of a run whose judge is running.
        plan: Plan of the run.
        models: Models of the run.

    Raises:
        ConfigError: The configuration asks for a calibration that does not hold for this judge.
    """
    calibrations = _find_calibrations(config, plan.requests, models)
    applied = _select_maps(config, calibrations, models)
    metrics = {
        key: each.manifest_entry(config.verdict_kind, key in applied) for key, each in calibrations.by_metric.items()
    }
    identities = {
        request.key: metric_fingerprint(config, request, models)
        for request in plan.requests
        if any_judged(request.products)
    }
    return {"metrics": metrics, "not_covered": list(calibrations.not_covered), "identities": identities}


def with_maps(
    settings: dict[Stage, Settings], config: RunConfig, plan: Plan, models: RunModels
) -> dict[Stage, Settings]:
    """Return the settings of all stages with the maps that the configuration asks for.

    Raises:
        ConfigError: The configuration asks for a calibration that does not hold for this judge.
    """
    aggregation = settings[Stage.AGGREGATION]
    if config.calibration == "none" or not isinstance(aggregation, AggregationSettings):
        return settings
    maps = _select_maps(config, _find_calibrations(config, plan.requests, models), models)
    return {**settings, Stage.AGGREGATION: aggregation.model_copy(update={"maps": maps})}


def _find_calibrations(config: RunConfig, requests: Sequence[MetricRequest], models: RunModels) -> MatchingCalibrations:
    is_file = config.calibration not in ("none", "latest")
    known = (
        [calibration_files.load(Path(config.calibration).expanduser())] if is_file else calibration_files.load_latest()
    )
    if not known:
        return MatchingCalibrations({}, ())
    identities = {request.key: metric_fingerprint(config, request, models) for request in requests}
    by_identity = {calibration.identity: calibration for calibration in reversed(known)}
    by_metric = {key: by_identity[identity] for key, identity in identities.items() if identity in by_identity}
    if is_file and not by_metric:
        raise ConfigError(_wrong_file(known[0], config, requests, models))
    lacking = {request.metric.name: request for request in requests if request.key not in by_metric}
    others = [(each, judge_name(config, models, lacking[each.name])) for each in known if each.name in lacking]
    return MatchingCalibrations(by_metric, tuple(dict.fromkeys(_sentences(others))))


def _sentences(others: Iterable[tuple[Calibration, JudgeName]]) -> Iterator[str]:
    for calibration, judge in others:
        if (why := calibration_files.describe_mismatch(calibration, judge)) is not None:
            day = calibration_files.format_day(calibration.created)
            yield f"the calibration of {calibration.metric} of {day} does not hold here: it is {why}"


def _wrong_file(
    calibration: Calibration, config: RunConfig, requests: Sequence[MetricRequest], models: RunModels
) -> str:
    request = next((each for each in requests if each.metric.name == calibration.name), None)
    if request is None:
        return f"the calibration {config.calibration} is for {calibration.metric}, which this run does not compute"
    judge = judge_name(config, models, request)
    why = calibration_files.describe_mismatch(calibration, judge) or f"of the judge {calibration.judge}, not {judge}"
    return (
        f"the calibration {config.calibration} does not hold for this run: it is {why}. "
        "Calibrate this judge with `assay calibrate`."
    )


def _select_maps(config: RunConfig, calibrations: MatchingCalibrations, models: RunModels) -> dict[str, ProbabilityMap]:
    if config.calibration == "none":
        return {}
    if config.verdict_kind != "probability":
        raise ConfigError(
            f'calibration = "{config.calibration}" changes probabilities, but verdict is "binary"; '
            'set verdict = "probability"'
        )
    maps = {key: each.map for key, each in calibrations.by_metric.items() if each.map is not None}
    if not maps:
        identity = models.open_judges(judged_settings(config)).identity
        judge = JudgeName(backend=identity.backend, model=identity.model, revision=identity.revision)
        notes = "".join(f"; {note}" for note in calibrations.not_covered)
        raise ConfigError(
            f"no calibration with a map is saved for the judge {judge} and these metrics{notes}. "
            "`assay calibrate` makes one from labelled rows."
        )
    return maps
