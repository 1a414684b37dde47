"""Find the deployments that evaluate the versions of an index: those that listen to its events."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from fnmatch import fnmatchcase
from functools import cache
from typing import Any
from uuid import UUID

from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.filters import FlowFilter, FlowFilterName
from prefect.client.schemas.objects import DeploymentStatus, WorkPoolStatus
from prefect.client.schemas.responses import DeploymentResponse

from flows.config.deploy_options import DeploySettings
from flows.index_events.index_event import RESOURCE
from tasks.prefect_support.paging import read_all

FLOW = "index-rebuilt"
"""Name of the flow that evaluates versions of an index."""

REFUSAL = "refuse-event"
"""Name of the flow that reports events of indexes that no deployment listens to."""


def read_listeners(client: SyncPrefectClient) -> dict[str, str]:
    """Return a mapping from the names of the deployments that listen to index events to their patterns of indexes."""
    return patterns_of(deployments_of(client, FLOW))


def patterns_of(deployments: Iterable[DeploymentResponse]) -> dict[str, str]:
    """Return a mapping from the names of deployments that evaluate indexes to their patterns of indexes."""
    found: dict[str, str] = {}
    for each in deployments:
        deploy = (each.parameters.get("config") or {}).get("deploy") or {}
        found[each.name] = str(deploy.get("index", DeploySettings().index))
    return dict(sorted(found.items()))


def listens_since(client: SyncPrefectClient, deployments: Iterable[DeploymentResponse]) -> datetime:
    """Return the time since which events start runs of deployments.

    Their automation is replaced when the index changes, so events before that were never for them.

    Args:
        deployments: Deployments that one automation starts runs of, at least one.
    """
    found = list(deployments)
    related = [automation for each in found for automation in _read_automations(client, each.id)]
    times = [datetime.fromisoformat(each["created"]) for each in related]
    return max(times) if times else min(each.created for each in found if each.created is not None)


def deployments_of(client: SyncPrefectClient, flow: str) -> list[DeploymentResponse]:
    """Return the deployments of the flow with this name."""
    wanted = FlowFilter(name=FlowFilterName(any_=[flow]))
    return read_all(lambda limit, offset: client.read_deployments(flow_filter=wanted, limit=limit, offset=offset))


def has_worker(client: SyncPrefectClient, deployment: DeploymentResponse) -> bool:
    """Return whether a worker of its pool, or the process that serves it, takes up the runs of a deployment."""
    if deployment.work_pool_name is None:
        return deployment.status is DeploymentStatus.READY
    return client.read_work_pool(deployment.work_pool_name).status is WorkPoolStatus.READY


def _read_automations(client: SyncPrefectClient, deployment: UUID) -> list[dict[str, Any]]:
    resource = {"resource_id": f"prefect.deployment.{deployment}"}
    found: list[dict[str, Any]] = client.request(
        "GET", "/automations/related-to/{resource_id}", path_params=resource
    ).json()
    return found


def listening(listeners: Mapping[str, str], resource: str) -> list[str]:
    """Return the names of the deployments that listen to the events of a resource.

    Args:
        listeners: Result of `read_listeners`.

    >>> listening({"index-rebuilt-a": "a*", "index-rebuilt-b": "b"}, "rag.index.abc")
    ['index-rebuilt-a']
    """
    return [name for name, pattern in listeners.items() if fnmatchcase(resource, f"{RESOURCE}{pattern}")]


def describe_listeners(listeners: Mapping[str, str]) -> str:
    """Return a clause on the indexes whose events are listened to.

    >>> describe_listeners({"index-rebuilt-a": "a*", "index-rebuilt-b": "b"})
    'the deployments listen to a* (index-rebuilt-a), b (index-rebuilt-b)'
    >>> describe_listeners({})
    'no deployment listens to any index; create one with `assay deploy` or `assay serve`'
    """
    if not listeners:
        return "no deployment listens to any index; create one with `assay deploy` or `assay serve`"
    return f"the deployments listen to {', '.join(f'{pattern} ({name})' for name, pattern in listeners.items())}"


def patterns_overlap(one: str, other: str) -> bool:
    """Return whether an index matches both patterns, in which `*` matches any characters.

    >>> patterns_overlap("handbook-*", "*-en"), patterns_overlap("a*", "b*"), patterns_overlap("a", "a")
    (True, False, True)
    """

    @cache
    def overlap(i: int, j: int) -> bool:
        if i == len(one) or j == len(other):
            return set(one[i:] + other[j:]) <= {"*"}
        if one[i] == "*":
            return overlap(i + 1, j) or overlap(i, j + 1)
        if other[j] == "*":
            return overlap(i, j + 1) or overlap(i + 1, j)
        return one[i] == other[j] and overlap(i + 1, j + 1)

    return overlap(0, 0)
