"""Create and update deployments, automations, limits and the work pool on a Prefect server."""

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from uuid import UUID

import httpx
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.actions import DeploymentScheduleCreate, WorkPoolCreate
from prefect.client.schemas.objects import ConcurrencyLimitStrategy, ConcurrencyOptions
from prefect.client.schemas.responses import DeploymentResponse
from prefect.events.schemas.automations import AutomationCore
from prefect.events.schemas.deployment_triggers import DeploymentEventTrigger
from prefect.exceptions import ObjectNotFound, PrefectHTTPStatusError
from prefect.flows import Flow, load_flow_from_entrypoint
from prefect.utilities.callables import parameter_schema
from prefect.workers.utilities import get_default_base_job_template_for_infrastructure_type

from deployments.registry.automations import (
    PREFIX,
    apply_automation,
    apply_refusal,
    automations_of,
    find_overlaps,
    read_deployments,
    remove_automations,
    stale_automations,
)
from deployments.registry.changes import AppliedChanges, Change
from deployments.registry.checks import server_checks
from deployments.registry.open_incidents import find_open_incidents
from deployments.registry.recipients import apply_recipients, remove_recipients
from deployments.registry.report_events import WATCHED, deployment_event, send_events
from deployments.registry.schedules import describe_schedule, find_gaps, prefect_schedule
from deployments.registry.silenced_reports import silence_deployment, silenced_until
from deployments.registry.specs import (
    SLUG,
    DeploymentPlan,
    DeploymentSpec,
    build_specs,
    environment,
    plan_deployments,
)
from deployments.registry.triggers import RUNS_AGAIN, on_silence
from deployments.registry.watch import WatchedDeployment, watch_automations
from flows.config.result_options import MonitoringOptions
from flows.config.run_config import RunConfig
from metric_core.errors import AssayError, ConfigError
from tasks.engine.concurrency_limits import create_limits
from tasks.history.run_entry import evaluation_name
from tasks.options.judge_options import JudgeOptions
from tasks.runtime.http_errors import name_http_error


@dataclass(frozen=True, slots=True, kw_only=True)
class DeploymentTarget:
    """The place where deployments run.

    Args:
        pool: Name of the work pool; created if it does not exist.
        pool_type: `process`, `docker` or `kubernetes`; None accepts the pool as it is.
        image: Image with rag-assay, for `docker` and `kubernetes`.
        job_variables: Further variables of the pool's jobs.
        log_format: Format of the logs of runs, `text` or `json`.
    """

    pool: str
    pool_type: str | None = None
    image: str | None = None
    job_variables: Mapping[str, Any] = field(default_factory=dict)
    log_format: str = "text"

    @property
    def variables(self) -> dict[str, Any]:
        """The variables of the pool's jobs."""
        given = dict(self.job_variables)
        given["env"] = environment(self.log_format) | dict(given.get("env") or {})
        return given if self.image is None else {**given, "image": self.image}


def apply(plan: DeploymentPlan, place: DeploymentTarget) -> list[AppliedChanges]:
    """Create or update the work pool, the limits of judges, the deployments and their automations.

    Automations that are no longer wanted, or whose deployment is gone, are removed. Applying the same configuration
    again changes nothing.

    Returns:
        The objects on the server and their changes, and the deployments that evaluate the same index.

    Raises:
        ConfigError: The pool has another type, a process pool is given an image, a schedule is invalid, or a block that
            the configuration names does not exist.
        AssayError: The server cannot be reached, or refuses a request.
    """
    deployed = build_specs(plan)
    with _translate_server_errors(), get_client(sync_client=True) as client:
        for check in server_checks(client, plan):
            check.check()
        done = [_pool(client, place), *_limits(client, plan.judges)]
        announced: list[WatchedDeployment] = []
        for each in deployed:
            deployment_id, change = _deployment(client, each, place)
            done.append(AppliedChanges("deployment", each.full_name, change, _when(each)))
            done += _automations(client, each, plan.suffix, deployment_id)
            if each.is_watched:
                done += _watch(client, plan.options, each, (deployment_id, place.pool, change), announced)
        done += apply_refusal(client)
        wanted = {each.name for each in done if each.kind == "automation"}
        names = {each.name for each in deployed}
        unwanted = [each for each in automations_of(client, names) if each.name not in wanted]
        stale = {each.id: each for each in (*unwanted, *stale_automations(client))}
        if announced:
            send_events(client, lambda: [deployment_event(WATCHED, each.id, each.name) for each in announced])
        return [*done, *remove_automations(client, stale.values()), *find_overlaps(client, names)]


