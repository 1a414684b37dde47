"""Read lists from a Prefect server, which returns them in pages."""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.filters import DeploymentFilter, FlowFilter, FlowRunFilter
from prefect.client.schemas.objects import FlowRun

T = TypeVar("T")

PAGE = 200
"""Most entries that a Prefect server returns at once, by default."""


def read_all(read_page: Callable[[int, int], Sequence[T]]) -> list[T]:
    """Return all entries of a list.

    Args:
        read_page: Function that returns the entries from an offset on: at most as many as its first argument, the
            limit, and fewer only at the end of the list; its second argument is the offset.

    >>> entries = list(range(450))
    >>> read_all(lambda limit, offset: entries[offset : offset + limit]) == entries
    True
    """
    found: list[T] = []
    while True:
        page = read_page(PAGE, len(found))
        found += page
        if len(page) < PAGE:
            return found


def read_flow_runs(
    client: SyncPrefectClient,
    runs: Mapping[str, object],
    deployment: Mapping[str, object] | None = None,
    flow: Mapping[str, object] | None = None,
) -> list[FlowRun]:
    """Return all flow runs that filters select.

    Args:
        runs: Content of the filter of flow runs.
        deployment: Content of the filter of deployments; None selects runs of any deployment, and of none.
        flow: Content of the filter of flows; None selects runs of any flow.
    """
    wanted = FlowRunFilter.model_validate(runs)
    of_deployment = None if deployment is None else DeploymentFilter.model_validate(deployment)
    of_flow = None if flow is None else FlowFilter.model_validate(flow)
    return read_all(
        lambda limit, offset: client.read_flow_runs(
            flow_run_filter=wanted,
            deployment_filter=of_deployment,
            flow_filter=of_flow,
            limit=limit,
            offset=offset,
        )
    )
