"""Pages of other origins attack the servers of this machine: they read nothing and change nothing."""

import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import httpx
import pytest

from deployments.local_server import LocalServer, ServerAddress, stop_server
from deployments.web.http_guard import Guard, basic_authorization
from tests.browser.foreign_pages import ORIGINS, Attack, Recorder, serving
from tests.prefect_servers import clean_environment
from tests.sharing import prepare_home
from tests.tasks.models.judges.openai.fake_server import free_port
from tests.waiting import DEAD_SECONDS, wait_until

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = [pytest.mark.browser, pytest.mark.prefect]

ASSAY = Path(sys.executable).with_name("assay")
EXAMPLE = Path(__file__).parents[2] / "examples" / "handbook.jsonl"
PLANTED = "planted"
"""A word in everything that a page tries to store."""

SOCKETS = (
    "/api/events/in",
    "/api/events/out",
    "/api/logs/out",
    "/api/task_runs/subscriptions/scheduled",
    "/api/work_pools/rag-assay-serve/workers/connect",
)
LISTINGS = ("flows", "flow_runs", "deployments", "variables", "work_pools", "events", "logs")


def planted_event() -> dict[str, Any]:
    return {
        "id": str(uuid4()),
        "event": PLANTED,
        "occurred": "2026-01-01T00:00:00Z",
        "resource": {"prefect.resource.id": PLANTED},
    }


@dataclass(frozen=True)
class Ground:
    """The servers that are running.

    Args:
        prefect: The local Prefect server, which `assay serve` and `assay run` share.
        receiver: URL of the receiver of traces.
        traces: Folder of the receiver.
        history: URL of the history.
        report: Path of a report there.
    """

    prefect: ServerAddress
    receiver: str
    traces: Path
    history: str
    report: str

    def client(self) -> httpx.Client:
        """Return a client with the password of the Prefect server."""
        assert self.prefect.credentials is not None
        authorization = basic_authorization(self.prefect.credentials)
        return httpx.Client(base_url=self.prefect.url, headers={"Authorization": authorization}, timeout=DEAD_SECONDS)

    def find_planted(self) -> set[str]:
        """Return the kinds of objects on the Prefect server that hold the word."""
        with self.client() as client:
            listed = {each: client.post(f"/{each}/filter", json={}).raise_for_status().text for each in LISTINGS}
        assert "rag-assay-serve" in listed["work_pools"]
        assert "evaluate" in listed["deployments"] or "monitor" in listed["deployments"]
        return {each for each, content in listed.items() if PLANTED in content}


