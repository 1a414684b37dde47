"""Multiply matrices on one thread: on several, small ones cost twice the CPU time."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any


class _Limit:
    """The limit of this process, which lasts as long as any thread wants it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._controller: Any = None
        self._limiter: Any = None
        self._users = 0

    def enter(self) -> None:
        with self._lock:
            self._users += 1
            if self._users == 1:
                if self._controller is None:
                    from threadpoolctl import ThreadpoolController  # noqa: PLC0415 loaded with the models

                    self._controller = ThreadpoolController()  # looks through all loaded libraries
                self._limiter = self._controller.limit(limits=1, user_api="blas")

    def leave(self) -> None:
        with self._lock:
            self._users -= 1
            if self._users == 0:
                self._limiter.restore_original_limits()


_limit = _Limit()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Multiply matrices of numpy on the calling thread while the block runs, in all threads of the process."""
    _limit.enter()
    try:
        yield
    finally:
        _limit.leave()
