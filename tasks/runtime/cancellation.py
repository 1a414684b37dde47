"""The early end of a run: tells the stages, which compute in threads of their own, that nobody waits for them.

Prefect lets a stage that has begun go on to its end, which with a slow judge takes minutes. What stages have got is
kept answer by answer, so they lose nothing when they stop between two answers, or wait no longer for a server.
"""

from asyncio import CancelledError
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock


class Cancellation:
    """Whether a run is interrupted, and who wants to hear of it. May be used from several threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._listeners: list[Callable[[], object]] = []
        self._happened = False

    def happen(self) -> None:
        """Interrupts the run: whoever listens is called, and whoever listens from now on is stopped."""
        with self._lock:
            self._happened = True
            listeners = tuple(self._listeners)
        for listener in listeners:
            listener()

    def check(self) -> None:
        """Stops the caller if the run is interrupted.

        Raises:
            CancelledError: it is. Prefect takes that for a stage that has crashed, which is not tried again.
        """
        if self._happened:
            raise CancelledError("the run was interrupted")

    @contextmanager
    def heard_by(self, listener: Callable[[], object]) -> Iterator[None]:
        """Calls the listener, from another thread, if the run is interrupted while the block lasts.

        Raises:
            CancelledError: it is interrupted already.
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
_CURRENT: ContextVar[Cancellation] = ContextVar("interruption")


def current_cancellation() -> Cancellation:
    """The interruption of the run that this thread works for; one that never happens where there is none."""
    return _CURRENT.get(_NEVER)


@contextmanager
def cancellable() -> Iterator[Cancellation]:
    """Has the work of the block, in the threads that inherit its context too, stop when the block is interrupted.

    An error is no interruption: what the other stages are at then is still wanted by the next run.
    """
    interruption = Cancellation()
    token = _CURRENT.set(interruption)
    try:
        yield interruption
    except Exception:
        raise
    except BaseException:
        interruption.happen()
        raise
    finally:
        _CURRENT.reset(token)
