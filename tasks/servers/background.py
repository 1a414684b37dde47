"""An event loop in a thread of its own, for callers that are not asynchronous or have a loop running already."""

import asyncio
from collections.abc import Coroutine
from threading import Thread, current_thread
from typing import Any, TypeVar

T = TypeVar("T")


class Background:
    """Runs coroutines for any thread. The thread starts at once and is a daemon: it never keeps a process alive."""

    def __init__(self, name: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._serve, name=name, daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of a coroutine. Interrupting the wait cancels it.

        Raises:
            RuntimeError: the loop is closed, or this is its own thread, which must not wait for itself.
        """
        if self._loop.is_closed() or current_thread() is self._thread:
            work.close()
            raise RuntimeError("the connection to the server is closed, or used from its own thread")
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def close(self) -> None:
        """Stops the loop and waits for its thread. Closing twice does nothing."""
        if self._loop.is_closed():
            return
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()
