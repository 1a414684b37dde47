"""Log in one line an outage of the Prefect server, and an error that the user can fix.

While its server is away, Prefect logs warnings and tracebacks for every event, log line and poll that fails: some 100
lines in half a minute; a run that is refused is 57 lines. The handlers here let one line through. Prefect loads them in
place of its own where the environment says so: see `tasks.runtime.log_format`.
"""

import logging
import time
from collections.abc import Callable, Iterator
from copy import copy
from threading import Lock
from typing import ClassVar

import httpx
from prefect.exceptions import ParameterTypeError
from prefect.logging.handlers import PrefectConsoleHandler
from prefect.utilities import services
from websockets.exceptions import WebSocketException

from metric_core.errors import AssayError

QUIET_SECONDS = 120.0
"""Seconds without a failed request after which the next one is another outage."""

_ABOUT_OUTAGES = (
    "Unable to connect to 'ws",
    "websocket failed with an exception",
    "polling task failed",
    "observer failed",
    "Service 'EventsWorker' failed",
    "Service 'APILogWorker' failed",
    "the Prefect server does not answer",
)
_FIRST_ABOUT_ERRORS = "Encountered exception during execution"
_ABOUT_ERRORS = (_FIRST_ABOUT_ERRORS, "Engine execution exited with unexpected exception")
_ABOUT_PARAMETERS = "Parameter validation failed"
_FLOWS = "prefect.flows"
_RUN_LOGGERS = ("prefect.flow_runs", "prefect.task_runs")


class OutageFilter(logging.Filter):
    """A filter that turns the first record about an outage of the Prefect server into a line, and drops the others.

    Args:
        clock: Monotonic clock, in seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._last: float | None = None
        self._lock = Lock()

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether the record is logged."""
        if not _is_about_outage(record):
            return True
        with self._lock:
            now, before = self._clock(), self._last
            self._last = now
        if before is not None and now - before < QUIET_SECONDS:
            return False
        record.msg, record.args = "the Prefect server does not answer; waiting for it", ()
        record.exc_info = record.exc_text = record.stack_info = None
        record.levelno, record.levelname = logging.WARNING, "WARNING"
        return True


_FILTER = OutageFilter()
"""The filter of all handlers, since they log about the same server."""


class ConsoleHandler(PrefectConsoleHandler):
    """Prefect's handler for the console, with one line per outage and per error that the user can fix."""

    logs_user_errors: ClassVar[bool] = True

    def handle(self, record: logging.LogRecord) -> bool:
        """Log the record unless it repeats that the server is away, or why the run failed."""
        if not _FILTER.filter(record):
            return False
        error = _user_error(record)
        if error is not None:
            if not (self.logs_user_errors and record.getMessage().startswith(_FIRST_ABOUT_ERRORS)):
                return False
            record = copy(record)  # other handlers, such as that of the server, log it with its traceback
            record.msg, record.args = "the run failed: %s", (" ".join(str(error).split()),)
            record.exc_info = record.exc_text = record.stack_info = None
        elif record.name == _FLOWS and record.getMessage().startswith(_ABOUT_PARAMETERS):
            return False  # the error that follows says it better
        return super().handle(record)


class ConsoleHandlerOfService(ConsoleHandler):
    """The handler of processes whose service prints how each run ended."""

    logs_user_errors = False


class DebugHandler(logging.StreamHandler):  # type: ignore[type-arg]
    """A handler for Prefect's internal log, with one line per outage."""

    def handle(self, record: logging.LogRecord) -> bool:
        """Log the record unless it repeats that the server is away."""
        return _FILTER.filter(record) and super().handle(record)


def silence_prints() -> None:
    """Stop what Prefect prints about an outage past its log.

    A log line that could not be sent is reported on stderr, as `logging` does unless it is told that this is no
    development; a loop that gives up prints its tracebacks, and logs that it gives up.
    """
    logging.raiseExceptions = False
    function = services.critical_service_loop
    function.__defaults__ = tuple(_ignore if default is print else default for default in function.__defaults__ or ())


def _ignore(*_: object) -> None:
    pass


def _is_about_outage(record: logging.LogRecord) -> bool:
    if record.levelno < logging.WARNING or record.name.startswith(_RUN_LOGGERS):
        return False
    message = record.getMessage()
    if any(part in message for part in _ABOUT_OUTAGES):
        return True
    errors = (httpx.TransportError, WebSocketException, ConnectionError)
    error = record.exc_info[1] if record.exc_info else None
    return record.name.startswith("prefect.") and any(isinstance(each, errors) for each in _chain(error))


def _user_error(record: logging.LogRecord) -> BaseException | None:
    """Return the error of a record of Prefect's engine, if the user can fix it: its traceback does not help."""
    error = record.exc_info[1] if record.exc_info else None
    is_engine = record.name.startswith(_RUN_LOGGERS) and record.getMessage().startswith(_ABOUT_ERRORS)
    return error if is_engine and isinstance(error, AssayError | ParameterTypeError) else None


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
