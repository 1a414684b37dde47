"""The server, the workers and the receivers of a month, and the nights of an evaluation in it."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event
from typing import Any, TypeVar

import pytest
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import DeploymentFilter
from prefect.client.schemas.objects import FlowRun
from prefect.exceptions import ObjectNotFound

from benchmarks.month.ledger import Entry, Expected
from benchmarks.month.receivers import Hooks, Message
from benchmarks.month.record import SeenRun, due_dates
from benchmarks.month.world import World
from deployments.registry.apply import DeploymentTarget, apply
from deployments.registry.specs import plan_deployments
from flows.config.run_config import RunConfig
from tests.prefect_servers import worker
from tests.smtp_receiver import SmtpReceiver
from tests.tasks.models.judges.openai.fake_server import FakeServer

Found = TypeVar("Found")

POOL = "nights"
FAILED_CODES = range(2, 10)
"""Exit codes of runs without a result."""
ROOT = Path(__file__).parents[2]
_TIMEOUT_SECONDS = 2400.0
_BAD_RESULTS = ("Gate failed", "Worse")
"""Names of final states of failed runs that have a result."""


@dataclass
class Month:
    """A server with its workers and receivers, shared by all evaluations.

    Args:
        folder: Folder of everything.
        url: API URL of the Prefect server.
        interval: Minutes between two nights of an evaluation.
        hooks: Receiver by HTTP.
        mailbox: Receiver by SMTP.
    """

    folder: Path
    url: str
    interval: int
    hooks: Hooks
    mailbox: SmtpReceiver
    entries: list[Entry] = field(default_factory=list)
    evaluations: list["Nights"] = field(default_factory=list)
    is_over: Event = field(default_factory=Event)

    def environment(self, name: str) -> dict[str, str]:
        """Return the variables that the configuration of an evaluation refers to."""
        return {
            "ASSAY_HOME": str(self.folder / "home"),
            f"HOOK_{name}": self.hooks.url("alerts", name),
            f"ESCALATION_{name}": self.hooks.url("escalations", name),
            f"BEAT_{name}": self.hooks.url("beats", name),
            "MAIL": self.mailbox.url,
        }

    def say(self, text: str) -> None:
        """Print what happens, with the time."""
        print(f"{datetime.now(UTC):%H:%M:%S}  {text}", flush=True)


@dataclass
class Worker:
    """The worker of a pool, which a story can stop."""

    month: Month
    pool: str
    environment: Mapping[str, str]
    pid: int = 0
    _running: ExitStack = field(default_factory=ExitStack)

    def start(self, limit: str = "4") -> None:
        """Start the worker."""
        settings = {**self.environment, "PREFECT_WORKER_LIMIT": limit}
        self.pid = self._running.enter_context(
            worker(self.month.url, self.pool, self.month.folder / f"worker-{self.pool}", settings)
        )

    def stop(self) -> None:
        """Kill the worker and its runs."""
        self._running.close()


@dataclass
class Nights:
    """The nights of an evaluation.

    Args:
        month: Server and receivers.
        name: Name of the evaluation.
        world: System, data and judge.
        server: Server of the judge.
        pool: Name of the work pool.
        at: Minute of the interval at which its runs are due.
        is_silenced: True while incidents begin and end without messages.
        is_compared: False if its page cannot show what the script saw, as with a clock that is wrong.
        over: End of the story.
    """

    month: Month
    name: str
    world: World
    server: FakeServer
    pool: str = POOL
    at: int = 0
    suffix: str = ""
    number: int = 0
    options: dict[str, Any] = field(default_factory=dict)
    deploy_options: dict[str, Any] = field(default_factory=dict)
    last: FlowRun | None = None
    is_silenced: bool = False
    is_compared: bool = True
    over: datetime | None = None
    _seen: int = 0

    @property
    def history(self) -> str:
        """The database of the history of this evaluation."""
        return str(self.month.folder / f"history-{self.name}.db")

    def config(self) -> dict[str, Any]:
        """Return the configuration of the evaluation."""
        deploy = {
            "cron": f"{self.at}-59/{self.month.interval} * * * *",
            "index": self.name,
            "late_minutes": 1.0,
            "heartbeat": f"env:BEAT_{self.name}",
            "baselines": str(self.month.folder / f"baselines-{self.name}"),
            "alerts": {
                "webhook": f"env:HOOK_{self.name}",
                "email": {"server": "env:MAIL", "to": [f"{self.name}@example.com"], "sender": "assay@example.com"},
            },
            **self.deploy_options,
        }
        server = {"urls": [self.server.url], "max_retries": 1, "unavailable_timeout": 3, "timeout": 20}
        return {
            "name": self.name,
            "source": str(self.world.source),
            "metrics": ["faithfulness"],
            "history": self.history,
            "history_page": str(self.month.folder / f"page-{self.name}.html"),
            "judge": {"backend": "server", "server": server},
            "deploy": deploy,
            **self.options,
        }

    def deploy(self, **deploy_options: Any) -> None:
        """Deploy the evaluation, or deploy it again with other options."""
        self.deploy_options |= deploy_options
        place = DeploymentTarget(pool=self.pool, job_variables={"working_dir": str(self.month.folder)})
        plan = plan_deployments(RunConfig.model_validate(self.config()), self.suffix or f"-{self.name}")
        with pytest.MonkeyPatch.context() as patch:
            for name, value in self.month.environment(self.name).items():
                patch.setenv(name, value)
            apply(plan, place)

    def runs(self) -> list[FlowRun]:
        """Return the runs of the schedule that have ended, oldest first."""
        wanted = DeploymentFilter.model_validate({"name": {"any_": [f"monitor-{self.name}"]}})
        with get_client(sync_client=True) as client:
            found = client.read_flow_runs(deployment_filter=wanted, limit=200)
        # A run that has crashed is resumed, or given up as Failed.
        ended = (
            each
            for each in found
            if each.state is not None and each.state.is_final() and not each.state.is_crashed() and each.run_count
        )
        return sorted(ended, key=lambda run: run.end_time or run.created or datetime.now(UTC))

    def record(self) -> list[SeenRun]:
        """Return what this script saw of the runs: those of the schedule by the clock and the states in Prefect."""
        own = [entry for entry in self.month.entries if entry.evaluation == self.name]
        runs = {_plain(run.expected_start_time): run for run in self.runs() if run.start_time and run.end_time}
        if not runs:
            return [
                SeenRun("failed" if each.kind == "failed" else "finished", each.begun, each.ended, each.mean)
                for each in own
                if each.kind and each.ended is not None
            ]
        entries = {entry.run: entry for entry in own}
        minutes = range(self.at, 60, self.month.interval)
        return [_seen(due, runs.get(due), entries) for due in due_dates(min(runs), max(runs), minutes)]

    def running(self) -> FlowRun | None:
        """Return the run that is going on."""
        wanted = DeploymentFilter.model_validate({"name": {"any_": [f"monitor-{self.name}"]}})
        with get_client(sync_client=True) as client:
            found = client.read_flow_runs(deployment_filter=wanted, limit=200)
        return next((each for each in found if each.state is not None and each.state.is_running()), None)

    def night(
        self,
        what: str = "",
        *expected: tuple[Expected, ...],
        fault: bool = False,
        write: bool = True,
        state: str = "",
        deploy: Mapping[str, Any] | None = None,
    ) -> FlowRun:
        """Wait for the end of the next run, and note what people must be told of it.

        Args:
            what: Events of the night in words; empty for a quiet night.
            expected: Changes that people must be told of.
            fault: True for a fault, false for its end.
            write: False if the system writes no new responses.
            state: Name of the final state that is expected; any without it.
            deploy: Options with which the evaluation is deployed again before.
        """
        self.number += 1
        if write:
            self.world.write(self.number)
        entry = self.note(what or "a quiet night", *expected, fault=fault)
        entry.mean = self.world.mean()
        if deploy is not None:
            self.deploy(**deploy)
        run: FlowRun = self.wait(self._next, f"the end of night {self.number} ({entry.what})")
        assert run.state is not None
        entry.state, entry.ended, entry.run, self.last = run.state.name or "", datetime.now(UTC), str(run.id), run
        short = (run.state.message or "").partition("\n")[0][:150]
        self.month.say(f"{self.name} {self.number}, {entry.what}: {entry.state}: {short}")
        if state and entry.state != state:
            self.month.say(f"{self.name} {self.number}: UNEXPECTED STATE {entry.state}, expected {state}")
        return run

    def stop(self) -> None:
        """Pause the deployment, if there is one: what people are told from now on is no part of the story."""
        self.over = datetime.now(UTC)
        with get_client(sync_client=True) as client, suppress(ObjectNotFound):
            client.pause_deployment(client.read_deployment_by_name(f"monitor/monitor-{self.name}").id)

    def note(self, what: str, *expected: tuple[Expected, ...], fault: bool = True) -> Entry:
        """Note what people must be told of, from now on."""
        entry = Entry(self.name, what, fault, tuple(each for group in expected for each in group), datetime.now(UTC))
        refused = self.month.mailbox.refused
        entry.is_silenced = self.is_silenced
        entry.is_reachable = self.name not in self.month.hooks.faults and not refused.startswith(f"{self.name}@")
        self.month.entries.append(entry)
        return entry

    def skip_ended(self) -> None:
        """Leave out the runs that have ended meanwhile."""
        self._seen = len(self.runs())

    def wait(self, look: Callable[[], Found | None], what: str) -> Found:
        """Wait for something; a month that hangs has no result."""
        deadline = time.monotonic() + _TIMEOUT_SECONDS
        while time.monotonic() < deadline:
            if found := look():
                return found
            time.sleep(2)
        raise RuntimeError(f"{self.name}: waited in vain for {what}")

    def wait_for_message(self, key: str, what: str) -> Message:
        """Wait for a message that the server sends about an incident."""
        since = datetime.now(UTC)

        def look() -> Message | None:
            found = (each for each in self.month.hooks.messages if each.evaluation == self.name)
            return next((each for each in found if each.time >= since and any(key in k for k, _ in each.changes)), None)

        return self.wait(look, what)

    def pass_time(self, nights: float) -> None:
        """Let the time of some nights pass."""
        time.sleep(nights * timedelta(minutes=self.month.interval).total_seconds())

    def call(
        self, what: str, *expected: Any, fault: bool = True, code: int = 0, ahead: float = 0.0, **changes: Any
    ) -> None:
        """Run a night by hand with `assay monitor`, and note what people must be told of it.

        Args:
            what: Events of the night in words.
            expected: Changes that people must be told of.
            fault: True for a fault, false for its end.
            code: Exit code that is expected.
            ahead: Days by which the clock of the run is ahead.
            changes: Options of this run only.
        """
        self.number += 1
        entry = self.note(what, *expected, fault=fault)
        entry.mean, entry.kind = self.world.mean(), "failed" if code in FAILED_CODES else "finished"
        done = self.assay("monitor", config={**self.config(), **changes}, ahead=ahead)
        entry.state, entry.ended = f"exit code {done.returncode}", datetime.now(UTC)
        if done.returncode != code:
            self.month.say(f"{self.name}: UNEXPECTED EXIT CODE {done.returncode}, expected {code}: {done.stderr}")

    def assay(
        self, *arguments: str, config: Mapping[str, Any] | None = None, ahead: float = 0.0
    ) -> subprocess.CompletedProcess[str]:
        """Run a command of rag-assay in the folder of the month, with a file of the configuration if one is given.

        Args:
            ahead: Days by which its clock is ahead.
        """
        clock = ["-m", "benchmarks.month.wrong_clock", str(ahead)] if ahead else ["-m", "rag_assay"]
        program = [sys.executable, *clock, *arguments]
        if config is not None:
            path = self.month.folder / f"{self.name}.yaml"
            path.write_text(json.dumps(config), encoding="utf-8")
            program.append(str(path))
        environment = {**os.environ, **self.month.environment(self.name), "PREFECT_API_URL": self.month.url}
        environment["PYTHONPATH"] = str(ROOT)
        done = subprocess.run(
            program, cwd=self.month.folder, env=environment, capture_output=True, text=True, check=False
        )
        last = (done.stderr or done.stdout).strip().rpartition("\n")[2][:150]
        self.month.say(f"{self.name}: assay {' '.join(arguments)}: {done.returncode} {last}")
        return done

    def _next(self) -> FlowRun | None:
        runs = self.runs()
        if len(runs) <= self._seen:
            return None
        self._seen += 1
        return runs[self._seen - 1]


def find_void(evaluations: Iterable[Nights], interval: timedelta) -> Iterator[str]:
    """Yield a sentence on each evaluation with a scheduled run that took more than half of the interval.

    What is missed or late in such a story says how busy the machine was. Runs that a story lets hang do not count: no
    night waits for them.
    """
    for nights in evaluations:
        waited_for = {entry.run for entry in nights.month.entries if entry.evaluation == nights.name}
        times = [
            run.end_time - run.start_time
            for run in nights.runs()
            if run.start_time and run.end_time and str(run.id) in waited_for and run.run_count == 1
        ]
        if times and (longest := max(times)) > interval / 2:
            yield f"{nights.name}: a run took {longest.total_seconds():.0f} of {interval.total_seconds():.0f} s"


def _plain(time: Any) -> datetime:
    """Return a time of Prefect, which has a class of its own."""
    return datetime.fromtimestamp(time.timestamp(), UTC)


def _seen(due: datetime, run: FlowRun | None, entries: Mapping[str, Entry]) -> SeenRun:
    """Return a run that was due as the script saw it; None if none was, or none has started."""
    state = None if run is None else run.state
    if run is None or state is None or run.start_time is None or run.end_time is None:
        return SeenRun("missed", due, due)
    if not (state.is_completed() or state.name in _BAD_RESULTS):
        return SeenRun("failed", _plain(run.start_time), _plain(run.end_time))
    entry = entries.get(str(run.id))
    beats = None if entry is None else int(entry.is_reachable)
    mean = None if entry is None else entry.mean
    return SeenRun("finished", _plain(run.start_time), _plain(run.end_time), mean, beats)
