"""Silenced reports, on a server that has no worker: it resumes them itself."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from prefect.client.orchestration import SyncPrefectClient, get_client

from deployments.local_server import ServerAddress, use_server
from deployments.registry.automations import automations_of
from deployments.registry.silenced_reports import resume_reports, silence_reports, silenced_until
from metric_core.errors import ConfigError
from tests.deployments.served.conftest import Unattended
from tests.waiting import wait_until

pytestmark = [pytest.mark.prefect, pytest.mark.served]

NAME = "hushed"
DEPLOYMENT = f"monitor-{NAME}"
KINDS = [f"{kind}{over}" for kind in ("late", "missing", "stuck", "failed") for over in ("", " over")]


@pytest.fixture
def client(whole_server: str, workerless: Unattended) -> Iterator[SyncPrefectClient]:
    with use_server(ServerAddress(whole_server)), get_client(sync_client=True) as client:
        workerless.deploy(NAME)
        yield client


def reports(client: SyncPrefectClient) -> dict[str, bool]:
    """Return whether the automations of the deployment are enabled."""
    return {each.name.rpartition(": ")[2]: each.enabled for each in automations_of(client, [DEPLOYMENT])}


def start_run(client: SyncPrefectClient) -> None:
    client.create_flow_run_from_deployment(client.read_deployment_by_name(f"monitor/{DEPLOYMENT}").id)


def test_server_resumes_silenced_reports_itself(client: SyncPrefectClient, workerless: Unattended) -> None:
    end = datetime.now(UTC) + timedelta(seconds=40)
    assert silence_reports(client, NAME, end) == [DEPLOYMENT]
    assert reports(client) == dict.fromkeys(KINDS, False) | {"silenced": True}
    start_run(client)  # would be reported in the silence
    wait_until(lambda: all(reports(client).values()), "the end of the silence")
    assert datetime.now(UTC) >= end
    assert silenced_until(client, DEPLOYMENT) is None
    assert workerless.alerts_about(NAME) == []
    start_run(client)
    wait_until(lambda: workerless.alerts_about(NAME), "a report after the silence")


def test_silence_outlives_a_deployment_and_ends_by_hand(client: SyncPrefectClient, workerless: Unattended) -> None:
    silence_reports(client, NAME, datetime.now(UTC) + timedelta(days=1))
    end = datetime.now(UTC) + timedelta(hours=1)
    silence_reports(client, NAME, end)
    workerless.deploy(NAME)
    assert silenced_until(client, DEPLOYMENT) == end
    assert [kind for kind, is_enabled in reports(client).items() if is_enabled] == ["silenced"]
    assert resume_reports(client, NAME) == [DEPLOYMENT]
    assert reports(client) == dict.fromkeys(KINDS, True)
    assert resume_reports(client, NAME) == []


def test_silence_that_cannot_be_is_refused(client: SyncPrefectClient) -> None:
    with pytest.raises(ConfigError, match="must end at least 10 seconds from now"):
        silence_reports(client, NAME, datetime.now(UTC))
    assert silence_reports(client, "unknown", datetime.now(UTC) + timedelta(days=1)) == []
