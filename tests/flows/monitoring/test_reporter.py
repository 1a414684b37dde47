"""Messages about a monitored run, whatever it is that fails or dies on the way."""

import json
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from prefect import flow, tags
from prefect.client.orchestration import get_client

from flows.alerting.outbox import Outbox
from flows.config.alert_options import AlertSettings
from flows.config.run_config import RunConfig
from flows.monitor import monitor, run_monitor
from flows.monitoring import chain, heartbeat
from flows.monitoring.chain import run_chain
from flows.monitoring.incidents import IncidentBook, alert_incidents, change_incidents
from flows.monitoring.monitored_run import MonitoredRun
from flows.monitoring.monitored_run_alarms import RunAlarms
from flows.monitoring.reporter import Reporter
from metric_core.errors import ConfigError, JudgeError
from tasks.history.alert_log import AlertLog
from tasks.record.outcome import OutcomeIncident
from tasks.reports.history.history_view import history_view
from tasks.runs.baselines import EVALUATIONS, Baselines
from tasks.runs.outcome_file import read_outcome
from tasks.runtime.retry import Backoff
from tests.flows.deployed_flow import DeployedFlow
from tests.flows.monitoring.conftest import START, Nights

pytestmark = [pytest.mark.prefect]

DOWN = -1.0


class Killed(BaseException):
    """The process is killed."""


def kill_at(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, *, after: bool) -> None:
    """Have a function kill its process once, before or after it has done its work."""
    work: Callable[..., Any] = getattr(owner, name)

    def die(*args: Any, **kwargs: Any) -> Any:
        monkeypatch.setattr(owner, name, work)
        if after:
            work(*args, **kwargs)
        raise Killed

    monkeypatch.setattr(owner, name, die)


def run_night(nights: Nights, flow_run: str, level: float) -> None:
    """Run a night as the flow run of an id does, whenever it is resumed."""
    nights.prepare(level)
    config = nights.configuration()
    monitored_run = MonitoredRun.now(config, "schedule")
    reporter = Reporter(options=config, monitored_run=monitored_run, flow_run=flow_run)

    @flow(name="night", persist_result=False)
    def night() -> None:
        run_chain(reporter, monitored_run, lambda baseline: nights.evaluate(config, monitored_run, baseline))

    night()


POINTS: dict[str, tuple[Any, str, bool]] = {
    "nothing is written": (Outbox, "send", False),
    "the message is sent": (Outbox, "send", True),
    "messages and incidents are not written": (AlertLog, "report", False),
    "messages and incidents are written": (AlertLog, "report", True),
    "no incident is kept beside the history": (IncidentBook, "keep", False),
    "incidents are kept beside the history": (IncidentBook, "keep", True),
    "the run is not accepted": (Baselines, "accept", False),
    "the run is accepted": (Baselines, "accept", True),
    "no outcome is written": (chain, "write_outcome", False),
    "the outcome is written": (chain, "write_outcome", True),
}


@pytest.fixture
def moving(nights: Nights, monkeypatch: pytest.MonkeyPatch) -> Nights:
    """Return nights of which each that passes becomes the baseline."""
    monkeypatch.setattr("flows.monitoring.monitored_run_checks.find_missed_runs", lambda _runs, _patience: None)
    monkeypatch.setattr(chain, "find_run_alarms", lambda *_: RunAlarms())  # which end after two good nights only
    nights.deploy |= {"accept": "passed"}
    run_night(nights, "first", 0.8)
    return nights


@pytest.mark.parametrize("point", POINTS)
def test_run_that_is_killed_and_resumed_tells_once(moving: Nights, monkeypatch: pytest.MonkeyPatch, point: str) -> None:
    owner, name, after = POINTS[point]
    for flow_run, level, outcome in (("bad", 0.2, "failed"), ("good", 0.8, "recovered")):
        if owner is not Baselines or flow_run == "good":
            kill_at(monkeypatch, owner, name, after=after)
            with pytest.raises(Killed):
                run_night(moving, flow_run, level)
        run_night(moving, flow_run, level)
        assert [alert["outcome"] for alert in moving.alerts()] == [outcome], point
        found = read_outcome(moving.folders[-1])
        assert found is not None
        changed = found.incidents.opened if flow_run == "bad" else found.incidents.recovered
        assert {incident.kind for incident in changed} >= {"gate"}
        assert found.incidents.continuing == ()
    assert moving.history.open_incidents("support") == []
    current = Baselines(moving.deploy["baselines"], EVALUATIONS).current("support")
    assert current is not None
    assert Path(current.folder) == moving.folders[-1]


