"""The flow `rerun-crashed`: a run is resumed until it has crashed too often, and people are told of it then."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.objects import State
from prefect.states import Crashed, Running, Scheduled

from flows.index_rebuilt import index_rebuilt
from flows.monitor import monitor
from flows.resume_crashed import rerun_crashed
from tasks.history.catalogue import Catalogue
from tests.flows.deployed_flow import DeployedFlow

pytestmark = [pytest.mark.prefect]

ROW = {"response": "Rome", "reference": "Rome"}


def crash(client: SyncPrefectClient, run: UUID) -> tuple[str | None, str]:
    """Begin a run, report twice that it crashed, as workers do, and return its state once it is to be resumed."""
    states: list[State[Any]] = [Running(), Crashed(), Crashed()]
    for state in states:
        client.set_flow_run_state(run, state, force=True)
    rerun_crashed(run, return_state=True)
    found = client.read_flow_run(run).state
    assert found is not None
    return found.name, found.message or ""


@pytest.fixture
def client(prefect_server: str) -> Iterator[SyncPrefectClient]:
    del prefect_server
    with get_client(sync_client=True) as found:
        yield found


def test_run_is_resumed_after_a_crash_and_fails_after_too_many(client: SyncPrefectClient) -> None:
    deployment = client.create_deployment(client.create_flow_from_name("calibrate"), "crashing")
    run = client.create_flow_run_from_deployment(deployment).id
    found = [crash(client, run) for _ in range(3)]
    again, last = (
        "runs again after crash",
        f"the run has crashed 3 times and is not resumed; see prefect flow-run logs {run}",
    )
    assert found == [("Scheduled", f"{again} 1"), ("Scheduled", f"{again} 2"), ("Failed", last)]


class Job:
    """An evaluation with deployments, whose files are in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "answers.jsonl").write_text(json.dumps(ROW), encoding="utf-8")
        self.config = {
            "name": "support",
            "source": str(folder / "answers.jsonl"),
            "metrics": ["string_similarity"],
            **{name: str(folder / name) for name in ("tables", "cache", "history")},
            "deploy": {
                "baselines": str(folder / "baselines"),
                "alerts": {"file": str(folder / "alerts.jsonl")},
                "debounce_seconds": 0,
            },
        }
        self.history = Catalogue(str(folder / "history"))

    def alerts(self) -> list[dict[str, Any]]:
        """Return the alerts so far."""
        path = self.folder / "alerts.jsonl"
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Job:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("flows.resume_crashed.PAUSE", timedelta(0))  # which a run that is started here would wait for
    return Job(tmp_path)


def test_monitored_run_that_crashed_too_often_tells_of_it_and_the_next_one_that_it_is_over(
    client: SyncPrefectClient, job: Job
) -> None:
    deployed = DeployedFlow(client, monitor, {"config": job.config})
    run = deployed.create()
    assert [crash(client, run)[0] for _ in range(3)] == ["Scheduled", "Scheduled", "Given up"]
    deployed.start(run)
    name, message = deployed.state(run)
    assert (name, "the run has crashed 3 times and is not resumed" in message) == ("Error", True)
    (alert,) = job.alerts()
    assert (alert["title"], alert["worse"]) == ("evaluation support could not be finished", [message])
    (entry,) = job.history.runs("support")
    assert (entry.status, entry.reason, entry.folder) == ("failed", message, "")

    deployed.start(deployed.create())
    over = job.alerts()[-1]
    assert (over["outcome"], over["recovered"]) == ("recovered", [message])
    assert over["incidents"][0]["key"] == alert["incidents"][0]["key"]

    client.set_flow_run_state(run, Scheduled(), force=True)  # a person has mended what killed it
    deployed.start(run)
    assert deployed.state(run)[0] == "Passed"


def test_run_that_dies_while_it_tells_fails_so_that_the_server_reports_it(client: SyncPrefectClient, job: Job) -> None:
    run = DeployedFlow(client, monitor, {"config": job.config}).create()
    assert [crash(client, run)[0] for _ in range(4)][2:] == ["Given up", "Failed"]


def test_version_of_an_index_whose_run_crashed_too_often_is_told(client: SyncPrefectClient, job: Job) -> None:
    deployed = DeployedFlow(client, index_rebuilt, {"config": job.config})
    now, about = datetime.now(UTC).isoformat(), {"index": "handbook", "version": "7"}
    payload = {**about, "dataset": job.config["source"]}
    event = {"id": str(UUID(int=7)), "resource": "rag.index.handbook", "occurred": now, "received": now}
    run = deployed.create(**payload, event={**event, "payload": payload})
    for _ in range(3):
        crash(client, run)
    deployed.start(run)
    (alert,) = job.alerts()
    assert alert["title"] == "index handbook, version 7 could not be evaluated"
    assert (alert["name"], "crashed 3 times" in alert["worse"][0]) == ("support-handbook", True)
    assert job.history.runs("support-handbook")[0].status == "failed"
