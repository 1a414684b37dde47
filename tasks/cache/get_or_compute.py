"""Return cached values, compute the missing ones, and cache each as soon as it is computed."""

import logging
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Generic, Self, TypeAlias, TypeVar

from tasks.cache.answer_cache import AnswerCache
from tasks.cache.codec import Codec
from tasks.cache.write_queue import QueuedValue
from tasks.runtime import cancellation

T = TypeVar("T")
OnValue: TypeAlias = Callable[[int, T], None]
"""Called with a position and its value as soon as the value is available, from any thread."""

Compute: TypeAlias = Callable[[Sequence[int], OnValue[T]], Sequence[T]]
"""Compute the values of some positions, in their order; may report each value early, by its index among these."""

_SHORTEST_POLL, _LONGEST_POLL = 0.05, 0.2
_logger = logging.getLogger(__name__)


class CacheWriter:
    """A writer of the answers that one call computes. Use it in a `with` block; at its end all answers are written.

    Args:
        replace: If true, replace cached answers.
    """

    def __init__(self, cache: AnswerCache, step: str, *, replace: bool = False) -> None:
        self._cache = cache
        self._step = step
        self._replace = replace
        self._owner = uuid.uuid4().hex
        self._held: set[bytes] = set()

    def __enter__(self) -> Self:
        self._cache.queue.open(self._owner, self._cache.write_queued, self._cache.leases.extend)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        is_last = self._cache.queue.close(self._owner)
        if self._held or is_last:
            self._cache.leases.release(self._owner)

    def claim(self, keys: Sequence[bytes]) -> set[bytes]:
        """Return the keys of the answers to compute; another process is computing the others."""
        won = self._cache.leases.claim(keys, self._owner)
        self._held |= won
        return won

    def put(self, key: bytes, value: bytes) -> None:
        """Queue the bytes of an answer; wait for the database if it is behind."""
        self._cache.queue.put(QueuedValue(self._step, key, value, self._owner, self._replace))
        self._held.discard(key)


@dataclass(frozen=True, slots=True)
class CachedComputation(Generic[T]):
    """A computation of values of one kind with a cache: overlapping runs compute each value once.

    Args:
        refresh: If true, compute all values and replace cached ones.
    """

    cache: AnswerCache
    codec: Codec[T]
    compute: Compute[T]
    refresh: bool = False

    def values(self, keys: Sequence[bytes], on_value: OnValue[T] | None = None) -> list[T]:
        """Return the values of keys, in their order; compute equal keys once.

        Args:
            keys: Digests of all that determines each value.
            on_value: Called with each value as soon as it is available.

        Raises:
            asyncio.CancelledError: The run was cancelled; the values computed by then are cached.
        """
        results: _Results[T] = _Results(keys, on_value)
        if not self.refresh:
            results.add(self.cache.find(list(results.positions), self.codec.decode))
        while missing := results.missing():
            cancellation.current_cancellation().check()
            self._compute_unclaimed(missing, results)
            if missing := results.missing():
                results.add(self.cache.find(self._wait_for_release(missing), self.codec.decode))
        return [results.values[key] for key in keys]

    def _compute_unclaimed(self, missing: Sequence[bytes], results: "_Results[T]") -> None:
        """Compute the missing values that no other process is computing."""
        with CacheWriter(self.cache, self.codec.step, replace=self.refresh) as writer:
            if self.refresh:
                mine = list(missing)
            else:
                won = writer.claim(missing)
                # A value may have been cached, and its lease released, since it was looked up.
                results.add(self.cache.find(list(won), self.codec.decode))
                mine = [key for key in missing if key in won and key not in results.values]
            if not mine:
                return

            def on_value(index: int, value: T) -> None:
                key = mine[index]
                if key not in results.values:
                    results.add({key: value})
                    self._write(writer, key, value)

            values = self.compute([results.positions[key][0] for key in mine], on_value)
            for index, value in enumerate(values):
                on_value(index, value)

    def _write(self, writer: CacheWriter, key: bytes, value: T) -> None:
        try:
            content = self.codec.encode(value)
        except (TypeError, ValueError) as error:
            _logger.warning("a value of the kind %s cannot be cached: %s", self.codec.step, error)
            return
        if content is not None:
            writer.put(key, content)

    def _wait_for_release(self, keys: Sequence[bytes]) -> list[bytes]:
        """Wait until the leases on some of the keys have ended, and return these keys."""
        pause = _SHORTEST_POLL
        while not (free := set(keys) - self.cache.leases.find_claimed(keys)):
            cancellation.current_cancellation().check()
            time.sleep(pause)
            pause = min(_LONGEST_POLL, 1.5 * pause)
        return list(free)


class _Results(Generic[T]):
    """The values available so far.

    Args:
        keys: Keys of the requested values, position by position.
    """

    def __init__(self, keys: Sequence[bytes], on_value: OnValue[T] | None) -> None:
        self.positions: dict[bytes, list[int]] = {}
        for position, key in enumerate(keys):
            self.positions.setdefault(key, []).append(position)
        self.values: dict[bytes, T] = {}
        self._on_value = on_value

    def missing(self) -> list[bytes]:
        return [key for key in self.positions if key not in self.values]

    def add(self, values: dict[bytes, T]) -> None:
        for key, value in values.items():
            self.values[key] = value
            if self._on_value is not None:
                for position in self.positions[key]:
                    self._on_value(position, value)