def remove(suffix: str, *, dry_run: bool) -> list[AppliedChanges]:
    """Remove the deployments of a configuration, with their schedules, automations and runs that have not started.

    The work pool and the limits of judges stay, because other deployments may use them.

    Args:
        dry_run: If true, remove nothing.

    Returns:
        The objects that were removed, or are to be.

    Raises:
        AssayError: The server cannot be reached, or refuses a request.
    """
    specs = build_specs(plan_deployments(RunConfig(), suffix))
    done: list[AppliedChanges] = []
    change = Change.TO_REMOVE if dry_run else Change.REMOVED
    with _translate_server_errors(), get_client(sync_client=True) as client:
        found = {each.name: each for each in read_deployments(client)}
        automations = [*automations_of(client, [spec.name for spec in specs]), *stale_automations(client)]
        unique = {each.id: each for each in automations}.values()
        if dry_run:
            done += [AppliedChanges("automation", each.name, change) for each in unique]
        else:
            done += remove_automations(client, unique)
        for spec in specs:
            if spec.is_watched:
                done += remove_recipients(client, spec.name, dry_run=dry_run)
            if (existing := found.get(spec.name)) is not None:
                if spec.is_watched:
                    done += find_open_incidents(existing.parameters.get("config") or {})
                if not dry_run:
                    client.delete_deployment(existing.id)
                done.append(AppliedChanges("deployment", spec.full_name, change, _schedules(existing)))
        if not dry_run:
            done += [each for each in apply_refusal(client) if each.change is not Change.UNCHANGED]
    return done


def _schedules(found: DeploymentResponse) -> str:
    return ", ".join(filter(None, (describe_schedule(each.schedule) for each in found.schedules)))


def _pool(client: SyncPrefectClient, place: DeploymentTarget) -> AppliedChanges:
    try:
        found = client.read_work_pool(place.pool)
    except ObjectNotFound:
        kind = place.pool_type or "process"
        _check_image(place, kind)
        template = asyncio.run(get_default_base_job_template_for_infrastructure_type(kind))
        client.create_work_pool(WorkPoolCreate(name=place.pool, type=kind, base_job_template=template or {}))
        return AppliedChanges("work pool", place.pool, Change.CREATED, kind)
    if place.pool_type not in (None, found.type):
        raise ConfigError(
            f"the work pool {place.pool} has the type {found.type}, not {place.pool_type}; name another pool, or omit "
            "--work-pool-type"
        )
    _check_image(place, found.type)
    return AppliedChanges("work pool", place.pool, Change.UNCHANGED, found.type)


def _check_image(place: DeploymentTarget, kind: str) -> None:
    if kind == "process" and place.image is not None:
        raise ConfigError("a process pool cannot run images; omit --image, or name a pool of type docker")
    if kind in ("docker", "kubernetes") and place.image is None and "image" not in place.job_variables:
        raise ConfigError(f"a pool of type {kind} needs an image with rag-assay: give one with --image NAME")


def _limits(client: SyncPrefectClient, options: JudgeOptions) -> Iterator[AppliedChanges]:
    before = {limit.name: limit.limit for limit in client.read_global_concurrency_limits(limit=200)}
    for name, slots in create_limits(options.judges, update=True).items():
        change = Change.UNCHANGED if before.get(name) == slots else Change.UPDATED
        yield AppliedChanges("limit", name, change if name in before else Change.CREATED, f"{slots} slots")


def _deployment(client: SyncPrefectClient, deployed: DeploymentSpec, place: DeploymentTarget) -> tuple[UUID, Change]:
    wanted: dict[str, Any] = {
        "name": deployed.name,
        "entrypoint": deployed.entrypoint,
        "version": deployed.version,
        "description": deployed.description,
        "tags": deployed.tags,
        "parameters": dict(deployed.parameters),
        "work_pool_name": place.pool,
        "job_variables": place.variables,
        "parameter_openapi_schema": _schema(deployed),
        "paused": False,
        "pull_steps": [],
        "enforce_parameter_schema": False,
    }
    try:
        found: DeploymentResponse | None = client.read_deployment_by_name(deployed.full_name)
    except ObjectNotFound:
        found = None
    if found is not None and _is_current(found, wanted, deployed):
        return found.id, Change.UNCHANGED
    schedules = [] if deployed.schedule is None else [_schedule(deployed)]
    made = client.create_deployment(
        flow_id=client.create_flow_from_name(deployed.flow),
        schedules=schedules,
        concurrency_limit=deployed.at_once,
        concurrency_options=ConcurrencyOptions(collision_strategy=ConcurrencyLimitStrategy.ENQUEUE),
        **wanted,
    )
    return made, Change.CREATED if found is None else Change.UPDATED


