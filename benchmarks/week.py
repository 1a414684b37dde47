"""Play a week of nights on a real Prefect server with a worker, a night per minute, and show the alerts that come.

    python -m benchmarks.week --out FOLDER

The system gets worse on the third night and is repaired on the fourth. On the fifth, the worker is stopped. On the
sixth it is back, and the judge's server has another, stricter model; a person accepts that night as the baseline. The
seventh is quiet. Three more nights follow: the judge is down, the source is empty, and both the run and its worker are
killed. Alerts are received by a real HTTP server and a real SMTP server on the loopback interface.

The folder gets `alerts.json` (what was received, and when), the page of the history before and after the week, and
pictures of both where a Chromium is found. The database of the Prefect server is in PostgreSQL if there is one with the
extension that Prefect needs. It all takes about 15 minutes.
"""

import argparse
import hashlib
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import DeploymentFilter
from prefect.client.schemas.objects import FlowRun

from deployments.local_server import ServerAddress, use_server
from deployments.registry.apply import Place, apply
from flows.config.run_config import RunConfig
from tests.browser.chromium import find_chromium
from tests.json_endpoint import JsonEndpoint
from tests.postgres import prefect_database, programs_for_prefect, start_postgres
from tests.prefect_servers import prefect_server, worker
from tests.smtp_receiver import SmtpReceiver
from tests.tasks.judges.openai.fake_server import FakeServer, step

POOL, NAME = "nights", "shops"
TIMEOUT_SECONDS = 600.0
STATEMENT = re.compile(r"Shop (\d+) opens at (\d+)")


@dataclass
class World:
    """The system, the data and the judge of a night.

    Args:
        folder: Folder of the data.
        rows: Number of rows.
        wrong: Share of responses that contradict their passage.
        strict: Share of right responses that the judge refuses.
    """

    folder: Path
    rows: int
    wrong: float = 0.05
    strict: float = 0.05
    night: int = 0

    @property
    def source(self) -> Path:
        return self.folder / "responses.jsonl"

    def write(self, night: int, *, rows: int | None = None) -> None:
        """Write the responses of the system for a night."""
        count = self.rows if rows is None else rows
        chance = random.Random(night)
        self._write(self.source, [self._row(number, chance.random() < self.wrong, night) for number in range(count)])

    def write_anchor(self) -> Path:
        """Write the rows that are judged every night, with responses that never change."""
        path = self.folder / "anchor.jsonl"
        self._write(path, [self._row(10_000 + number, number % 10 == 0, 0) for number in range(self.rows)])
        return path

    def judge(self, body: dict[str, Any]) -> dict[str, Any]:
        """Answer a question to the judge."""
        prompt = str(body["messages"][-1]["content"])
        found = STATEMENT.findall(prompt)
        if labels := body.get("structured_outputs", {}).get("choice"):
            hours = {hour for _, hour in found}
            refuses = found and _share(found[0][0], "strict") < self.strict
            label = labels[0] if len(hours) == 1 and not refuses else labels[1]
            return {
                "content": label,
                "steps": [step(label, {each: 0.97 if each == label else 0.03 for each in labels})],
            }
        statements = [f"Shop {shop} opens at {hour}." for shop, hour in dict.fromkeys(found)]
        schema = body["response_format"]["json_schema"]["schema"]
        return {"content": json.dumps(dict.fromkeys(schema["properties"], statements))}

    def _row(self, number: int, is_wrong: bool, night: int) -> dict[str, Any]:
        hour = number % 12
        said = hour + 1 if is_wrong else hour
        return {
            "id": f"r{number}",
            "user_input": f"When does the shop with number {number} open?",
            "response": f"As of night {night}: Shop {number} opens at {said}.",
            "retrieved_contexts": [f"Shop {number} opens at {hour}."],
        }

    def _write(self, path: Path, rows: list[dict[str, Any]]) -> None:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def _share(*parts: str) -> float:
    digest = hashlib.sha256("\x1f".join(parts).encode()).digest()
    return int.from_bytes(digest[:4], "big") / 2**32


