"""Define the deployments once, for `assay serve`, `assay deploy` and `prefect.yaml`."""

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from deployments.registry.schedules import Schedule, schedule_of
from deployments.registry.triggers import (
    HEARTBEAT_SECONDS,
    RUNS_AGAIN,
    TAG,
    Trigger,
    on_crash,
    on_index_rebuilt,
)
from flows.config.deploy_options import DeploySettings
from flows.config.result_options import MonitoringOptions
from flows.config.run_config import RunConfig
from metric_core.errors import ConfigError
from tasks.options.judge_options import JudgeOptions
from tasks.options.metric_options import MetricOptions
from tasks.options.narrow import narrow
from tasks.options.option import OptionFacts, OptionGroup, find_secret_references, map_values
from tasks.options.source_options import split_kind
from tasks.prefect_support.deployed_run import version_of
from tasks.runs.run_folder import RUNS
from tasks.runtime.credentials import is_reference
from tasks.runtime.log_format import log_variables
from tasks.runtime.telemetry import DO_NOT_TRACK

POOL = "rag-assay"
"""Default name of the work pool."""

SLUG = "cron"
"""Name of a deployment's schedule within the deployment."""

_SUFFIX = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


@dataclass(frozen=True, slots=True, kw_only=True)
class DeploymentSpec:
    """A deployment.

    Args:
        entrypoint: Flow as `package.module.function`.
        parameters: Default parameters of its runs.
        schedule: Schedule of its runs; None for no schedule.
        at_once: Maximum number of concurrent runs; further runs wait. None for no limit.
        runs_again: Tag of deployments whose runs are resumed automatically after a crash; None for other deployments.
        is_watched: True if the server reports scheduled runs that do not start or end as they should.
    """

    name: str
    flow: str
    entrypoint: str
    description: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    schedule: Schedule | None = None
    triggers: tuple[Trigger, ...] = ()
    at_once: int | None = None
    runs_again: str | None = None
    is_watched: bool = False

    @property
    def full_name(self) -> str:
        """The name as `prefect deployment run` takes it."""
        return f"{self.flow}/{self.name}"

    @property
    def version(self) -> str:
        """The version of its parameters, which the server notes at each run."""
        return version_of(self.parameters)

    @property
    def tags(self) -> list[str]:
        """The tags of the deployment and of its runs."""
        return [TAG] if self.runs_again is None else [TAG, self.runs_again]


def name_suffix(name: str) -> str:
    """Return the suffix of the names of deployments, for several configurations on one server.

    Args:
        name: Name of the configuration; empty for a single configuration.

    Raises:
        ConfigError: The name has characters that names of deployments, automations and events cannot have.

    >>> name_suffix(""), name_suffix("handbook")
    ('', '-handbook')
    """
    if name and _SUFFIX.fullmatch(name) is None:
        raise ConfigError(
            f"a name must have up to 100 letters, digits, dots, hyphens and underscores, and begin with a letter or "
            f"digit, got {name!r}"
        )
    return f"-{name}" if name else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeploymentPlan:
    """The plan of the deployments of a configuration.

    Args:
        suffix: Suffix of their names, for several configurations on one server: `-handbook`.
        parameter: Configuration of their runs, as a flow's parameter.
        options: Options of schedules, gate, baselines and alerts.
    """

    suffix: str
    parameter: Mapping[str, Any]
    options: MonitoringOptions
    judges: JudgeOptions
    metrics: MetricOptions
    secrets: tuple[str, ...]


def plan_deployments(config: RunConfig, suffix: str = "") -> DeploymentPlan:
    """Plan the deployments of a configuration.

    Schedules, events and people share the name of the evaluation, which the suffix gives to one that has none.
    """
    if config.name is None and suffix:
        config = config.model_copy(update={"name": suffix.removeprefix("-")})
    return DeploymentPlan(
        suffix=suffix,
        parameter=as_parameter(config),
        options=narrow(config, MonitoringOptions),
        judges=narrow(config, JudgeOptions),
        metrics=narrow(config, MetricOptions),
        secrets=find_secret_references(config),
    )


