"""Return the result of a finished run whose Prefect server has gone: the run folder is complete without the server."""

from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar
from queue import Empty
from typing import Any, TypeVar

from prefect.context import FlowRunContext
from prefect.settings import get_current_settings, temporary_settings

from tasks.prefect_support.patience import is_unavailable

T = TypeVar("T")

_results: ContextVar[list[Any] | None] = ContextVar("results", default=None)
"""The result of the flow run that `outlive_server` waits for, once it is known."""


def outlive_server(run: Callable[[], T]) -> tuple[T, bool]:
    """Run a flow, and return its result even if its final state cannot be reported to the Prefect server.

    A flow that another flow called is not changed: a deployment's run waits for its server, and is resumed.

    Args:
        run: Function that calls the flow, whose function calls `note_result`.

    Returns:
        The result, and whether the server has gone.
    """
    if FlowRunContext.get() is not None:
        return run(), False
    results: list[T] = []
    token = _results.set(results)
    try:
        with temporary_settings():  # a copy, which `give_up_server` changes
            return run(), False
    except Exception as error:
        if not results or not is_unavailable(error):
            raise
        _drop_reports()
        return results[-1], True
    finally:
        _results.reset(token)


def note_result(result: object) -> None:
    """Note the result of the current flow run, which is complete but for its report to the Prefect server."""
    if (results := _results.get()) is not None:
        results.append(result)


def give_up_server(error: Exception) -> bool:
    """Send the further requests of a run only once, if an error means that the Prefect server has gone.

    Args:
        error: Error of a request that was repeated for as long as a run waits.

    Returns:
        Whether the run ends without the server.
    """
    if _results.get() is None or not is_unavailable(error):
        return False
    get_current_settings().client.max_retries = 0
    return True


def _drop_reports() -> None:
    """Drop log lines and events that wait to be sent, for which Prefect would delay the end of the process."""
    from prefect.events.worker import EventsWorker  # noqa: PLC0415 rarely needed
    from prefect.logging.handlers import APILogWorker  # noqa: PLC0415

    services: tuple[Any, ...] = (APILogWorker, EventsWorker)
    for service in services:
        for each in tuple(service._instances.values()):  # noqa: SLF001 Prefect has no public function
            with suppress(Empty):
                while True:
                    each._queue.get_nowait()  # noqa: SLF001