@dataclass
class Week:
    """A server, a worker that can be stopped, and the receivers of alerts.

    Args:
        folder: Folder of everything.
        url: API URL of the Prefect server.
        world: System, data and judge.
        webhook: Receiver by HTTP.
        mailbox: Receiver by SMTP.
    """

    folder: Path
    url: str
    world: World
    webhook: JsonEndpoint
    mailbox: SmtpReceiver
    alerts: list[dict[str, Any]] = field(default_factory=list)
    _worker: ExitStack = field(default_factory=ExitStack)
    _seen: int = 0
    _read: int = 0
    _mails: int = 0
    _pid: int = 0

    @property
    def environment(self) -> dict[str, str]:
        return {
            "ASSAY_HOME": str(self.folder / "home"),
            "HOOK": self.webhook.url,
            "MAIL": self.mailbox.url,
        }

    def start_worker(self) -> None:
        self._pid = self._worker.enter_context(worker(self.url, POOL, self.folder / "worker", self.environment))

    def stop_worker(self) -> None:
        self._worker.close()

    def runs(self) -> list[FlowRun]:
        """Return the runs of the schedule that have begun, oldest first."""
        wanted = DeploymentFilter.model_validate({"name": {"any_": [f"monitor-{NAME}"]}})
        with get_client(sync_client=True) as client:
            found = client.read_flow_runs(deployment_filter=wanted, limit=200)
        begun = (each for each in found if each.start_time is not None and each.run_count)
        return sorted(begun, key=lambda run: run.start_time or run.id)

    def night(self, what: str) -> FlowRun:
        """Wait until the next run has ended, and return it."""

        def look() -> FlowRun | None:
            runs = self.runs()
            if len(runs) <= self._seen:
                return None
            run = runs[self._seen]
            return run if run.state is not None and run.state.is_final() else None

        run: FlowRun = _until(look, f"the end of {what}")
        self._seen += 1
        due, state = run.expected_start_time, run.state
        assert state is not None
        seconds = (run.total_run_time or run.estimated_run_time).total_seconds()
        self.say(
            f"{what}: {state.name} (due {due:%H:%M}, {seconds:.0f} s): {(state.message or '').partition(chr(10))[0]}"
        )
        return run

    def wait_for_start(self, what: str) -> None:
        """Wait until the next run has begun."""
        _until(lambda: len(self.runs()) > self._seen, f"the start of {what}")

    def collect(self, what: str, at_least: int) -> None:
        """Take what the receivers got, once there is as much as expected."""
        _until(lambda: len(self.webhook.received) - self._read >= at_least, f"the webhook about {what}")
        _until(lambda: len(self.mailbox.received) - self._mails >= at_least, f"the mail about {what}")
        for alert in self.webhook.received[self._read :]:
            self.alerts.append(
                {"night": what, "by": "HTTP", "time": _now(), "title": alert["title"], "text": alert["text"]}
            )
            self.say(f"    HTTP: {alert['text']}".replace("\n", "\n          "))
        for mail in self.mailbox.received[self._mails :]:
            self.alerts.append({"night": what, "by": "SMTP", "time": _now(), "title": mail.subject, "text": mail.text})
            self.say(f"    SMTP: {mail.subject}")
        self._read, self._mails = len(self.webhook.received), len(self.mailbox.received)

    def assay(self, *arguments: str) -> None:
        """Run a command of rag-assay in the folder of the week."""
        program = [sys.executable, "-m", "rag_assay", *arguments]
        environment = {**os.environ, **self.environment, "PREFECT_API_URL": self.url}
        done = subprocess.run(program, cwd=self.folder, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"assay {' '.join(arguments)} ended with {done.returncode}: {done.stderr}")

    def show_history(self, label: str) -> None:
        """Write the page of the history, and a picture of it."""
        page = self.folder / f"history-{label}.html"
        self.assay("history", NAME, "--page", str(page))
        if picture := _take_picture(page):
            self.say(f"    {page.name} and {picture.name}")

    def say(self, text: str) -> None:
        print(f"{_now()}  {text}", flush=True)


def _now() -> str:
    return f"{datetime.now(UTC):%H:%M:%S}"


def _until(look: Callable[[], Any], what: str) -> Any:
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while time.monotonic() < deadline:
        if found := look():
            return found
        time.sleep(0.5)
    raise RuntimeError(f"waited in vain for {what}")


def _take_picture(page: Path) -> Path | None:
    chromium = find_chromium()
    if chromium is None:
        return None
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 an extra

    picture = page.with_suffix(".png")
    with sync_playwright() as playwright:
        options: dict[str, Any] = {"executable_path": str(chromium.program), "args": ["--no-sandbox", "--disable-gpu"]}
        browser = playwright.chromium.launch(**options, env={**os.environ, **chromium.environment})
        shown = browser.new_page(viewport={"width": 1280, "height": 900})
        shown.goto(page.absolute().as_uri())
        shown.screenshot(path=picture, full_page=True)
        browser.close()
    return picture


@contextmanager
def _database() -> Iterator[str | None]:
    programs = programs_for_prefect()
    if programs is None:
        yield None
        return
    with start_postgres(programs) as server:
        yield prefect_database(server.folder)


