"""Locks for stage tables: if several runs on a machine need one table, one computes it and the others wait.

Prefect's file locks are files that a killed process leaves behind, so that the next process waits forever. These are
locks of the operating system, which are released when the process that holds them ends.
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
        folder: Folder of the lock files, created when the first lock is taken; by default in the ASSAY_HOME of the
            process that takes the lock. The file names are the first characters of the keys, which bounds their
            number.
    """

    _held: ClassVar[dict[Path, _Held]] = {}
    _held_lock: ClassVar[Lock] = Lock()

    def __init__(self, folder: Path | None = None) -> None:
        self._configured_folder = folder

    @property
    def _folder(self) -> Path:
        return assay_home() / "locks" if self._configured_folder is None else self._configured_folder

    def acquire_lock(
        self, key: str, holder: str, acquire_timeout: float | None = None, hold_timeout: float | None = None
    ) -> bool:
        """Wait for the lock, and return whether it was acquired in time. The end of the process releases it."""
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
        with self._held_lock:
            self._held[path] = _Held(holder, lock)
        return True

    async def aacquire_lock(
        self, key: str, holder: str, acquire_timeout: float | None = None, hold_timeout: float | None = None
    ) -> bool:
        """Call `acquire_lock` in a thread."""
        return await asyncio.to_thread(self.acquire_lock, key, holder, acquire_timeout, hold_timeout)

    def release_lock(self, key: str, holder: str) -> None:
        """Release the lock.

        Raises:
            ValueError: The holder does not hold the lock.
        """
        path = self._path(key)
        with self._held_lock:
            held = self._held.get(path)
            if held is None or held.holder != holder:
                raise ValueError(f"{holder} does not hold the lock for {key}")
            del self._held[path]
        held.lock.release()

    def is_locked(self, key: str) -> bool:
        """Return whether any process holds the lock."""
        if self._path(key) in self._held:
            return True
        return not self.wait_for_lock(key, timeout=0)

    def is_lock_holder(self, key: str, holder: str) -> bool:
        """Return whether this holder, in this process, holds the lock."""
        held = self._held.get(self._path(key))
        return held is not None and held.holder == holder

    def wait_for_lock(self, key: str, timeout: float | None = None) -> bool:
        """Wait until the lock is free, and return whether it became free in time."""
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
        """Call `wait_for_lock` in a thread."""
        return await asyncio.to_thread(self.wait_for_lock, key, timeout)

    def _path(self, key: str) -> Path:
        return self._folder / f"{key[:3]}.lock"