def build_specs(plan: DeploymentPlan) -> tuple[DeploymentSpec, ...]:
    """Return the deployments of a plan.

    Raises:
        ConfigError: A schedule is invalid, or a launched judge has environment variables, whose secret values no
            parameter may show.
    """
    if any(launch.environment for launch in plan.judges.launches.values()):
        raise ConfigError(
            "the values in judge.launch.environment are secret, so they cannot be parameters of a deployment; set the "
            "variables in the environment of the worker, which launches the judge, and leave the table out"
        )
    settings, written, suffix = plan.options.deploy, plan.parameter, plan.suffix
    evaluated = {name: value for name, value in written.items() if name != "deploy"}
    if settings.alerts.link is not None:
        evaluated["deploy"] = {"alerts": {"link": settings.alerts.link}}  # for the links of artifacts
    again = f"{RUNS_AGAIN}{suffix}"
    stores = {name: written[name] for name in ("tables", "cache", "history") if name in written}
    out = {"run": written["out"]} if "out" in written else {}
    gate = {name: value for name, value in written.get("deploy", {}).items() if name == "gate"}
    pruned = schedule_of(settings.prune_cron, None, settings.timezone)
    return (
        DeploymentSpec(
            name=f"evaluate{suffix}",
            flow="evaluate",
            entrypoint="rag_assay.prefect_flows.evaluate",
            description="Evaluate the source of the configuration.",
            parameters={"config": evaluated},
            at_once=1,
            runs_again=again,
        ),
        DeploymentSpec(
            name=f"monitor{suffix}",
            flow="monitor",
            entrypoint="rag_assay.prefect_flows.monitor",
            description="Evaluate the source, compare with the baseline, apply the gate, and accept the run or alert.",
            parameters={"config": written},
            schedule=schedule_of(settings.cron, settings.interval, settings.timezone),
            at_once=1,
            runs_again=again,
            is_watched=True,
        ),
        DeploymentSpec(
            name=f"index-rebuilt{suffix}",
            flow="index-rebuilt",
            entrypoint="rag_assay.prefect_flows.index_rebuilt",
            description="Evaluate a new version of an index, and accept it as the baseline or report why not.",
            parameters={"config": written},
            triggers=(
                on_index_rebuilt(f"rag-assay: index-rebuilt{suffix}", settings.index, settings.debounce_seconds),
            ),
            at_once=1,
            runs_again=again,
        ),
        DeploymentSpec(
            name=f"rerun-stage{suffix}",
            flow="rerun-stage",
            entrypoint="rag_assay.prefect_flows.rerun_stage",
            description="Run a finished run again from a stage on. Parameters: run, stage, rows.",
            parameters=out,
            runs_again=again,
        ),
        DeploymentSpec(
            name=f"compare-and-gate{suffix}",
            flow="compare",
            entrypoint="rag_assay.prefect_flows.compare",
            description="Compare two run folders, and check the second against the gate. Parameter: comparison.",
            parameters={"comparison": {**out, **gate}},
        ),
        DeploymentSpec(
            name=f"calibrate{suffix}",
            flow="calibrate",
            entrypoint="rag_assay.prefect_flows.calibrate",
            description="Measure the agreement of the judge with people. Parameter: request.",
            parameters={"request": {"config": {name: value for name, value in evaluated.items() if name != "out"}}},
            runs_again=again,
        ),
        DeploymentSpec(
            name=f"prune{suffix}",
            flow="prune",
            entrypoint="rag_assay.prefect_flows.prune",
            description="Remove stage tables and cached answers that have not been used for long, and old run folders.",
            parameters={"settings": {**stores, **_retention(settings), "dry_run": settings.prune_cron is None}},
            schedule=pruned,
            at_once=1,
        ),
        DeploymentSpec(
            name=f"rerun-crashed{suffix}",
            flow="rerun-crashed",
            entrypoint="rag_assay.prefect_flows.rerun_crashed",
            description="Resume a run whose process died, with all that it had finished.",
            triggers=(on_crash(f"rag-assay: rerun-crashed{suffix}", again),),
        ),
        DeploymentSpec(
            name=f"refuse-event{suffix}",
            flow="refuse-event",
            entrypoint="rag_assay.prefect_flows.refuse_event",
            description="Send an alert about an index event that no deployment listens to.",
            parameters={"alerts": written.get("deploy", {}).get("alerts", {})},
            runs_again=again,
        ),
    )


