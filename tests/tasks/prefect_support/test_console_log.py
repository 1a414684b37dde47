"""An outage of the Prefect server, and an error that the user can fix, is one line, and nothing else is lost."""

import logging
import os
import subprocess
import sys
from io import StringIO

import httpx
import pytest

from metric_core.errors import ConfigError
from tasks.prefect_support import console_log
from tasks.prefect_support.console_log import QUIET_SECONDS, ConsoleHandler, ConsoleHandlerOfService, OutageFilter
from tasks.runtime.log_format import log_variables
from tests.structure.house import ROOT
from tests.tasks.models.judges.openai.fake_server import free_port

LINE = "the Prefect server does not answer; waiting for it"


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def log(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> StringIO:
    monkeypatch.setattr(console_log, "_FILTER", OutageFilter(clock))
    written = StringIO()
    handler = console_log.DebugHandler(written)
    for name in ("prefect", "tasks.prefect_support.patience"):
        monkeypatch.setattr(logging.getLogger(name), "handlers", [handler])
        monkeypatch.setattr(logging.getLogger(name), "propagate", False)
        monkeypatch.setattr(logging.getLogger(name), "level", logging.INFO)
    monkeypatch.setattr(logging.getLogger("prefect.flow_runs"), "handlers", [])  # they send to a server
    return written


def refusal() -> httpx.ConnectError:
    return httpx.ConnectError("All connection attempts failed")


def lines_of_an_outage() -> None:
    """Log what Prefect and rag-assay log during an outage."""
    logging.getLogger("prefect.events.clients").warning("Unable to connect to 'ws://127.0.0.1:1/api/events/in'.")
    logging.getLogger("prefect.FlowRunCancellingObserver").error(
        "Cancellation polling task failed.", exc_info=refusal()
    )
    logging.getLogger("prefect.runner.executor_context").warning("Cancellation observer failed.")
    logging.getLogger("prefect.worker.process").error("It failed", exc_info=refusal())
    logging.getLogger("tasks.prefect_support.patience").warning("the Prefect server does not answer (X)")


def test_an_outage_is_one_line_and_the_next_one_is_another(log: StringIO, clock: Clock) -> None:
    for _ in range(20):
        lines_of_an_outage()
        clock.now += 10
    assert log.getvalue() == f"{LINE}\n"
    clock.now += QUIET_SECONDS
    lines_of_an_outage()
    assert log.getvalue() == f"{LINE}\n" * 2


def test_other_lines_stay_as_they_are(log: StringIO) -> None:
    lines_of_an_outage()
    logging.getLogger("prefect.flow_runs").error("Encountered an exception: the judge is away", exc_info=refusal())
    logging.getLogger("prefect.worker").error("No such work pool")
    logging.getLogger("prefect.events").info("Unable to connect to 'ws, told as information")
    text = log.getvalue()
    assert text.startswith(LINE)
    assert "the judge is away\n" in text
    assert "httpx.ConnectError" in text
    assert text.endswith("No such work pool\nUnable to connect to 'ws, told as information\n")


@pytest.mark.parametrize(
    ("handler_class", "lines"),
    [
        (ConsoleHandler, ["the run failed: run.json cannot be read: it is empty"]),
        (ConsoleHandlerOfService, []),
    ],
)
def test_a_refused_run_is_one_line_on_the_console_and_whole_elsewhere(
    handler_class: type[ConsoleHandler], lines: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    written, elsewhere = StringIO(), StringIO()
    handlers = [handler_class(written), logging.StreamHandler(elsewhere)]
    log = logging.getLogger("prefect.flow_runs.engine")
    for name in ("prefect.flows", log.name):
        monkeypatch.setattr(logging.getLogger(name), "handlers", handlers)
        monkeypatch.setattr(logging.getLogger(name), "propagate", False)
        monkeypatch.setattr(logging.getLogger(name), "level", logging.INFO)
    logging.getLogger("prefect.flows").error("Parameter validation failed for flow 'evaluate': ...")
    error = ConfigError("run.json cannot be read:\nit is empty")
    log.error("Encountered exception during execution: %r", error, exc_info=error)
    log.error("Engine execution exited with unexpected exception", exc_info=error)
    bug = KeyError("a bug")
    log.error("Encountered exception during execution: %r", bug, exc_info=bug)
    shown = written.getvalue().splitlines()
    assert shown[: len(lines)] == lines
    assert shown[len(lines) :] == ["Encountered exception during execution: KeyError('a bug')", "KeyError: 'a bug'"]
    assert elsewhere.getvalue().count("ConfigError: run.json") == 2


@pytest.mark.parametrize("log_format", ["text", "json"])
def test_prefect_loads_the_handlers_wherever_the_user_has_modules_of_these_names(log_format: str) -> None:
    program = (
        "import asyncio, httpx, logging\n"
        "from prefect import flow\n"
        "from prefect.utilities.services import critical_service_loop as loop\n"
        "async def fail(): raise httpx.ConnectError('refused')\n"
        "try: asyncio.run(loop(fail, 0.01))\n"
        "except RuntimeError: logging.getLogger('prefect.x').error('gave up', exc_info=httpx.ConnectError('x'))\n"
        "logging.getLogger('prefect.events').warning('Unable to connect to \\'ws')\n"
        "print([type(each).__name__ for each in logging.getLogger().handlers])\n"
    )
    environment = os.environ | log_variables(log_format) | {"PREFECT_LOGGING_LEVEL": "INFO"}
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "['ConsoleHandler']\n"
    assert done.stderr.count(LINE) == 1
    assert len(done.stderr.splitlines()) == 1, done.stderr


def test_a_log_line_that_cannot_be_sent_is_not_reported_on_stderr() -> None:
    program = (
        "from prefect import flow, get_run_logger\n"
        "from prefect.logging.handlers import APILogWorker\n"
        "import asyncio\n"
        "worker = APILogWorker.instance()\n"
        "worker.send(b'{}'); APILogWorker.drain_all(timeout=30)\n"
    )
    url = f"http://127.0.0.1:{free_port()}/api"
    settings = {"PREFECT_API_URL": url, "PREFECT_CLIENT_MAX_RETRIES": "0", "PREFECT_LOGGING_LEVEL": "WARNING"}
    environment = os.environ | log_variables("text") | settings
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "Error logging to API" not in done.stderr
    assert len(done.stderr.splitlines()) <= 1, done.stderr
