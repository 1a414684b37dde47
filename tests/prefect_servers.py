"""A complete Prefect server and a worker for tests: separate processes on the loopback interface.

The local server that single runs share has no services. Deployments, schedules, events and workers
need `prefect server start` with its services, and `prefect worker start` on a process work pool.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx

from tests.tasks.models.judges.openai.fake_server import free_port
from tests.waiting import wait_until

ROOT = Path(__file__).parents[1]


@contextmanager
def prefect_server(folder: Path, database_url: str | None = None) -> Iterator[str]:
    """Run a Prefect server with all its services.

    Args:
        folder: Parent folder of PREFECT_HOME and the log.
        database_url: Database URL in Prefect's form; by default a SQLite file in PREFECT_HOME.

    Yields:
        The API URL. Enter `deployments.local_server.use_server` with it to use the server.
    """
    port = free_port()
    url = f"http://127.0.0.1:{port}/api"
    settings = {
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "PREFECT_SERVER_API_HOST": "127.0.0.1",
        "PREFECT_SERVER_UI_ENABLED": "false",
        "PREFECT_API_SERVICES_LATE_RUNS_AFTER_SECONDS": "2",
        "PREFECT_API_SERVICES_LATE_RUNS_LOOP_SECONDS": "2",
        "PREFECT_API_SERVICES_SCHEDULER_LOOP_SECONDS": "2",
        "PREFECT_SERVER_EVENTS_PROACTIVE_GRANULARITY": "PT2S",
        "PREFECT_SERVER_SERVICES_EVENT_PERSISTER_FLUSH_INTERVAL": "1",
        # A worker takes up runs 10 seconds early: it looks for a slot every 10 seconds then, and without a pause below.
        "PREFECT_SERVER_DEPLOYMENTS_CONCURRENCY_SLOT_WAIT_SECONDS": "20",
        "PREFECT_SERVER_CONCURRENCY_MAXIMUM_CONCURRENCY_SLOT_WAIT_SECONDS": "2",
    }
    if database_url is not None:
        settings["PREFECT_API_DATABASE_CONNECTION_URL"] = database_url
    with _running(
        [sys.executable, "-m", "prefect", "server", "start", "--host", "127.0.0.1", "--port", str(port)],
        folder / "server",
        settings,
    ) as process:
        _wait(process, folder / "server", lambda: httpx.get(f"{url}/health", timeout=5).status_code == httpx.codes.OK)
        yield url


@contextmanager
def worker(api_url: str, pool: str, folder: Path, environment: Mapping[str, str]) -> Iterator[int]:
    """Run a worker of a process work pool; create the pool if it does not exist.

    Args:
        api_url: API URL of the Prefect server.
        pool: Name of the work pool.
        folder: Parent folder of PREFECT_HOME and the log.
        environment: Further variables of the worker and its flow runs, such as ASSAY_HOME and PREFECT_LOGGING_LEVEL.

    Yields:
        The process id, once the worker accepts flow runs. The processes of its flow runs end with it.
    """
    settings = {"PREFECT_API_URL": api_url, "PREFECT_WORKER_QUERY_SECONDS": "1"} | dict(environment)
    name = f"worker-{free_port()}"
    command = [sys.executable, "-m", "prefect", "worker", "start", "--pool", pool, "--type", "process", "--name", name]
    with _running(command, folder / name, settings) as process:
        _wait(process, folder / name, lambda: name in _online(api_url, pool))
        yield process.pid


def clean_environment() -> dict[str, str]:
    """Return the environment of this process without the variables of Prefect and rag-assay."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PREFECT_", "ASSAY_"))}
    return kept | {"DO_NOT_TRACK": "1"}


@contextmanager
def _running(command: list[str], home: Path, settings: Mapping[str, str]) -> "Iterator[subprocess.Popen[bytes]]":
    home.mkdir(parents=True, exist_ok=True)
    environment = clean_environment() | {"PREFECT_HOME": str(home)} | dict(settings)
    with (home / "log").open("wb") as log:
        process = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True
        )
    try:
        yield process
    finally:
        # Each flow run starts a session, so it would survive the end of the worker's process group.
        for pid in [process.pid, *descendants(process.pid)]:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.wait()


def descendants(pid: int) -> list[int]:
    """Return the ids of the processes that a process has started, and that these have."""
    listed = subprocess.run(["ps", "-eo", "pid=,ppid="], capture_output=True, text=True, check=True).stdout
    children: dict[int, list[int]] = {}
    for line in listed.splitlines():
        child, parent = map(int, line.split())
        children.setdefault(parent, []).append(child)
    found: list[int] = []
    remaining = [pid]
    while remaining:
        below = children.get(remaining.pop(), [])
        found += below
        remaining += below
    return found


def _wait(process: "subprocess.Popen[bytes]", home: Path, is_ready: Callable[[], bool]) -> None:
    def look() -> bool:
        assert process.poll() is None, f"{home.name} did not start: {(home / 'log').read_text(errors='replace')}"
        with suppress(httpx.TransportError):
            return is_ready()
        return False

    wait_until(look, home.name)


def _online(api_url: str, pool: str) -> set[str]:
    answer = httpx.post(f"{api_url}/work_pools/{pool}/workers/filter", json={}, timeout=5)
    workers: list[dict[str, Any]] = answer.json() if answer.status_code == httpx.codes.OK else []
    return {found["name"] for found in workers if found["status"] == "ONLINE"}