@contextmanager
def running(folder: Path, home: Path, expected: str, *arguments: str) -> Iterator[str]:
    """Run a verb until the block ends, and yield what an expression finds in its output."""
    environment = clean_environment() | {"ASSAY_HOME": str(home), "PREFECT_HOME": str(home / "own"), "COLUMNS": "200"}
    log = folder / f"{arguments[0]}.log"
    with log.open("wb") as file:
        process = subprocess.Popen([ASSAY, *arguments], cwd=folder, env=environment, stdout=file, stderr=file)
    try:

        def find() -> re.Match[str] | None:
            ended, said = process.poll() is not None, log.read_text(encoding="utf-8")
            found = re.search(expected, said)
            assert found or not ended, said
            return found

        yield wait_until(find, f"what {arguments[0]} says at its start")[1]
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(DEAD_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    """Yield the servers of a home in which an evaluation has run."""
    folder, port = tmp_path_factory.mktemp("ground"), free_port()
    home = folder / "home"
    prepare_home(tmp_path_factory, home)
    options = (str(EXAMPLE), "--limit", "2", "-m", "context_precision")
    with ExitStack() as stack:
        stack.callback(stop_server, home)
        done = ("run", *options, "--name", "nightly", "--out", str(folder / "run"))
        stack.enter_context(running(folder, home, r"(report: )", *done))
        stack.enter_context(running(folder, home, "(started!)", "serve", *options, "--cron", "0 0 1 1 *"))
        receive = ("traces", "receive", "--port", str(port), "--out", str(folder / "traces"))
        receiver = stack.enter_context(running(folder, home, r"(http://\S+)/v1/traces", *receive))
        history = stack.enter_context(running(folder, home, r"(http://\S+:\d+)/", "history", "--serve"))
        record = LocalServer.from_home(home).read()  # asks no server, which may be busy
        assert record is not None
        run_id = json.loads((folder / "run" / "run.json").read_text(encoding="utf-8"))["run_id"]
        yield Ground(record.address, receiver, folder / "traces", history, f"/report/{run_id}")


def attack_on_prefect(ground: Ground) -> Attack:
    """Return all that a page could ask of the local Prefect server."""
    with ground.client() as client:
        deployment = client.post("/deployments/filter", json={}).raise_for_status().json()[0]
    bodies: tuple[tuple[str, Any], ...] = (
        (f"/api/deployments/{deployment['id']}/create_flow_run", {"name": PLANTED, "state": {"type": "SCHEDULED"}}),
        ("/api/flow_runs/", {"name": PLANTED, "flow_id": deployment["flow_id"]}),
        ("/api/variables/", {"name": PLANTED, "value": PLANTED}),
        ("/api/flows/", {"name": PLANTED}),
        ("/api/deployments/", {"name": PLANTED, "flow_id": deployment["flow_id"]}),
        ("/api/work_pools/", {"name": PLANTED, "type": "process"}),
        ("/api/events", [planted_event()]),
        ("/api/logs/", [{"name": PLANTED, "level": 20, "message": PLANTED, "timestamp": "2026-01-01T00:00:00Z"}]),
        ("/api/flow_runs/filter", {}),
    )
    reads = (
        "/api/admin/settings",
        "/api/health",
        "/docs",
        "/openapi.json",
        "/kept-server?use",
        "/api/csrf-token?client=x",
    )
    root = ground.prefect.url.removesuffix("/api")
    return Attack(root, bodies, reads, SOCKETS, planted_event())


def attack_on_receiver(ground: Ground) -> Attack:
    """Return all that a page could ask of the receiver of traces."""
    return Attack(ground.receiver, [("/v1/traces", {"resourceSpans": []})], ["/v1/traces", "/"], ["/v1/traces"], {})


def attack_on_history(ground: Ground) -> Attack:
    """Return all that a page could ask of the history."""
    return Attack(ground.history, [("/", {})], ["/", "/history/nightly", ground.report], ["/"], {})


def foreign(read: list[str]) -> list[str]:
    """Return what a page read besides refusals because of its name, which is not the server's."""
    return [each for each in read if ": 421 " not in each]


@pytest.mark.parametrize("origin", ORIGINS)
def test_without_a_guard_all_of_it_arrives(browser: "Browser", origin: str) -> None:
    recorder = Recorder()
    with serving(lambda _port: recorder) as root:
        read = Attack(root, [("/change", {})], ["/page"], ["/socket"], {}).run(browser, origin)
    forms = {("POST", each) for each in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data")}
    # A browser says what loads a page only to addresses and names that it knows to be this machine's.
    what = ("",) if origin == "rebound" else ("empty", "image", "script", "style", "iframe", "object")
    loads = {("GET", each) for each in what}
    assert forms | loads | {("POST", "none"), ("websocket", "/socket")} <= recorder.reached
    assert {"script: loaded", "socket /socket: told"} <= set(read)


@pytest.mark.parametrize("origin", ORIGINS)
def test_with_the_guard_none_of_it_arrives(browser: "Browser", origin: str) -> None:
    recorder = Recorder()
    with serving(lambda port: Guard(recorder, host="127.0.0.1", port=port)) as root:
        read = Attack(root, [("/change", {})], ["/page"], ["/socket"], {}).run(browser, origin)
    assert foreign(read) == []
    assert recorder.reached == set()


@pytest.mark.parametrize("origin", ORIGINS)
def test_the_local_prefect_server_tells_and_stores_nothing(browser: "Browser", ground: Ground, origin: str) -> None:
    read = attack_on_prefect(ground).run(browser, origin)
    assert (foreign(read), ground.find_planted()) == ([], set())


@pytest.mark.parametrize("origin", ORIGINS)
def test_the_receiver_writes_no_trace(browser: "Browser", ground: Ground, origin: str) -> None:
    assert foreign(attack_on_receiver(ground).run(browser, origin)) == []
    assert not [each for each in ground.traces.rglob("*") if each.is_file() and each.stat().st_size]


@pytest.mark.parametrize("origin", ORIGINS)
def test_the_history_tells_nothing(browser: "Browser", ground: Ground, origin: str) -> None:
    assert foreign(attack_on_history(ground).run(browser, origin)) == []


def test_a_program_with_the_password_can_store_all_of_it(ground: Ground) -> None:
    attack = attack_on_prefect(ground)
    with ground.client() as client:
        for path, body in attack.bodies:
            client.post(path.removeprefix("/api"), json=body).raise_for_status()
    wait_until(lambda: ground.find_planted() == set(LISTINGS), "what the program stored")
