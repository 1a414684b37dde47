"""Events from before a deployment existed, which are not for it, on a real server without a worker."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from prefect.client.orchestration import SyncPrefectClient, get_client

from deployments.local_server import ServerAddress, use_server
from deployments.registry.apply import DeploymentTarget, apply, remove
from deployments.registry.specs import plan_deployments
from flows.config.run_config import RunConfig
from flows.index_events.listeners import FLOW, REFUSAL
from flows.index_events.unhandled import GRACE, UnhandledEvent, find_unhandled
from tasks.prefect_support.paging import read_flow_runs
from tests.deployments.served.sending import send_raw
from tests.waiting import wait_until

pytestmark = [pytest.mark.prefect, pytest.mark.served]

INDEX = "replayed"
OWN = ("index-rebuilt-before", "index-rebuilt-after")
"""Deployments of this test: others on the server may listen to all indexes."""


@pytest.fixture
def client(whole_server: str) -> Iterator[SyncPrefectClient]:
    with use_server(ServerAddress(whole_server)), get_client(sync_client=True) as client:
        yield client


def deploy(suffix: str, index: str, folder: Path) -> None:
    config = RunConfig.model_validate({"metrics": ["faithfulness"], "deploy": {"index": index}})
    apply(plan_deployments(config, suffix), DeploymentTarget(pool="nobody", job_variables={"working_dir": str(folder)}))


def send(versions: Sequence[Any], resource: str = f"rag.index.{INDEX}") -> None:
    """Send events; a version that is None is left out of the payload, which is malformed then."""
    for version in versions:
        payload = {"index": INDEX, "dataset": "a.jsonl"} | ({} if version is None else {"version": version})
        send_raw(resource, payload, datetime.now(UTC))


def count_runs(client: SyncPrefectClient, flow: str, resource: str) -> int:
    own = {"name": {"any_": [*OWN]}} if flow == FLOW else None
    runs = read_flow_runs(client, {}, own, flow={"name": {"any_": [flow]}})
    return sum((run.parameters.get("event") or {}).get("resource") == resource for run in runs)


def find_lost(client: SyncPrefectClient, resource: str = f"rag.index.{INDEX}") -> list[UnhandledEvent]:
    found = find_unhandled(client, datetime.now(UTC) + GRACE, resource=resource)
    return [each for each in found if each.flow != FLOW or each.deployment in OWN]


def test_events_are_only_for_deployments_that_listened_when_they_came(
    client: SyncPrefectClient, tmp_path: Path
) -> None:
    other = f"index.{INDEX}"
    deploy("-before", INDEX, tmp_path)
    send(["1", "2", None, None])
    send(["3"], other)
    wait_until(lambda: count_runs(client, FLOW, f"rag.index.{INDEX}") == 4, "the runs of the events")
    wait_until(lambda: count_runs(client, REFUSAL, other) == 1, "the refusal")
    assert find_lost(client) == find_lost(client, other) == []

    deploy("-after", f"{INDEX}*", tmp_path)
    assert find_lost(client) == []

    send(["4", None])
    wait_until(lambda: count_runs(client, FLOW, f"rag.index.{INDEX}") == 8, "the runs of both deployments")
    for run in read_flow_runs(client, {}, {"name": {"any_": ["index-rebuilt-after"]}}):
        client.delete_flow_run(run.id)  # as if the server had lost the events
    # The other deployment has to evaluate the valid event too, but nobody tells again that one is malformed.
    lost = wait_until(lambda: find_lost(client), "the event that the second deployment has lost")
    assert [(each.deployment, each.event.payload.get("version")) for each in lost] == [("index-rebuilt-after", "4")]

    deploy("-after", "elsewhere", tmp_path)
    deploy("-after", f"{INDEX}*", tmp_path)
    assert find_lost(client) == []  # a changed index is a new one

    for suffix in ("-before", "-after"):
        remove(suffix, dry_run=False)
    assert find_lost(client) == []  # nobody listens any longer, which is no reason to refuse what has been evaluated
