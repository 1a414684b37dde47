"""Wait for a Prefect server that does not answer, such as one that restarts in the middle of a run.

Prefect's own clients retry too, but one that has not connected before gives up at once, and each slot of a concurrency
limit is given back by a new client. A run that cannot go on without the server ends as Crashed, and not as Failed:
nothing is wrong with it, and a deployment resumes it with all that it had finished.
"""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from functools import partial, wraps
from typing import Any, ParamSpec, TypeVar, cast

import httpx
from prefect.context import FlowRunContext
from prefect.settings import get_current_settings
from prefect.states import Crashed

from tasks.prefect_support.flow_ends import are_collected, note_end
from tasks.prefect_support.own_runs import record_process
from tasks.runtime.retry import Backoff, retry

P = ParamSpec("P")
T = TypeVar("T")

LONGEST_WAIT = 90.0
"""Seconds for which a run waits at most for the Prefect server.

After 100 seconds without a heartbeat the server itself takes a run for crashed, and resumes it; a process that waited
longer would then run beside its successor.
"""

_PAUSE = Backoff(0.5, 10.0, jitter=0.5)
_BUSY = frozenset((429, 502, 503, 504))

_logger = logging.getLogger(__name__)


def is_unavailable(error: BaseException) -> bool:
    """Return whether an error means that the Prefect server is away for now, and not that it refuses the request.

    Errors of other servers, such as a judge or a store, do not count.
    """
    url = get_current_settings().api.url
    return url is not None and any(_is_unavailable(each, url) for each in _causes(error))


def unavailable_timeout() -> float:
    """Return the seconds for which a run waits for the Prefect server: as long as Prefect's client retries a request.

    That is about a minute by default, and less on the local server; `PREFECT_CLIENT_MAX_RETRIES` sets it.

    >>> from prefect.settings import PREFECT_CLIENT_MAX_RETRIES, temporary_settings
    >>> with temporary_settings({PREFECT_CLIENT_MAX_RETRIES: 5}):
    ...     unavailable_timeout()
    62.0
    """
    return min(LONGEST_WAIT, 2.0 ** (get_current_settings().client.max_retries + 1) - 2)


def wait_for_server(request: Callable[[], T], timeout: float | None = None) -> T:
    """Send a request to the Prefect server, again and again while the server does not answer.

    The request may reach the server more than once, so it must be one that can be repeated.

    Args:
        timeout: Longest wait in seconds; by default `unavailable_timeout()`.

    Returns:
        What the function returned.

    Raises:
        Exception: The error of the last attempt.
    """
    deadline = time.monotonic() + (unavailable_timeout() if timeout is None else timeout)

    def pause(error: Exception, attempt: int) -> float | None:
        seconds = _PAUSE.seconds(attempt)
        if not is_unavailable(error) or time.monotonic() + seconds > deadline:
            return None
        if attempt == 1:
            _logger.warning("the Prefect server does not answer (%s); waiting for it", type(error).__name__)
        return seconds

    return retry(request, pause)


def crash_without_server(function: Callable[P, T]) -> Callable[P, T]:
    """Wrap the function of a flow, so that its run ends as Crashed if it loses its process or its Prefect server.

    A deployment's run ends as Crashed if the server has gone, and is resumed. The process of another run is recorded,
    so that a later command can detect that it was killed; `outlive_server` returns its result without the server.

    Args:
        function: Function of the flow.
    """

    @wraps(function)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> T:
        context = FlowRunContext.get()
        run = None if context is None else context.flow_run
        if run is None:
            return function(*args, **kwargs)
        if run.deployment_id is None:
            # The runs that a deployment's run calls end with it, wherever it is resumed.
            with record_process(run.id) if run.parent_task_run_id is None or are_collected() else nullcontext():
                return _note_end(partial(function, *args, **kwargs))
        try:
            return function(*args, **kwargs)
        except Exception as error:
            if not is_unavailable(error):
                raise
            message = (
                f"the Prefect server did not answer for {unavailable_timeout():g} s ({type(error).__name__}); stage "
                "tables and answers are cached, and the run is resumed"
            )
            _logger.error(message)  # noqa: TRY400 the traceback says no more
            crashed: Any = Crashed(message=message)  # a state ends the flow run, whatever its function returns
            return cast("T", crashed)

    return wrapped


def _note_end(function: Callable[[], T]) -> T:
    try:
        result = function()
    except Exception as error:
        if not is_unavailable(error):
            note_end(error)
        raise
    note_end(result)
    return result


def _is_unavailable(error: BaseException, url: str) -> bool:
    if isinstance(error, httpx.HTTPStatusError):
        is_away = error.response.status_code in _BUSY
    else:
        is_away = isinstance(error, httpx.TransportError) and not isinstance(error, httpx.UnsupportedProtocol)
    try:
        return is_away and str(cast("httpx.HTTPError", error).request.url).startswith(url.rstrip("/"))
    except RuntimeError:  # the error belongs to no request
        return False


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__
