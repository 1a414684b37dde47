"""`assay monitor`: people are told of what could not begin, by the path of every other run."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import deployments.cli.monitor
from deployments.cli.main import EXIT_CODES
from metric_core.errors import AssayError, ConfigError, SourceError
from tasks.history.alert_log import AlertLog
from tasks.history.catalogue import Catalogue
from tasks.history.operator_log import Silence
from tests.deployments.cli.conftest import Outcome

ROW = {"user_input": "Where are bikes repaired?", "response": "In Dublin.", "retrieved_contexts": ["In Dublin."]}
CONFIG = """
name = "support"
source = "answers.jsonl"
history = "history.db"
history_page = "page.html"
metrics_file = "assay.prom"
{top}
[deploy]
{deploy}
[deploy.alerts]
file = "alerts.jsonl"
{alerts}
"""


class Job:
    """A job that runs `assay monitor`, with its files.

    Args:
        folder: Folder of the files.
        assay: Calls the command.
    """

    def __init__(self, folder: Path, assay: Callable[..., Outcome]) -> None:
        self.folder = folder
        self._assay = assay
        self._told = 0
        self.write()
        self.source(json.dumps(ROW))

    def write(self, top: str = "", deploy: str = "", alerts: str = "") -> None:
        """Write the configuration, with further lines in its tables."""
        text = CONFIG.format(top=top, deploy=deploy, alerts=alerts)
        (self.folder / "assay.toml").write_text(text, encoding="utf-8")

    def source(self, text: str | None) -> None:
        """Write the source; None removes it."""
        path = self.folder / "answers.jsonl"
        path.unlink(missing_ok=True)
        if text is not None:
            path.write_text(f"{text}\n", encoding="utf-8")

    def run(self, *arguments: str) -> Outcome:
        """Run the command."""
        return self._assay("monitor", str(self.folder / "assay.toml"), *arguments)

    def alerts(self) -> list[dict[str, Any]]:
        """Return the alerts since the last call."""
        path = self.folder / "alerts.jsonl"
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        new, self._told = lines[self._told :], len(lines)
        return [json.loads(line) for line in new]

    @property
    def history(self) -> Catalogue:
        """The history."""
        return Catalogue(str(self.folder / "history.db"))


@pytest.fixture
def job(tmp_path: Path, assay: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch) -> Job:
    monkeypatch.setenv("ASSAY_HOME", str(tmp_path / "home"))
    return Job(tmp_path, assay)


def code_of(error: type[AssayError]) -> int:
    return next(code for kind, code in EXIT_CODES if issubclass(error, kind))


def leave_out_contexts(job: Job) -> None:
    job.write(top='metrics = ["faithfulness"]')
    job.source(json.dumps({name: value for name, value in ROW.items() if name != "retrieved_contexts"}))


FAULTS: dict[str, tuple[Callable[[Job], None], type[AssayError], str]] = {
    "source missing": (lambda job: job.source(None), SourceError, "answers.jsonl"),
    "source empty": (lambda job: job.source(""), SourceError, "answers.jsonl"),
    "broken line": (lambda job: job.source(json.dumps(ROW) + "\n{broken"), SourceError, "line 2"),
    "missing column": (leave_out_contexts, SourceError, "retrieved_contexts"),
    "typo of a metric": (lambda job: job.write(top='metrics = ["faithfulnes"]'), ConfigError, "faithfulnes"),
    "typo of an option": (lambda job: job.write(top='metricz = ["faithfulness"]'), ConfigError, "metricz"),
    "typo in deploy": (lambda job: job.write(deploy="stale_day = 3"), ConfigError, "stale_day"),
    "no gate file": (lambda job: job.write(deploy='gate = "gone.toml"'), ConfigError, "gone.toml"),
    "typo in alerts": (lambda job: job.write(alerts='webhok = "env:HOOK"'), ConfigError, "webhok"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_could_not_begin_is_told_once_and_is_in_the_history(job: Job, fault: str) -> None:
    break_it, error, named = FAULTS[fault]
    break_it(job)
    done = job.run()
    assert (done.code, named in done.err) == (code_of(error), True)
    assert done.err.splitlines()[-1] == "an alert about this error was sent to the recipients in deploy.alerts"
    (alert,) = job.alerts()
    assert (alert["name"], alert["outcome"], alert["status"]) == ("support", "error", "open")
    assert named in alert["worse"][0]
    (incident,) = job.history.open_incidents("support")
    assert alert["incidents"][0]["key"] == f"support/{incident.key}"
    (run,) = job.history.runs("support")
    assert (run.status, run.trigger, named in run.reason, run.folder) == ("failed", "manual", True, "")
    assert "support" in (job.folder / "page.html").read_text(encoding="utf-8")
    figures = (job.folder / "assay.prom").read_text(encoding="utf-8")
    assert 'assay_run_failed{deployment="",index=""} 1.0' in figures
    assert 'assay_open_incidents{deployment="",index=""} 1.0' in figures
    assert "assay_mean" not in figures

    done = job.run()
    assert (done.code, job.alerts()) == (code_of(error), [])
    assert {run.status for run in job.history.runs("support")} == {"failed"}
    assert "an earlier alert was about this error" in done.err


def test_error_in_a_silence_is_not_said_to_be_told(job: Job) -> None:
    now = datetime.now(UTC)
    AlertLog(str(job.folder / "history.db")).silence("support", Silence(now, now + timedelta(hours=1)))
    job.source(None)
    said = "messages are silenced: this error is reported at the end of the silence, unless it is over by then"
    assert [job.run().err.splitlines()[-1] for _ in range(2)] == [said] * 2
    assert job.alerts() == []
    (incident,) = job.history.open_incidents("support")
    assert incident.kind == "error"


def test_another_cause_takes_the_place_of_the_first_and_is_told(job: Job) -> None:
    job.source(None)
    job.run()
    job.source("")
    job.run()
    first, second = job.alerts()
    changes = [[each["change"] for each in alert["incidents"]] for alert in (first, second)]
    assert changes == [["opened"], ["opened", "replaced"]]
    assert first["incidents"][0]["key"] != second["incidents"][0]["key"]
    (incident,) = job.history.open_incidents("support")
    assert f"support/{incident.key}" == second["incidents"][0]["key"]


def test_recipients_that_are_not_known_are_said_to_be(job: Job) -> None:
    (job.folder / "assay.toml").write_text("name = ", encoding="utf-8")
    assert "no alert about this error was sent: the recipients" in job.run().err
    (job.folder / "assay.toml").write_text('name = "support"\nsource = "missing.jsonl"', encoding="utf-8")
    assert "no recipient is set in deploy.alerts" in job.run().err
    assert (job.folder / "home" / "alerts.jsonl").is_file()


def test_recipient_that_cannot_be_reached_is_named(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOOK", "http://127.0.0.1:9/nobody")
    monkeypatch.setattr("flows.alerting.delivery.TRIES", 1)
    job.write(alerts='webhook = "env:HOOK"')
    job.source(None)
    done = job.run()
    assert "not delivered: " in done.err
    assert "webhook" in done.err
    (run,) = job.history.runs("support")
    assert "webhook" in run.details.undelivered[0]
    assert len(job.alerts()) == 1


@pytest.mark.prefect
def test_recipient_that_cannot_be_reached_by_a_finished_run_is_named_by_command_and_history(
    job: Job, assay: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch, prefect_stub: object
) -> None:
    del prefect_stub  # its home is ASSAY_HOME
    monkeypatch.setenv("HOOK", "http://127.0.0.1:9/nobody")
    monkeypatch.setattr("flows.alerting.delivery.TRIES", 1)
    monkeypatch.chdir(job.folder)
    job.source("\n".join(json.dumps({**ROW, "reference": "In Cork, by the sea."}) for _ in range(40)))
    gate = 'gate = {absolute = ["string_similarity.mean >= 0.99"]}'
    job.write(top='metrics = ["string_similarity"]', deploy=gate, alerts='webhook = "env:HOOK"')
    done = job.run()
    assert done.code == 10
    refused = "not delivered: the webhook has not accepted a message since"
    assert refused in done.err
    (run,) = job.history.runs("support")
    assert run.outcome is not None
    assert run.undelivered == run.outcome.undelivered != ()
    assert refused in assay("history", "support", "--history", str(job.folder / "history.db")).out
    assert [alert["outcome"] for alert in job.alerts()] == ["failed"]


def test_server_that_does_not_start_is_told(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_home: Path) -> None:
        raise AssayError("the Prefect server did not start: the disk is full")

    monkeypatch.setattr(deployments.cli.monitor, "start_server", fail)
    assert job.run().code == code_of(AssayError)
    (alert,) = job.alerts()
    assert alert["worse"] == ["the Prefect server did not start: the disk is full"]
