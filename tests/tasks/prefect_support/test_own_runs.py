"""Flow runs of killed processes end as Crashed, those of living processes and of other servers stay as they are."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import UUID, uuid4

import pytest
from prefect import flow
from prefect.client.orchestration import get_client

from tasks.prefect_support import own_runs
from tasks.prefect_support.own_runs import end_killed_runs
from tests.structure.house import ROOT
from tests.waiting import wait_until

pytestmark = pytest.mark.prefect

PROGRAM = """
import sys, time
from prefect import flow
from tasks.prefect_support.lost_server import outlive_server
from tasks.prefect_support.patience import crash_without_server

@flow(name="inner")
@crash_without_server
def inner():
    print("running", flush=True)
    time.sleep(600)

@flow(name="outer")
@crash_without_server
def outer():
    outlive_server(inner)

outlive_server(outer)
"""


@pytest.fixture
def home(prefect_server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:  # noqa: ARG001
    monkeypatch.setenv("ASSAY_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def records(home: Path) -> list[Path]:
    return sorted((home / "prefect" / "runs").rglob("*.run"))


@contextmanager
def program(home: Path, url: str) -> Iterator["subprocess.Popen[str]"]:
    """Run a program with a flow that calls another one and does not end."""
    environment = os.environ | {"ASSAY_HOME": str(home), "PREFECT_API_URL": url, "PREFECT_LOGGING_LEVEL": "CRITICAL"}
    command = [sys.executable, "-c", PROGRAM]
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline().strip() == "running"
            yield process
        finally:
            process.kill()


def state_of(run_id: UUID) -> tuple[str, str]:
    with get_client(sync_client=True) as client:
        state = client.read_flow_run(run_id).state
    assert state is not None
    return str(state.name), state.message or ""


def test_runs_of_a_killed_process_end_as_crashed_and_those_of_a_living_one_go_on(
    home: Path, prefect_server: str
) -> None:
    with program(home, prefect_server) as process:
        runs = [UUID(path.stem) for path in records(home)]
        assert len(runs) == 2
        assert end_killed_runs() == 0
        assert {state_of(run)[0] for run in runs} == {"Running"}
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert end_killed_runs() == 2
    for run in runs:
        name, message = state_of(run)
        assert name == "Crashed"
        assert "its process was killed" in message
    assert records(home) == []
    assert end_killed_runs() == 0


def test_a_run_that_ends_leaves_no_record(home: Path) -> None:
    from tasks.prefect_support.patience import crash_without_server

    seen: list[list[Path]] = []

    @flow(name="ends")
    @crash_without_server
    def ends() -> None:
        seen.append(records(home))
        raise ValueError("wrong")

    with pytest.raises(ValueError, match="wrong"):
        ends()
    assert len(seen[0]) == 1
    assert [path for path in (home / "prefect" / "runs").rglob("*") if path.is_file()] == []


def test_a_record_of_another_server_is_kept_for_a_while(home: Path) -> None:
    with own_runs.record_process(uuid4()):
        (path,) = records(home)
        content = path.read_bytes()
    path.write_bytes(content)
    (path.parent / "foreign.run").touch()
    assert end_killed_runs() == 0
    assert path.exists()
    long_ago = time.time() - own_runs._LONGEST.total_seconds() - 60
    os.utime(path, (long_ago, long_ago))
    assert end_killed_runs() == 0
    assert not path.exists()


def test_a_home_that_cannot_be_written_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("ASSAY_HOME", str(tmp_path / "file"))
    with own_runs.record_process(uuid4()):
        pass
    assert end_killed_runs() == 0


def test_a_record_is_seen_only_once_its_lock_is_held(home: Path) -> None:
    with own_runs.record_process(uuid4()):
        (path,) = records(home)
        wait_until(lambda: own_runs._take(path) is None, "the lock")