def _is_current(found: DeploymentResponse, wanted: Mapping[str, object], deployed: DeploymentSpec) -> bool:
    limit = found.global_concurrency_limit.limit if found.global_concurrency_limit is not None else None
    have = found.model_dump(mode="json", include={*wanted} - {"pull_steps"})
    active = [each.schedule for each in found.schedules if each.active]
    wanted_schedules = [] if deployed.schedule is None else [prefect_schedule(deployed.schedule)]
    is_same = all(have[name] == value for name, value in wanted.items() if name != "pull_steps")
    return is_same and limit == deployed.at_once and active == wanted_schedules and len(found.schedules) == len(active)


def _schema(deployed: DeploymentSpec) -> dict[str, Any]:
    flow: Flow[..., Any] = load_flow_from_entrypoint(deployed.entrypoint, use_placeholder_flow=False)
    schema: dict[str, Any] = parameter_schema(flow).model_dump(mode="json", exclude_unset=True)
    return schema


def _schedule(deployed: DeploymentSpec) -> DeploymentScheduleCreate:
    assert deployed.schedule is not None  # noqa: S101 checked by the caller
    return DeploymentScheduleCreate(schedule=prefect_schedule(deployed.schedule), active=True, slug=SLUG)


def _automations(
    client: SyncPrefectClient, deployed: DeploymentSpec, suffix: str, deployment_id: UUID
) -> list[AppliedChanges]:
    wanted: list[AutomationCore] = []
    for each in deployed.triggers:
        trigger = DeploymentEventTrigger.model_validate(each)
        trigger.set_deployment_id(deployment_id)
        wanted.append(trigger.as_automation())
        if deployed.flow == "rerun-crashed":
            tag = f"{RUNS_AGAIN}{suffix}"
            wanted.append(on_silence(f"{each['name']}: silence", tag, f"prefect.deployment.{deployment_id}"))
    return [AppliedChanges("automation", each.name, apply_automation(client, each)) for each in wanted]


def _watch(
    client: SyncPrefectClient,
    options: MonitoringOptions,
    deployed: DeploymentSpec,
    place: tuple[UUID, str, Change],
    announced: list[WatchedDeployment],
) -> Iterator[AppliedChanges]:
    """Have the server report the scheduled runs of a deployment that do not start or end as they should.

    A deployment is added to `announced` if its automations are new or changed, or if it has: its runs are then
    scheduled again, perhaps at other times. A silence of its reports continues.
    """
    if deployed.schedule is None:
        yield from remove_recipients(client, deployed.name)
        return
    deployment_id, pool, change = place
    evaluation = evaluation_name(deployed.parameters["config"].get("name"), "", options.source)
    recipients, changes = apply_recipients(client, deployed.name, evaluation, options.deploy.alerts)
    yield from changes
    watched = WatchedDeployment(
        id=deployment_id,
        name=deployed.name,
        evaluation=evaluation,
        pool=pool,
        gaps=find_gaps(deployed.schedule),
        patience=timedelta(minutes=options.deploy.late_minutes),
    )
    done = [
        AppliedChanges("automation", each.name, apply_automation(client, each))
        for each in watch_automations(f"{PREFIX}{deployed.name}", watched, recipients)
    ]
    if done and (until := silenced_until(client, deployed.name)) is not None:
        silence_deployment(client, client.read_deployment(deployment_id), until)
        yield AppliedChanges("automation", f"{PREFIX}{deployed.name}: silenced", Change.UPDATED, f"until {until}")
    elif done and any(each is not Change.UNCHANGED for each in (change, *(each.change for each in done))):
        announced.append(watched)
    yield from done


def _when(deployed: DeploymentSpec) -> str:
    if deployed.schedule is not None:
        return describe_schedule(prefect_schedule(deployed.schedule))
    return f"on {', '.join(deployed.triggers[0]['expect'])}" if deployed.triggers else "on request"


@contextmanager
def _translate_server_errors() -> Iterator[None]:
    try:
        yield
    except PrefectHTTPStatusError as error:
        raise AssayError(
            f"the Prefect server refused a request, status {error.response.status_code}: {error.response.text[:300]}"
        ) from error
    except httpx.TransportError as error:
        raise AssayError(
            f"the Prefect server cannot be reached ({name_http_error(error)}); check PREFECT_API_URL"
        ) from error
