"""Return the result of a run whose Prefect server has gone: its files are complete without the server."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from queue import Empty
from typing import Any, TypeVar

from prefect.client.schemas import State
from prefect.context import FlowRunContext
from prefect.settings import get_current_settings

from tasks.prefect_support.flow_ends import are_collected, collect_ends
from tasks.prefect_support.patience import is_unavailable

T = TypeVar("T")

SERVER_GONE = (
    "the Prefect server is gone: it ended before the run did. The run folder is complete; only the server does not "
    "know that the run has finished, and has no artifacts of it"
)


def outlive_server(run: Callable[[], T]) -> tuple[T, bool]:
    """Run a flow that people start, and return its result even if it cannot be reported to the Prefect server.

    The flow may call others in the same way. The flows that a deployment's run calls are not changed: that run waits
    for its server, and is resumed.

    Args:
        run: Function that calls the flow, whose function `crash_without_server` wraps.

    Returns:
        The result, and whether the server has gone.

    Raises:
        Exception: What the function of the flow raised.
    """
    is_nested = are_collected()
    if FlowRunContext.get() is not None and not is_nested:
        return run(), False
    with ExitStack() as stack:
        if not is_nested:
            stack.enter_context(_keep_retries())
        ends = stack.enter_context(collect_ends())
        try:
            return run(), False
        except Exception as error:
            if not ends or not is_unavailable(error):
                raise
        _give_up()
        _drop_reports()
    end = ends[-1].result(raise_on_failure=False) if isinstance(ends[-1], State) else ends[-1]
    if isinstance(end, BaseException):
        end.add_note(SERVER_GONE)
        raise end
    result: T = end
    return result, True


def give_up_server(error: Exception) -> bool:
    """Send the further requests of a run only once, if an error means that the Prefect server has gone.

    Args:
        error: Error of a request that was repeated for as long as a run waits.

    Returns:
        Whether the run ends without the server.
    """
    if not are_collected() or not is_unavailable(error):
        return False
    _give_up()
    return True


@contextmanager
def _keep_retries() -> Iterator[None]:
    """Restore the number of retries that `give_up_server` changes; a copy of all settings takes 25 ms per run."""
    client = get_current_settings().client
    retries = client.max_retries
    try:
        yield
    finally:
        client.max_retries = retries


def _give_up() -> None:
    get_current_settings().client.max_retries = 0


def _drop_reports() -> None:
    """Drop log lines and events that wait to be sent, for which Prefect would delay the end of the process."""
    from prefect.events.worker import EventsWorker  # noqa: PLC0415 rarely needed
    from prefect.logging.handlers import APILogWorker  # noqa: PLC0415

    services: tuple[Any, ...] = (APILogWorker, EventsWorker)
    for service in services:
        # Prefect has no public function that drops them. Without these parts the process ends a little later.
        with suppress(AttributeError):
            for each in tuple(service._instances.values()):  # noqa: SLF001
                with suppress(Empty):
                    while True:
                        each._queue.get_nowait()  # noqa: SLF001
