"""The verbs of `assay alert`: what is open, who was told, and what people say about it."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from flows.alerting.alert import Alert, AlertIncident
from flows.alerting.stored_alerts import write_alert
from tasks.history.alert_log import AlertLog
from tasks.history.catalogue import Catalogue
from tasks.history.incident import IncidentFinding
from tasks.runs.outcome_file import write_outcome
from tests.deployments.cli.conftest import Outcome
from tests.tasks.history.run_folders import START, write_run
from tests.tasks.history.test_open_alarms import follow

Assay = Callable[..., Outcome]
GATE = "gate:mean"


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AlertLog:
    """Return the default history, with an evaluation that has an open incident, told to one of two recipients."""
    monkeypatch.setenv("ASSAY_HOME", str(tmp_path))
    Catalogue().record(write_run(tmp_path / "first", 0))
    log = AlertLog()
    log.open_incident("nightly", IncidentFinding(GATE, "gate", "faithfulness is 0.6", START, "run-1"))
    incident = AlertIncident(
        key=f"nightly/{GATE}", kind="gate", change="opened", sentence="faithfulness is 0.6", since=START
    )
    alert = Alert(name="nightly", outcome="failed", incidents=(incident,), flow_run="1")
    rows = [(recipient, alert.id, write_alert(alert)) for recipient in ("webhook", "email")]
    log.put("nightly", rows, "waiting", START)
    webhook, email = log.messages("nightly")
    log.note_try(webhook.number, 60)
    log.note_reply(webhook.number, "it replied with status 500", at=None)
    log.note_reply(email.number, "accepted", at=START)
    return log


def test_open_incidents_are_listed_with_their_recipients(assay: Assay, log: AlertLog) -> None:
    shown = assay("alert", "list")
    assert (shown.code, shown.out.splitlines()) == (
        0,
        [
            "nightly",
            f"  {GATE}, since 2026-03-01 06:00: faithfulness is 0.6",
            "    sent to: email",
            "    not delivered to the webhook: it replied with status 500",
        ],
    )
    (found,) = json.loads(assay("alert", "list", "nightly", "--json").out)["evaluations"]
    (incident,) = found["incidents"]
    assert (incident["notified"], incident["undelivered"]) == (["email"], {"webhook": "it replied with status 500"})
    log.close_incident("nightly", GATE)
    assert assay("alert", "list").out == "no incident is open\n"


def test_an_incident_is_acknowledged_by_its_key(assay: Assay, log: AlertLog) -> None:
    refused = assay("alert", "acknowledge", "nightly", "gate:max")
    assert (refused.code, f"no open incident 'gate:max', but {GATE}" in refused.err) == (2, True)
    done = assay("alert", "acknowledge", "nightly", GATE, "--by", "ada")
    assert done.out == f"acknowledged {GATE}: faithfulness is 0.6\n"
    assert "    acknowledged by ada on 20" in assay("alert", "list").out
    assay("alert", "acknowledge", "nightly", "--by", "bob")
    (incident,) = log.open_incidents("nightly")
    assert log.acknowledgements([incident.incident_id])[incident.incident_id].person == "ada"
    log.close_incident("nightly", GATE)
    assert assay("alert", "acknowledge", "nightly").out == "nightly has no open incident\n"


def test_an_evaluation_is_silenced_for_a_while(assay: Assay, log: AlertLog) -> None:
    done = assay("alert", "silence", "nightly", "--until", "4h", "--reason", "new index")
    assert (done.code, done.out.startswith("no messages about nightly from 20")) == (0, True)
    (found,) = log.silences("nightly", datetime.now(UTC))
    assert (found.ends - found.begins, found.reason) == (timedelta(hours=4), "new index")
    assert ": new index" in assay("alert", "list").out
    period = ("--begin", "2999-01-01T00:00+01:00", "--until", "2999-01-02")
    assert assay("alert", "silence", "nightly", *period).out == (
        "no messages about nightly from 2998-12-31 23:00 to 2999-01-02 00:00\n"
    )
    assert assay("alert", "unsilence", "nightly").out == "ended 2 silences of nightly\n"
    assert log.silences("nightly", datetime.now(UTC)) == []


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--until", "2020-01-01"), "before it begins or in the past: set a later --until"),
        (("--until", "tomorrow"), "--until must be a time such as 2026-11-22T06:00, or a length such as 4h"),
        (("--until", "4h", "--begin", "noon"), "--begin must be a time"),
    ],
)
def test_a_silence_needs_a_time_in_the_future(
    assay: Assay, log: AlertLog, arguments: tuple[str, ...], expected: str
) -> None:
    outcome = assay("alert", "silence", "nightly", *arguments)
    assert (outcome.code, expected in outcome.err) == (2, True)
    assert log.silences("nightly", datetime.now(UTC)) == []


def test_an_evaluation_that_the_history_does_not_know_is_refused(assay: Assay, log: AlertLog) -> None:
    del log
    for verb in (("acknowledge",), ("unsilence",), ("list",)):
        outcome = assay("alert", *verb, "nightli")
        assert (outcome.code, "no evaluation 'nightli', but nightly" in outcome.err) == (2, True)


def test_maintenance_of_a_configuration_is_listed(assay: Assay, log: AlertLog, tmp_path: Path) -> None:
    del log
    config = tmp_path / "assay.toml"
    begun = datetime.now(UTC) - timedelta(hours=1)
    cron = f"{begun.minute} {begun.hour} * * *"
    config.write_text(
        f'source = "rows.jsonl"\n[deploy.alerts]\nmaintenance = [{{cron = "{cron}", hours = 4}}]', encoding="utf-8"
    )
    shown = assay("alert", "list", "--config", str(config)).out
    assert "  silenced until 20" in shown
    assert ": maintenance" in shown


def test_an_alarm_is_explained_by_the_runs_that_were_read(
    assay: Assay, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASSAY_HOME", str(tmp_path))
    history, _ = follow(tmp_path, [0, 24, 24])
    for run in history:
        Catalogue().add(run)
        assert run.outcome is not None
        write_outcome(Path(run.folder), run.outcome)
    shown = assay("alert", "--explain", history[-1].folder)
    lines = [line.split() for line in shown.out.splitlines()]
    assert shown.out.startswith("faithfulness: worse since Monday, 3 November; down ")
    assert ["faithfulness", "rows", "mean", "change", "evidence"] in lines
    assert ["2025-11-02", "03:00", "120", "+0.000"] in [line[:4] for line in lines]
    assert ["2025-11-03", "03:00", "120", "-0.200"] in [line[:4] for line in lines]
    assert "an alarm is raised at an evidence of 20 (metrics and slices tested: 1)" in shown.out
    assert "left out: 1 monitored run with another baseline or without one" in shown.out
    content = json.loads(assay("alert", "--json", "--explain", history[-1].folder).out)
    [stream] = content["streams"]
    assert [each["evidence"] >= content["threshold"] for each in stream["runs"]] == [False, True, True]


def test_only_a_run_with_a_baseline_is_explained(assay: Assay, log: AlertLog, tmp_path: Path) -> None:
    del log
    outcome = assay("alert", "--explain", str(tmp_path / "first"))
    assert (outcome.code, "no alarm was looked for after the run in" in outcome.err) == (2, True)
    assert assay("alert", "--explain", str(tmp_path / "first"), "list").code == 2


def test_incidents_are_closed_by_hand_and_their_recipients_are_told(
    assay: Assay, log: AlertLog, tmp_path: Path
) -> None:
    config = tmp_path / "assay.toml"
    told = tmp_path / "told.jsonl"
    config.write_text(f'name = "nightly"\n[deploy.alerts]\nfile = "{told}"\n', encoding="utf-8")
    refused = assay("alert", "close", "nightly")
    assert (refused.code, "name the configuration with --config" in refused.err) == (2, True)
    unknown = assay("alert", "close", "nightly", "gate:men", "--config", str(config))
    assert (unknown.code, "has no open incident 'gate:men', but gate:mean" in unknown.err) == (2, True)
    done = assay("alert", "close", "nightly", GATE, "missed runs", "--by", "ada", "--config", str(config))
    assert done.out.splitlines() == [
        f"closed {GATE}: faithfulness is 0.6",
        "closed missed runs: the Prefect server reported: missed runs",
    ]
    (alert,) = map(json.loads, told.read_text(encoding="utf-8").splitlines())
    assert [(each["key"], each["change"]) for each in alert["incidents"]] == [
        (f"nightly/{GATE}", "resolved"),
        ("nightly/missed runs", "resolved"),
    ]
    assert alert["text"].endswith("Closed manually, by ada.")
    assert log.open_incidents("nightly") == []
    assert assay("alert", "close", "nightly", "--config", str(config)).out == "nightly has no open incident\n"


def test_silence_that_would_last_for_ever_is_refused(assay: Assay, log: AlertLog) -> None:
    del log
    refused = assay("alert", "silence", "nightly", "--until", "9999-01-01T00:00")
    assert (refused.code, "at most 92 days after its beginning" in refused.err) == (2, True)
