"""Locks for stage tables: of several runs on a machine that want one table, one computes it and the others wait.

Prefect's own file locks are files that a killed process leaves behind, and whoever wants them next waits for ever.
These are locks of the operating system, which end with the process that holds them.
"""

import asyncio
import time
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import ClassVar

from filelock import FileLock, Timeout
from prefect.locking.protocol import LockManager

from tasks.runtime.home import assay_home

_POLL_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class _Held:
    holder: str
    lock: FileLock


class ProcessLocks(LockManager):
    """Locks by key, shared by the processes and threads of a machine.

    Args:
        folder: where the lock files are, made when the first lock is taken; by default in ASSAY_HOME, of whichever
            process takes the lock. Their names are the first characters of the keys, so that there is a bounded
            number of them.
    """

    _held: ClassVar[dict[Path, _Held]] = {}
    _guard: ClassVar[Lock] = Lock()

    def __init__(self, folder: Path | None = None) -> None:
        self._named = folder

    @property
    def _folder(self) -> Path:
        return assay_home() / "locks" if self._named is None else self._named

    def acquire_lock(
        self, key: str, holder: str, acquire_timeout: float | None = None, hold_timeout: float | None = None
    ) -> bool:
        """Waits for the lock; False if it was not to be had in time. It is held until released, or the process ends."""
        del hold_timeout
        path = self._path(key)
        if self.is_lock_holder(key, holder):
            return True
        self._folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(path, thread_local=False)
        try:
            lock.acquire(timeout=-1 if acquire_timeout is None else acquire_timeout, poll_interval=_POLL_SECONDS)
        except Timeout:
            return False
        with self._guard:
            self._held[path] = _Held(holder, lock)
        return True

    async def aacquire_lock(
        self, key: str, holder: str, acquire_timeout: float | None = None, hold_timeout: float | None = None
    ) -> bool:
        """As `acquire_lock`, in a thread."""
        return await asyncio.to_thread(self.acquire_lock, key, holder, acquire_timeout, hold_timeout)

    def release_lock(self, key: str, holder: str) -> None:
        """Gives the lock back.

        Raises:
            ValueError: somebody else holds it, or nobody.
        """
        path = self._path(key)
        with self._guard:
            held = self._held.get(path)
            if held is None or held.holder != holder:
                raise ValueError(f"{holder} does not hold the lock for {key}")
            del self._held[path]
        held.lock.release()

    def is_locked(self, key: str) -> bool:
        """Whether anybody holds the lock, in any process."""
        if self._path(key) in self._held:
            return True
        return not self.wait_for_lock(key, timeout=0)

    def is_lock_holder(self, key: str, holder: str) -> bool:
        """Whether this holder, of this process, holds the lock."""
        held = self._held.get(self._path(key))
        return held is not None and held.holder == holder

    def wait_for_lock(self, key: str, timeout: float | None = None) -> bool:
        """Waits until nobody holds the lock; False if that took too long."""
        if not self._folder.exists():
            return True
        start = time.monotonic()
        while self._path(key) in self._held:
            if timeout is not None and time.monotonic() - start >= timeout:
                return False
            time.sleep(_POLL_SECONDS)
        try:
            with FileLock(self._path(key), thread_local=False).acquire(
                timeout=-1 if timeout is None else timeout, poll_interval=_POLL_SECONDS
            ):
                return True
        except Timeout:
            return False

    async def await_for_lock(self, key: str, timeout: float | None = None) -> bool:
        """As `wait_for_lock`, in a thread."""
        return await asyncio.to_thread(self.wait_for_lock, key, timeout)

    def _path(self, key: str) -> Path:
        return self._folder / f"{key[:3]}.lock"
