"""`assay serve`: runs that were due while no worker ran."""

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, Self
from uuid import UUID, uuid4

import prefect.client.orchestration
import pytest

from deployments.cli.serve import _running_schedules
from deployments.registry.changes import AppliedChanges, Change

HOUR = timedelta(hours=1)


class Server:
    """A client that has runs, and records the calls."""

    def __init__(self, **runs: Any) -> None:
        self.runs = [SimpleNamespace(id=name, **run) for name, run in runs.items()]
        self.asked: list[str] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def read_deployment_by_name(self, name: str) -> Any:
        self.asked.append(f"read {name}")
        return SimpleNamespace(id=uuid4(), name=name.partition("/")[2])

    def read_flow_runs(self, **_: Any) -> Any:
        return self.runs

    def delete_flow_run(self, run: str) -> None:
        self.asked.append(f"delete {run}")

    def request(self, *_: Any, **__: Any) -> Any:
        return SimpleNamespace(json=list)  # no automation

    def pause_deployment(self, _: UUID) -> None:
        self.asked.append("pause")


def test_runs_missed_while_no_worker_ran_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    now = datetime.now(UTC)
    missed = {"auto_scheduled": True, "run_count": 0, "expected_start_time": now - HOUR}
    server = Server(
        missed=missed,
        due_later={**missed, "expected_start_time": now + HOUR},
        asked_for={**missed, "auto_scheduled": False},
        runs_again={**missed, "run_count": 1},
    )
    monkeypatch.setattr(prefect.client.orchestration, "get_client", lambda **_: server)
    done = [
        AppliedChanges("deployment", "monitor/monitor", Change.UNCHANGED, "cron 0 6 * * * UTC"),
        AppliedChanges("deployment", "calibrate/calibrate", Change.UNCHANGED, "on request"),
    ]
    with _running_schedules(done):
        assert server.asked == ["read monitor/monitor", "read calibrate/calibrate", "delete missed"]
    assert server.asked[3:] == ["pause"]


def test_without_a_schedule_no_run_is_touched(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server(other={"auto_scheduled": True, "run_count": 0, "expected_start_time": datetime.now(UTC) - HOUR})
    monkeypatch.setattr(prefect.client.orchestration, "get_client", lambda **_: server)
    with _running_schedules([AppliedChanges("deployment", "prune/prune", Change.UNCHANGED, "on request")]):
        pass
    assert server.asked == ["read prune/prune"]
