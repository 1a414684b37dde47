"""Check what deployments need before they are created: schedules, gate, alerts, baselines, blocks and the work pool."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from prefect.client.orchestration import SyncPrefectClient
from prefect.exceptions import ObjectNotFound

from deployments.registry.schedules import parse_schedule
from deployments.registry.specs import DeploymentPlan, build_specs
from flows.alerting.recipients import recipients_of
from flows.config.alert_options import MaintenanceWindow, RecipientOptions
from flows.planning.run_check import RunCheck
from metric_core.columns import COLUMNS
from metric_core.errors import AssayError, ConfigError
from metric_core.gates.checks import check_metric_names
from metric_core.gates.rules import Gate
from metric_core.metrics.registry import default_suite
from tasks.runs.baselines import Baselines
from tasks.runtime.atomic_files import translate_write_errors
from tasks.runtime.credentials import read_secret
from tasks.runtime.writable import probe_folder


def check_deployment(plan: DeploymentPlan, *, is_here: bool) -> None:
    """Check everything about deployments that needs no server.

    Args:
        is_here: True if their runs are executed on this machine, with this environment.

    Raises:
        AssayError: A check failed; the message says what to do.
    """
    for each in deployment_checks(plan, is_here=is_here):
        each.check()


def deployment_checks(plan: DeploymentPlan, *, is_here: bool) -> Iterator[RunCheck]:
    """Yield the checks of deployments that need no server.

    Args:
        is_here: True if their runs are executed on this machine, with this environment.
    """
    settings = plan.options.deploy
    yield RunCheck("deployments", lambda: _check_specs(plan), "correct [deploy]")
    if (gate := settings.gate) is not None:
        yield RunCheck("gate", lambda: _check_gate(gate.gate(), plan), "correct the gate, or `metrics`")
    if not is_here:
        return
    yield from _check_recipients(settings.alerts, "alerts")
    for route in settings.alerts.routes:
        yield from _check_recipients(route, "alerts.routes")
    if settings.alerts.escalation is not None:
        yield from _check_recipients(settings.alerts.escalation, "alerts.escalation")
    for window in settings.alerts.maintenance:
        advice = "correct deploy.alerts.maintenance"
        yield RunCheck("maintenance", partial(_check_window, window), advice)
    yield RunCheck("baselines", lambda: _check_baselines(settings.baselines), "correct deploy.baselines")


def server_checks(client: SyncPrefectClient, plan: DeploymentPlan) -> Iterator[RunCheck]:
    """Yield the checks of blocks on a Prefect server."""
    if (block := plan.options.deploy.alerts.block) is not None:
        yield RunCheck("alert block", lambda: _check_block(client, block), "create the block, or correct deploy.alerts")
    for reference in plan.secrets:
        if reference.startswith("block:"):
            yield RunCheck("secret block", partial(_check_secret, reference), "create the block")


def check_pool(client: SyncPrefectClient, name: str) -> str:
    """Return a description of a work pool and its workers.

    Raises:
        ConfigError: The pool does not exist, or has no worker that is online.
    """
    try:
        pool = client.read_work_pool(name)
    except ObjectNotFound as error:
        raise ConfigError(f"the Prefect server has no work pool {name!r}; `assay deploy` creates it") from error
    if pool.is_paused:
        raise ConfigError(f"the work pool {name} is paused; resume it with `prefect work-pool resume {name}`")
    found = client.request(
        "POST", "/work_pools/{work_pool_name}/workers/filter", path_params={"work_pool_name": name}, json={}
    )
    online = sum(worker["status"] == "ONLINE" for worker in found.json())
    if not online:
        raise ConfigError(f"no worker of the work pool {name} is online: prefect worker start --pool {name}")
    return f"{name}, type {pool.type}, {online} worker{'s' * (online > 1)} online"


def _check_specs(plan: DeploymentPlan) -> str:
    return ", ".join(each.full_name for each in build_specs(plan))


def _check_gate(gate: Gate, plan: DeploymentPlan) -> str:
    # Without metrics, the data decides.
    requests = plan.metrics.requests() or default_suite(tuple(COLUMNS), plan.judges.can_rate)
    check_metric_names(gate, [each.key for each in requests])
    return f"rules about {', '.join(gate.metric_names) or 'all metrics'}"


def _check_recipients(options: RecipientOptions, table: str) -> Iterator[RunCheck]:
    for each in recipients_of(options):
        advice = f"correct deploy.{table}.{each.name}, or set the variable that it names"
        yield RunCheck(f"{table}: {each.name}", each.check, advice)


def _check_window(window: MaintenanceWindow) -> str:
    parse_schedule(window.cron, window.timezone)
    return f"{window.cron} ({window.timezone}), for {window.hours:g} hours"


def _check_baselines(root: str | None) -> str:
    store = Baselines(root)
    if "://" not in store.root:
        with translate_write_errors(f"the folder of baselines {store.root}"):
            probe_folder(Path(store.root).absolute())
    return store.root


def _check_block(client: SyncPrefectClient, block: str) -> str:
    kind, _, name = block.partition("/")
    if not (kind and name):
        raise ConfigError(f"deploy.alerts.block must be type/name, such as slack-webhook/rag; got {block!r}")
    try:
        found = client.read_block_document_by_name(name, kind, include_secrets=False)
    except ObjectNotFound as error:
        raise ConfigError(
            f"the Prefect server has no block {block!r}; create it in the Prefect UI, or from Python with "
            f'.save("{name}")'
        ) from error
    capabilities = found.block_schema.capabilities if found.block_schema is not None else []
    if "notify" not in capabilities:
        raise ConfigError(f"the block {block!r} cannot send notifications; name one of a notification type")
    return block


def _check_secret(reference: str) -> str:
    try:
        read_secret(reference)
    except AssayError as error:
        raise ConfigError(f"{reference}: {error}") from error
    return reference
