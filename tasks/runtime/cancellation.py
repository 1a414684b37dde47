"""Cancel a run: signal its stages, which compute in separate threads, to stop.

Prefect lets a stage that has started continue to its end, which takes minutes with a slow judge. Answers are cached one
by one, so a stage loses nothing when it stops between two answers or stops waiting for a server.
"""

from asyncio import CancelledError
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock


class Cancellation:
    """The state of a run, cancelled or not, with its listeners. Several threads may use it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._listeners: list[Callable[[], object]] = []
        self._is_cancelled = False

    def cancel(self) -> None:
        """Cancel the run and call its listeners; later listeners get a CancelledError."""
        with self._lock:
            self._is_cancelled = True
            listeners = tuple(self._listeners)
        for listener in listeners:
            listener()

    def check(self) -> None:
        """Stop the caller if the run is cancelled.

        Raises:
            CancelledError: The run is cancelled. Prefect regards the stage as crashed and does not retry it.
        """
        if self._is_cancelled:
            raise CancelledError("the run was cancelled")

    @contextmanager
    def on_cancel(self, listener: Callable[[], object]) -> Iterator[None]:
        """Call a listener, from another thread, if the run is cancelled during the block.

        Raises:
            CancelledError: The run is cancelled already.
        """
        with self._lock:
            self.check()
            self._listeners.append(listener)
        try:
            yield
        finally:
            with self._lock:
                self._listeners.remove(listener)


_NEVER = Cancellation()
_CURRENT: ContextVar[Cancellation] = ContextVar("cancellation")


def current_cancellation() -> Cancellation:
    """Return the cancellation of the run that this thread works for; outside a run, one that is never cancelled."""
    return _CURRENT.get(_NEVER)


@contextmanager
def cancellable() -> Iterator[Cancellation]:
    """Stop the work of a block, including threads that inherit its context, when the block is interrupted.

    An error does not cancel the other stages, because the next run can use their answers.
    """
    cancellation = Cancellation()
    token = _CURRENT.set(cancellation)
    try:
        yield cancellation
    except Exception:
        raise
    except BaseException:
        cancellation.cancel()
        raise
    finally:
        _CURRENT.reset(token)