def test_incident_is_open_from_the_night_that_found_it_even_if_nobody_could_be_told(
    nights: Nights, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOOK", "http://127.0.0.1:9/nobody")
    monkeypatch.setattr("flows.alerting.delivery.TRIES", 1)
    nights.run()
    nights.deploy["alerts"] |= {"webhook": "env:HOOK"}
    _, second = nights.run(0.2)
    assert len(second.undelivered) == 1
    assert "webhook" in second.undelivered[0]
    _, third = nights.run(0.2)
    since = {incident.key: incident.since for incident in second.incidents.opened}
    assert {incident.key: incident.since for incident in third.incidents.continuing} == since
    assert len(third.undelivered) == 1
    del nights.deploy["alerts"]["webhook"]
    assert nights.run(0.2)[1].undelivered == ()
    assert [alert["outcome"] for alert in nights.alerts()] == ["failed"]


def test_failed_night_is_in_the_history_and_its_recovery_says_so(nights: Nights) -> None:
    nights.run()
    with pytest.raises(JudgeError) as raised:
        nights.run(DOWN)
    assert raised.value.__notes__ == ["an alert about this error was sent to the recipients in deploy.alerts"]
    failed = nights.history.runs("support")[-1]
    assert (failed.status, failed.reason, failed.trigger) == ("failed", "the judge is down in attempt 2", "manual")
    nights.alerts()
    nights.run()
    (alert,) = nights.alerts()
    assert alert["title"] == "evaluation support has recovered"


def test_error_after_the_evaluation_is_shown_from_its_run_on(nights: Nights, monkeypatch: pytest.MonkeyPatch) -> None:
    def evaluate(config: RunConfig, monitored_run: MonitoredRun, baseline: Path | None) -> Path:
        nights.prepare(0.8, created=datetime.now(UTC).isoformat())
        return nights.evaluate(config, monitored_run, baseline)

    monkeypatch.setattr("flows.monitor._evaluate", evaluate)
    run_monitor(nights.configuration())
    nights.deploy["gate"] = {"absolute": ["faithfulnes.mean >= 0.5"]}
    with pytest.raises(Exception, match="faithfulnes"):
        run_monitor(nights.configuration())
    runs, incidents = nights.history.runs("support"), nights.history.incidents("support")
    shown = history_view("support", runs, incidents, lambda *_: None)
    assert [(each["opened"], each["closed"]) for each in shown["incidents"]] == [(1, None)]


def test_run_whose_parameters_are_not_valid_is_told(served_nights: Nights) -> None:
    with get_client(sync_client=True) as client:
        config = {**served_nights.configuration().model_dump(mode="json", exclude_unset=True), "limit": "many"}
        deployed = DeployedFlow(client, monitor, {"config": config})
        run = deployed.create()
        deployed.start(run)
        name, message = deployed.state(run)
        assert (name, "limit" in message) == ("Error", True)
        (alert,) = served_nights.alerts()
        assert (alert["name"], alert["outcome"], "limit" in alert["text"]) == ("support", "error", True)
        assert served_nights.history.runs("support")[-1].status == "failed"
        elsewhere = served_nights.folder / "elsewhere.jsonl"
        hostile = deployed.create(config={"deploy": {"alerts": {"file": str(elsewhere)}}})
        deployed.start(hostile)
        assert deployed.state(hostile)[0] == "Error"
    assert len(served_nights.alerts()) == 1
    assert not elsewhere.exists()


def test_first_run_that_cannot_be_recorded_is_not_the_baseline(nights: Nights) -> None:
    (nights.folder / "other").mkdir()
    broken = nights.configuration().model_copy(update={"history": str(nights.folder / "other")})
    nights.prepare(0.8)
    done = run_monitor(broken)
    outcome = read_outcome(nights.folders[-1])
    assert outcome is not None
    assert (done.verdict, outcome.accepted) == ("inconclusive", False)
    assert Baselines(nights.deploy["baselines"], EVALUATIONS).current("support") is None
    (alert,) = nights.alerts()
    assert "the first run does not become the baseline" in alert["text"]


@pytest.mark.parametrize(("match", "verdict"), [("id", "accepted"), ("user_inptu", "inconclusive")])
def test_first_run_whose_rows_cannot_be_matched_is_not_the_baseline(nights: Nights, match: str, verdict: str) -> None:
    nights.deploy["match"] = match
    del nights.deploy["gate"]  # its rules would look for the rows themselves
    assert nights.run()[0] == verdict
    told = [
        f"the first run does not become the baseline: rows cannot be matched by {match}" in alert["text"]
        for alert in nights.alerts()
    ]
    assert told == ([] if verdict == "accepted" else [True])
    assert verdict == "inconclusive" or nights.run()[0] == "passed"


class Monitor:
    """A heartbeat monitor that replies with the given statuses, and then with 200."""

    def __init__(self) -> None:
        self.calls: list[dict[str, str]] = []
        self.statuses: list[int] = []
        calls, statuses = self.calls, self.statuses

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                calls.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                self.send_response(statuses.pop(0) if statuses else 200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Print nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/ping"


@pytest.fixture
def heartbeats(monkeypatch: pytest.MonkeyPatch) -> Iterator[Monitor]:
    monkeypatch.setattr(heartbeat, "_PAUSE", Backoff(0.0, 0.0))
    found = Monitor()
    thread = threading.Thread(target=found.server.serve_forever)
    thread.start()
    yield found
    found.server.shutdown()
    thread.join()
    found.server.server_close()


def test_heartbeat_is_called_after_good_nights_only(
    nights: Nights, heartbeats: Monitor, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("HEARTBEAT", heartbeats.url)
    monkeypatch.setenv("HOOK", "http://127.0.0.1:9/nobody")
    monkeypatch.setattr("flows.alerting.delivery.TRIES", 1)
    nights.deploy["heartbeat"] = "env:HEARTBEAT"
    heartbeats.statuses += [503, 500]
    nights.run()
    assert [call["name"] for call in heartbeats.calls] == ["support"] * 3, "it is called again until it succeeds"
    with tags("auto-scheduled"):
        nights.run(0.2)
    assert len(heartbeats.calls) == 4, "people have been notified"
    with pytest.raises(JudgeError):
        nights.run(DOWN)
    nights.deploy["alerts"] |= {"webhook": "env:HOOK"}
    nights.run()
    assert len(heartbeats.calls) == 4, "a recovery is not delivered"
    del nights.deploy["alerts"]["webhook"]
    heartbeats.statuses += [404] * 10
    verdict, outcome = nights.run()
    assert (verdict, outcome.undelivered) == (
        "passed",
        ("the heartbeat monitor could not be called: it replied with status 404",),
    )
    recorded = nights.history.run(f"night-{len(nights.folders)}")
    assert recorded is not None
    assert recorded.outcome == outcome, "the history says so, too"
    assert "the heartbeat monitor could not be called: it replied with status 404" in caplog.text
    assert heartbeats.url not in caplog.text


def test_heartbeat_holds_no_secret() -> None:
    for address in ("ftp://host/x", "https://me:secret@host/x", "not a url"):
        with pytest.raises(ValueError, match="heartbeat"):
            RunConfig.model_validate({"deploy": {"heartbeat": address}})
    assert RunConfig.model_validate({"deploy": {"heartbeat": "https://hc.example/1"}}).deploy.heartbeat


def test_cause_of_an_incident_stays_known(tmp_path: Path) -> None:
    history = str(tmp_path / "history.db")
    found = [
        OutcomeIncident(key="alarm:a", kind="alarm", sentence="a", since=START, run_id=run_id, cause=cause)
        for run_id, cause in (("1", ""), ("2", "system"), ("3", "unknown"))
    ]
    for incident in found:
        book = IncidentBook(history, "support", incident.run_id)
        Outbox(AlertSettings(), history, "support").resend(book.changes(change_incidents(book.read(), [incident])))
    book = IncidentBook(history, "support", "4")
    (known,) = book.read()
    assert (known.cause, known.since, known.run_id) == ("system", START, "1")
    (told,) = alert_incidents("support", change_incidents(book.read(), []))
    assert (told.cause, told.status, told.key) == ("system", "resolved", "support/alarm:a")


def test_alert_about_an_event_that_nobody_hears_has_the_key_that_services_keep(nights: Nights) -> None:
    options = nights.configuration()
    reporter = Reporter(options=options, payload={"index": "handbok", "version": "2"}, flow_run="1")
    reporter.report_error(ConfigError("no deployment listens to it"))
    (alert,) = nights.alerts()
    assert [(each["key"], each["change"]) for each in alert["incidents"]] == [("index handbok/error", "opened")]
    assert alert["worse"] == ["no deployment listens to it"]
