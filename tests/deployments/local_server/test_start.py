"""A real local server: started, shared, left idle, lost, stopped."""

import os
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from prefect import flow
from prefect.artifacts import create_markdown_artifact
from prefect.client.orchestration import get_client
from prefect.client.schemas import State
from prefect.runtime import flow_run
from prefect.states import Running

from deployments.local_server import (
    LocalServer,
    ServerAddress,
    ensure_server,
    server_status,
    start_server,
    stop_server,
    use_server,
)
from deployments.local_server import local_server as module
from deployments.local_server.local_server import ALREADY_RUNNING
from deployments.local_server.server_process import DONE
from metric_core.errors import AssayError
from tests.sharing import ensure_local_server, prepare_home
from tests.waiting import DEAD_SECONDS, wait_until

pytestmark = [pytest.mark.prefect, pytest.mark.served]


@pytest.fixture(scope="module")
def migrated_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A home with a database: creating it takes most of a first start."""
    home = tmp_path_factory.mktemp("home")
    prepare_home(tmp_path_factory, home)
    yield home
    stop_server(home)


@pytest.fixture
def used_home(migrated_home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a home where the test before may have left a server: a start takes seconds."""
    monkeypatch.setattr(module, "find_configured_url", lambda: None)
    return migrated_home


@pytest.fixture
def home(used_home: Path) -> Path:
    """A home without a running server."""
    stop_server(used_home)
    return used_home


def pid_of(home: Path) -> int:
    record = server_status(home).record
    assert record is not None
    return record.pid


def test_callers_at_the_same_time_share_one_server(home: Path) -> None:
    handles = [start_server(home) for _ in range(3)]
    assert len({handle.wait(DEAD_SECONDS) for handle in handles}) == 1
    ended = [handle for handle in handles if handle.process is not None and handle.process.pid != pid_of(home)]
    assert [handle.process.wait() for handle in ended if handle.process] == [ALREADY_RUNNING] * 2


def test_a_server_is_started_once_and_used_and_the_next_one_deletes_what_ended_long_ago(used_home: Path) -> None:
    database = used_home / "prefect" / "prefect.db"
    server = ensure_local_server(used_home)
    pid = pid_of(used_home)
    assert server.url.endswith("/api")
    with use_server(server), get_client(sync_client=True) as client:
        runs = {name: evaluate_nightly(name) for name in ("old", "recent", "long")}
        assert [run.state_name for run in client.read_flow_runs()] == ["Completed"] * 3
        running: State[Any] = Running()
        client.set_flow_run_state(runs["long"], running, force=True)
    assert (ensure_local_server(used_home), pid_of(used_home)) == (server, pid)
    assert f"Prefect {version('prefect')}" in str(server_status(used_home))
    assert stop_server(used_home)
    assert not server_status(used_home).running
    assert not (used_home / "prefect" / "server.json").exists()
    months, days = (datetime.now(UTC) - timedelta(days=count) for count in (31, 29))
    with closing(sqlite3.connect(database)) as changed, changed:
        for name, date in (("old", months), ("recent", days), ("long", months)):
            moved = date.strftime("%Y-%m-%d %H:%M:%S.%f"), str(runs[name])
            end = "" if name == "long" else "end_time = ?1, "
            changed.execute(f"UPDATE flow_run SET {end}start_time = ?1, created = ?1 WHERE id = ?2", moved)
    with use_server(ensure_local_server(used_home)), get_client(sync_client=True) as client:

        def left() -> set[str]:
            known = {run.id for run in client.read_flow_runs()}
            return {name for name, run_id in runs.items() if run_id in known}

        wait_until(lambda: "old" not in left(), "the end of the old run")
        assert left() == {"recent", "long"}
        wait_until(lambda: count(database, "old") == 0, "the end of its artifacts")
        assert (count(database, "recent"), count(database, "long")) == (1, 1)


@flow(name="nightly")
def nightly(name: str) -> UUID:
    create_markdown_artifact(name, key=f"report-{name}")
    return UUID(str(flow_run.id))


def evaluate_nightly(name: str) -> UUID:
    run_id: UUID = nightly(name)
    return run_id


def count(database: Path, name: str) -> int:
    """Return the number of artifacts of a run."""
    with closing(sqlite3.connect(database)) as opened:
        found = opened.execute("SELECT count(*) FROM artifact WHERE key = ?", (f"report-{name}",)).fetchone()
    return int(found[0])


def test_a_killed_server_is_replaced(used_home: Path) -> None:
    ensure_local_server(used_home)
    pid = pid_of(used_home)
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not server_status(used_home).running)
    assert (used_home / "prefect" / "server.json").exists()
    ensure_local_server(used_home)
    assert pid_of(used_home) != pid


def test_a_hanging_server_is_replaced(used_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "HANGING_SECONDS", 0.1)
    monkeypatch.setattr(LocalServer, "stop_seconds", 1.0)
    ensure_local_server(used_home)
    pid = pid_of(used_home)
    os.kill(pid, signal.SIGSTOP)
    ensure_local_server(used_home)
    assert pid_of(used_home) != pid


def test_an_idle_server_of_another_version_is_replaced_by_one_that_ends_when_left_idle(
    used_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ensure_local_server(used_home)
    pid = pid_of(used_home)
    monkeypatch.setattr(module, "version", lambda _package: "4.0.0")
    handle = start_server(used_home, idle_minutes=0.01)
    assert handle.address is None
    monkeypatch.setattr(module, "version", version)
    handle.wait(DEAD_SECONDS)
    assert handle.process is not None
    assert handle.process.pid != pid
    assert handle.process.wait(timeout=DEAD_SECONDS) == DONE
    assert not server_status(used_home).running


def test_server_that_cannot_start_shows_its_log(tmp_path: Path, used_home: Path) -> None:
    del used_home  # only its fixture's setting is wanted
    (tmp_path / "prefect" / "prefect.db").mkdir(parents=True)
    with pytest.raises(
        AssayError, match=r"(?s)ended with exit code 3.*assay server stop.*unable to open database file"
    ):
        ensure_server(tmp_path)


def test_a_server_of_the_user_is_used_and_none_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PREFECT_API_URL", "http://127.0.0.1:4321/api")
    assert ensure_server(tmp_path) == ServerAddress("http://127.0.0.1:4321/api")
    assert list(tmp_path.iterdir()) == []