def _retention(settings: DeploySettings) -> dict[str, Any]:
    """Return the parameters of pruning about runs, whose folders the worker writes to runs/ in its working folder."""
    rules = {"keep_last_runs": settings.keep_last_runs, "keep_runs_days": settings.keep_runs_days}
    given = {name: value for name, value in rules.items() if value is not None}
    folders = {"runs": RUNS, **given} if given else {}
    baselines = {} if settings.baselines is None or not folders else {"baselines": settings.baselines}
    return {**folders, **baselines}


def as_parameter(options: OptionGroup) -> dict[str, Any]:
    """Return options as a flow's parameter: JSON without default values, with absolute paths."""
    written: dict[str, Any] = options.model_dump(mode="json", exclude_defaults=True)
    return map_values(written, type(options), _make_absolute)


def environment(log_format: str = "text") -> dict[str, str]:
    """Return the environment variables of every run: heartbeats, no telemetry, and the format of logs.

    Args:
        log_format: `text` or `json`.
    """
    heartbeat = {"PREFECT_FLOWS_HEARTBEAT_FREQUENCY": str(HEARTBEAT_SECONDS)}
    return heartbeat | DO_NOT_TRACK | log_variables(log_format)


def prefect_yaml(deployed: tuple[DeploymentSpec, ...], pool: str, job_variables: Mapping[str, object]) -> str:
    """Return the deployments as `prefect.yaml`, for `prefect deploy`.

    Args:
        deployed: Deployments to write.
        pool: Name of the work pool.
        job_variables: Variables of the pool's jobs.
    """
    head = (
        "# The deployments of rag-assay for a work pool, as `assay deploy --yaml` writes them for `prefect deploy`.\n"
        "# `assay deploy` creates them too, and also the pool, the limits of judges and the detection of dead runs.\n\n"
    )
    content = {
        "name": "rag-assay",
        "pull": [],
        "deployments": [_yaml_entry(each, pool, job_variables) for each in deployed],
    }
    plain = json.loads(json.dumps(content))  # copies repeated values, so that YAML writes no anchors
    return head + yaml.safe_dump(plain, sort_keys=False, allow_unicode=True, width=110)


def _yaml_entry(deployed: DeploymentSpec, pool: str, job_variables: Mapping[str, object]) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "name": deployed.name,
        "entrypoint": deployed.entrypoint,
        "version": deployed.version,
        "description": deployed.description,
        "tags": deployed.tags,
        "enforce_parameter_schema": False,
    }
    if deployed.parameters:
        entry["parameters"] = dict(deployed.parameters)
    if deployed.schedule is not None:
        entry["schedules"] = [{"slug": SLUG, **deployed.schedule}]
    if deployed.triggers:
        entry["triggers"] = list(deployed.triggers)
    if deployed.at_once is not None:
        entry["concurrency_limit"] = {"limit": deployed.at_once, "collision_strategy": "ENQUEUE"}
    entry["work_pool"] = {"name": pool, "job_variables": dict(job_variables)}
    return entry


def _make_absolute(facts: OptionFacts, value: Any) -> Any:
    if not (facts.is_path or facts.holds == "command") or not isinstance(value, str) or value in facts.words:
        return value
    kind, path = split_kind(value)
    is_elsewhere = "://" in value or value.startswith("hub:") or is_reference(value)
    is_elsewhere |= facts.holds == "command" and os.sep not in value
    return value if is_elsewhere else f"{kind}{Path(path).expanduser().absolute()}"
