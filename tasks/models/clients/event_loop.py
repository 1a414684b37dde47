"""Run an event loop in a separate thread, for callers that are synchronous or already run in a loop."""

import asyncio
import os
from collections.abc import Coroutine
from threading import current_thread
from typing import Any, TypeVar

from tasks.runtime.threads import ThreadLimitError, start_thread

T = TypeVar("T")


class EventLoopThread:
    """A daemon thread that runs coroutines for other threads. It starts at once.

    Raises:
        ThreadLimitError: The thread cannot be started.
    """

    def __init__(self, name: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._process = os.getpid()
        self._ending: asyncio.Task[object] | None = None
        try:
            self._thread = start_thread(name, self._serve)
        except ThreadLimitError:
            self._loop.close()
            raise

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine and return its result. Interrupting the wait cancels it.

        Raises:
            RuntimeError: The loop is closed, or the caller is the thread itself or a process that was forked later.
        """
        if self._loop.is_closed() or self._is_here or self._process != os.getpid():
            work.close()
            raise RuntimeError(
                "the connection to the server is closed, or used from its own thread or a forked process"
            )
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def close(self, last: Coroutine[Any, Any, object] | None = None) -> None:
        """Run a last coroutine, stop the loop and wait for its thread. Closing twice does nothing.

        The garbage collector may call this in the thread of the loop, which then runs until the coroutine is done. In a
        process that was forked later, there is nothing to close.

        Args:
            last: Coroutine to run before the loop stops.
        """
        if self._loop.is_closed() or self._ending is not None or self._process != os.getpid():
            if last is not None:
                last.close()
        elif self._is_here:
            self._ending = self._loop.create_task(last or asyncio.sleep(0))
            self._ending.add_done_callback(lambda _task: self._loop.stop())
        else:
            try:
                self.run(last or asyncio.sleep(0))
            finally:
                self._loop.call_soon_threadsafe(self._loop.stop)
                self._thread.join()

    @property
    def _is_here(self) -> bool:
        return current_thread() is self._thread

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
        finally:
            self._loop.close()
