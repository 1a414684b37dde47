"""Keep the automations on a Prefect server in step with the deployments there.

Prefect deletes a deployment without its automations, which go on firing. An automation of rag-assay is recognized by
its name, `rag-assay: DEPLOYMENT` with more after a colon where a deployment has several.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any
from uuid import UUID

from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.filters import DeploymentFilter, DeploymentFilterTags
from prefect.client.schemas.responses import DeploymentResponse
from prefect.events.actions import RunDeployment
from prefect.events.schemas.automations import Automation, AutomationCore
from prefect.events.schemas.deployment_triggers import DeploymentEventTrigger

from deployments.registry.changes import AppliedChanges, Change
from deployments.registry.triggers import TAG, on_other_index
from flows.index_events.listeners import REFUSAL, deployments_of, has_worker, patterns_overlap, read_listeners
from tasks.prefect_support.paging import read_all

PREFIX = "rag-assay: "
UNHEARD = f"{PREFIX}events that no deployment listens to"
"""Name of the automation that all configurations on a server share."""

WATCH = ": late"
"""End of the name of the automation that reports runs which have not started."""

_SEPARATOR = ": "


def read_deployments(client: SyncPrefectClient) -> list[DeploymentResponse]:
    """Return the deployments of rag-assay on a server."""
    wanted = DeploymentFilter(tags=DeploymentFilterTags(all_=[TAG]))
    return read_all(lambda limit, offset: client.read_deployments(deployment_filter=wanted, limit=limit, offset=offset))


def automations_of(client: SyncPrefectClient, deployments: Collection[str]) -> list[Automation]:
    """Return the automations of deployments, by their names.

    Args:
        deployments: Names of the deployments, without those of their flows.
    """
    return [each for each in _read_automations(client) if _deployment_of(each.name) in deployments]


def stale_automations(client: SyncPrefectClient) -> list[Automation]:
    """Return the automations of rag-assay whose deployment is gone.

    Automations are read first: others may deploy meanwhile, and a deployment is created before its automations.
    """
    automations = _read_automations(client)
    deployments = read_deployments(client)
    names, ids = {each.name for each in deployments}, {each.id for each in deployments}
    return [
        each
        for each in automations
        if (each.name != UNHEARD and _deployment_of(each.name) not in names)
        or any(isinstance(action, RunDeployment) and action.deployment_id not in ids for action in each.actions)
    ]


def apply_automation(client: SyncPrefectClient, wanted: AutomationCore) -> Change:
    """Create an automation, or replace those of the same name: `prefect deploy` uses the same names."""
    found = client.read_automations_by_name(wanted.name)
    if [_content(each) for each in found] == [_content(wanted)]:
        return Change.UNCHANGED
    for each in found:
        client.delete_automation(each.id)
    client.create_automation(wanted)
    return Change.UPDATED if found else Change.CREATED


def remove_automations(client: SyncPrefectClient, automations: Iterable[Automation]) -> Iterator[AppliedChanges]:
    """Delete automations."""
    for each in automations:
        client.delete_automation(each.id)
        yield AppliedChanges("automation", each.name, Change.REMOVED)


def find_unwatched(client: SyncPrefectClient) -> list[str]:
    """Return the scheduled deployments of evaluations whose missing runs are not reported to anybody."""
    automations = _read_automations(client)
    watched = {_deployment_of(each.name) for each in automations if each.enabled and each.name.endswith(WATCH)}
    return [
        each.name
        for each in read_deployments(client)
        if any(schedule.active for schedule in each.schedules)
        and not each.paused
        and each.name not in watched
        and not each.name.startswith("prune")
    ]


def pause_reports(client: SyncPrefectClient, deployment: str) -> None:
    """Pause the automations that report missing runs of a deployment; applying its configuration resumes them."""
    for each in automations_of(client, [deployment]):
        client.pause_automation(each.id)


def apply_refusal(client: SyncPrefectClient) -> Iterator[AppliedChanges]:
    """Create, update or delete the automation for events that no deployment listens to.

    It is one for the whole server, so that such an event leads to one alert.
    """
    listeners = read_listeners(client)
    refusing = deployments_of(client, REFUSAL)
    found = client.read_automations_by_name(UNHEARD)
    if not listeners or not refusing:
        yield from remove_automations(client, found)
        return
    current = {target for each in found for target in _targets(each)}
    # A deployment whose worker has been away for long would leave such events unreported.
    best = min(refusing, key=lambda each: (not has_worker(client, each), each.id not in current, each.id))
    # An automation cannot exclude several patterns; the flow that it starts knows them all.
    excluded = "*" if "*" in listeners.values() else next(iter(listeners.values()))
    trigger = DeploymentEventTrigger.model_validate(on_other_index(UNHEARD, excluded))
    trigger.set_deployment_id(best.id)
    yield AppliedChanges("automation", UNHEARD, apply_automation(client, trigger.as_automation()))


def find_overlaps(client: SyncPrefectClient, names: Collection[str] = ()) -> Iterator[AppliedChanges]:
    """Yield the pairs of deployments that evaluate the same index.

    Args:
        names: Names of deployments; each pair has one of them; empty for all pairs.
    """
    listeners = list(read_listeners(client).items())
    for number, (one, pattern) in enumerate(listeners):
        for other, second in listeners[number + 1 :]:
            if (not names or {one, other} & set(names)) and patterns_overlap(pattern, second):
                detail = (
                    f"events of one index start a run of each: {one} listens to {pattern}, {other} to {second}; set "
                    "deploy.index unless you want both. Each has separate baselines"
                )
                yield AppliedChanges("overlap", f"{one}, {other}", Change.UNCHANGED, detail)


def _read_automations(client: SyncPrefectClient) -> list[Automation]:
    def read_page(limit: int, offset: int) -> Sequence[Any]:
        page: list[Any] = client.request("POST", "/automations/filter", json={"limit": limit, "offset": offset}).json()
        return page

    found = map(Automation.model_validate, read_all(read_page))
    return [each for each in found if each.name.startswith(PREFIX)]


def _deployment_of(name: str) -> str:
    return name.removeprefix(PREFIX).partition(_SEPARATOR)[0]


def _targets(automation: Automation) -> set[UUID]:
    found = (action.deployment_id for action in automation.actions if isinstance(action, RunDeployment))
    return {each for each in found if each is not None}


def _content(automation: AutomationCore) -> Any:
    return _plain(automation.model_dump(mode="json", include={"name", "enabled", "trigger", "actions"}))


def _plain(value: Any) -> Any:
    """Return a value without the ids assigned by the server, and with sorted lists."""
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items() if name != "id"}
    if isinstance(value, list):
        return sorted((_plain(item) for item in value), key=str)
    return value