def deploy_nights(week: Week, judge: FakeServer) -> None:
    """Deploy the evaluation with a run every minute."""
    world = week.world
    deploy = {
        "cron": f"{_minutes()} * * * *",
        "late_minutes": 0.2,
        "alerts": {
            "webhook": "env:HOOK",
            "email": {"server": "env:MAIL", "to": ["team@example.com"], "sender": "assay@example.com"},
        },
    }
    config = RunConfig.model_validate(
        {
            "name": NAME,
            "source": str(world.source),
            "metrics": ["faithfulness"],
            "anchor": {"source": str(world.write_anchor())},
            "judge": {
                "backend": "server",
                "server": {"urls": [judge.url], "max_retries": 1, "unavailable_timeout": 5},
            },
            "deploy": deploy,
        }
    )
    place = Place(pool=POOL, job_variables={"working_dir": str(week.folder)}, suffix=f"-{NAME}")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in week.environment.items():
            patch.setenv(name, value)
        for change in apply(config, place):
            if change.kind in ("block", "unreported") or "monitor" in change.name:
                week.say(f"{change.change} {change.kind} {change.name} {change.detail}")


def _minutes() -> str:
    """Return the minutes of the nights for a cron expression, from the next but one on.

    Prefect handles the events of a run that was scheduled less than five minutes before up to 15 minutes late, because
    they follow one that was never sent; so it must not be sooner than the fifth night that they matter.
    """
    first = datetime.now(UTC).minute + 2
    return ",".join(str(minute % 60) for minute in range(first, first + 30))


def play(week: Week, judge: FakeServer) -> None:
    """Play the nights of the week."""
    world = week.world
    world.write(1)
    deploy_nights(week, judge)
    week.start_worker()
    week.night("night 1")
    world.write(2)
    week.night("night 2")
    week.show_history("before")

    world.wrong = 0.45
    world.write(3)
    week.night("night 3, the system is worse")
    week.collect("night 3", 1)

    world.wrong = 0.05
    world.write(4)
    week.night("night 4, the system is repaired")
    week.collect("night 4", 0)

    world.write(5)
    week.stop_worker()
    week.say("night 5: the worker is stopped")
    week.collect("night 5", 1)
    asleep = len(week.webhook.received)
    time.sleep(70 - datetime.now(UTC).second)  # beyond the next minute, whose run is missing too
    if len(week.webhook.received) != asleep:
        raise RuntimeError("a second message about the same stopped worker")

    judge.models = ["judge-70b"]
    world.strict = 0.45
    world.write(6)
    week.start_worker()
    week.night("night 6, the worker is back and the judge is another")
    week.collect("night 6", 1)
    latest = max((week.folder / "runs").iterdir(), key=lambda path: path.stat().st_mtime)
    week.assay("accept", str(latest))
    week.say(f"accepted {latest.name} by hand")
    world.write(7)
    week.night("night 7")
    week.collect("night 7", 0)
    week.show_history("after")


def play_failures(week: Week, judge: FakeServer) -> None:
    """Play three nights on which a run cannot end."""
    world = week.world
    judge.stop()
    world.write(8)
    week.night("night 8, the judge is down")
    week.collect("night 8", 1)
    judge.start()
    world.write(9, rows=0)
    week.night("night 9, the source is empty")
    week.collect("night 9", 1)
    world.write(10)
    week.wait_for_start("night 10")
    week.stop_worker()
    week.say("night 10: the run and its worker are killed")
    week.collect("night 10", 1)


def main() -> None:
    """Play a week, and write what was received."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder of everything; must not exist")
    parser.add_argument("--rows", type=int, default=200)
    options = parser.parse_args()
    folder = options.out.absolute()
    folder.mkdir(parents=True)
    world = World(folder, options.rows)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with (
        _database() as database,
        prefect_server(folder / "prefect", database) as url,
        use_server(ServerAddress(url)),
        JsonEndpoint() as webhook,
        SmtpReceiver() as mailbox,
        FakeServer(say=world.judge, models=["judge-8b"]) as judge,
    ):
        week = Week(folder, url, world, webhook, mailbox)
        try:
            play(week, judge)
            play_failures(week, judge)
        finally:
            week.stop_worker()
            (folder / "alerts.json").write_text(json.dumps(week.alerts, indent=1), encoding="utf-8")
            with get_client(sync_client=True) as client:
                for deployment in client.read_deployments():
                    client.pause_deployment(deployment.id)


if __name__ == "__main__":
    main()
