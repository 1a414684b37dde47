"""The deployments, as one table: what `assay serve`, `assay deploy` and `prefect.yaml` are made from."""

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from deployments.registry.schedules import Schedule, parse_schedule
from deployments.registry.triggers import (
    HEARTBEAT_SECONDS,
    RUNS_AGAIN,
    TAG,
    Trigger,
    on_crash,
    on_index_rebuilt,
    on_long_burst,
)
from flows.config.deploy_options import DeploySettings
from flows.config.run_config import RunConfig
from metric_core.errors import ConfigError
from tasks.options.option import OptionFacts, map_values
from tasks.runtime.telemetry import DO_NOT_TRACK

POOL = "rag-assay"
"""The work pool where none is named."""

SLUG = "cron"
"""Name of a deployment's schedule within the deployment."""

_SUFFIX = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


@dataclass(frozen=True, slots=True, kw_only=True)
class DeploymentSpec:
    """A deployment.

    Args:
        name: its name.
        flow: the name of its flow.
        entrypoint: the flow, as `package.module.function`.
        description: what it does.
        parameters: those that every run has unless told otherwise.
        schedule: when it runs by itself.
        triggers: the events on which it runs.
        at_once: how many of its runs may run at the same time; further ones wait.
        runs_again: tag of those whose runs go on by themselves when their process died.
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

    @property
    def full_name(self) -> str:
        """As `prefect deployment run` takes it."""
        return f"{self.flow}/{self.name}"

    @property
    def tags(self) -> list[str]:
        """Its tags, which its runs have too."""
        return [TAG] if self.runs_again is None else [TAG, self.runs_again]


def name_suffix(name: str) -> str:
    """What the names of deployments end with, where several configurations share a server.

    Args:
        name: of the configuration; empty for the only one.

    Raises:
        ConfigError: names of deployments, automations and events can not hold it.

    >>> name_suffix(""), name_suffix("handbook")
    ('', '-handbook')
    """
    if name and _SUFFIX.fullmatch(name) is None:
        raise ConfigError(
            f"a name is up to 100 letters, digits, dots, hyphens and underscores, the first of them a letter or digit, "
            f"got {name!r}"
        )
    return f"-{name}" if name else ""


def build_specs(config: RunConfig, suffix: str = "") -> tuple[DeploymentSpec, ...]:
    """The deployments of a configuration.

    Args:
        config: what is evaluated, and how.
        suffix: what their names end with, where several configurations share a server: `-handbook`.

    Raises:
        ConfigError: a schedule that is none, or variables of a launched judge.
    """
    settings, written = config.deploy, as_parameter(config)
    evaluated = {name: value for name, value in written.items() if name != "deploy"}
    again = f"{RUNS_AGAIN}{suffix}"
    stores = {name: written[name] for name in ("tables", "cache") if name in written}
    timed = {
        name: None if cron is None else parse_schedule(cron, settings.timezone)
        for name, cron in (("evaluate", settings.cron), ("prune", settings.prune_cron))
    }
    return (
        DeploymentSpec(
            name=f"evaluate{suffix}",
            flow="evaluate",
            entrypoint="flows.evaluate.evaluate",
            description="Evaluates the source of its configuration.",
            parameters={"config": evaluated},
            schedule=timed["evaluate"],
            at_once=1,
            runs_again=again,
        ),
        DeploymentSpec(
            name=f"index-rebuilt{suffix}",
            flow="index-rebuilt",
            entrypoint="flows.index_rebuilt.index_rebuilt",
            description="Evaluates a new version of an index, and accepts it as the baseline or says why not.",
            parameters={"config": written},
            triggers=_on_index_rebuilt(settings, f"index-rebuilt{suffix}"),
            at_once=1,
            runs_again=again,
        ),
        DeploymentSpec(
            name=f"rerun-stage{suffix}",
            flow="rerun-stage",
            entrypoint="flows.rerun_stage.rerun_stage",
            description="Runs a finished run again from a stage on. Parameters: run, stage, rows.",
            runs_again=again,
        ),
        DeploymentSpec(
            name=f"compare-and-gate{suffix}",
            flow="compare",
            entrypoint="flows.compare.compare",
            description="Compares two run folders and holds the second against a gate. Parameter: comparison.",
        ),
        DeploymentSpec(
            name=f"calibrate{suffix}",
            flow="calibrate",
            entrypoint="flows.calibrate.calibrate",
            description="Tells how far the judge agrees with people. Parameter: request.",
            runs_again=again,
        ),
        DeploymentSpec(
            name=f"prune{suffix}",
            flow="prune",
            entrypoint="flows.prune.prune",
            description="Drops stage tables and answers that nothing has used for long.",
            parameters={"settings": {**stores, "dry_run": settings.prune_cron is None}},
            schedule=timed["prune"],
            at_once=1,
        ),
        DeploymentSpec(
            name=f"rerun-crashed{suffix}",
            flow="rerun-crashed",
            entrypoint="flows.resume_crashed.rerun_crashed",
            description="Has a run whose process died go on, with all that it had finished.",
            triggers=(on_crash(f"rag-assay: rerun-crashed{suffix}", again),),
        ),
    )


def _on_index_rebuilt(settings: DeploySettings, name: str) -> tuple[Trigger, ...]:
    automation, seconds = f"rag-assay: {name}", (settings.debounce_seconds, settings.longest_wait)
    return (
        on_index_rebuilt(automation, settings.index, settings.debounce_seconds),
        on_long_burst(f"{automation}: long burst", settings.index, name, seconds),
    )


def as_parameter(config: RunConfig) -> dict[str, Any]:
    """A configuration as a flow's parameter: JSON, without what is by default, its places not relative to a folder.

    Raises:
        ConfigError: variables of a launched judge, whose values no parameter shows.
    """
    if config.judge.launch is not None and config.judge.launch.environment:
        raise ConfigError(
            "the values in judge.launch.environment are secret, so they can not be parameters of a deployment; set the "
            "variables in the environment of the worker, which launches the judge, and leave the table out"
        )
    written: dict[str, Any] = config.model_dump(mode="json", exclude_defaults=True)
    return map_values(written, RunConfig, _make_absolute)


def environment() -> dict[str, str]:
    """What the environment of every run must hold: signs of life, and no telemetry."""
    return {"PREFECT_FLOWS_HEARTBEAT_FREQUENCY": str(HEARTBEAT_SECONDS)} | DO_NOT_TRACK


def prefect_yaml(deployed: tuple[DeploymentSpec, ...], pool: str, job_variables: Mapping[str, Any]) -> str:
    """The deployments as `prefect.yaml`, for `prefect deploy`.

    Args:
        deployed: the deployments.
        pool: name of the work pool.
        job_variables: how the pool is to run them.
    """
    head = (
        "# The deployments of rag-assay for a work pool, as `assay deploy --yaml` writes them for `prefect deploy`.\n"
        "# `assay deploy` makes them too, and beside them the pool, the limits of judges and what finds dead runs.\n\n"
    )
    content = {
        "name": "rag-assay",
        "pull": [],
        "deployments": [_yaml_entry(each, pool, job_variables) for each in deployed],
    }
    plain = json.loads(json.dumps(content))  # what is said twice is written twice, without YAML's anchors
    return head + yaml.safe_dump(plain, sort_keys=False, allow_unicode=True, width=110)


def _yaml_entry(deployed: DeploymentSpec, pool: str, job_variables: Mapping[str, Any]) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "name": deployed.name,
        "entrypoint": deployed.entrypoint,
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
    if not facts.path or not isinstance(value, str) or value in facts.words:
        return value
    is_elsewhere = "://" in value or value.startswith("hub:") or (facts.path == "command" and os.sep not in value)
    return value if is_elsewhere else os.fspath(Path(value).expanduser().absolute())
