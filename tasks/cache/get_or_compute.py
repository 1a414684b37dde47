"""Takes from the store what is there, has the rest computed, and keeps it while it comes."""

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

from tasks.cache.answer_cache import AnswerCache
from tasks.cache.codec import Codec
from tasks.cache.writer import CacheWriter
from tasks.runtime import cancellation as interruption

T = TypeVar("T")
Keep: TypeAlias = Callable[[int, T], None]
"""Called with a position and its value as soon as that is there, from any thread."""

Compute: TypeAlias = Callable[[Sequence[int], Keep[T]], Sequence[T]]
"""The values of some positions, in their order. May tell of values before: by their place among these positions."""

_SHORTEST_POLL, _LONGEST_POLL = 0.05, 0.2
_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CachedComputation(Generic[T]):
    """One way to values of a kind: from the store, or computed once by whoever comes first.

    Args:
        store: where values are kept.
        codec: what kind they are.
        compute: has the missing ones computed.
        refresh: compute all, and replace what is there.
    """

    store: AnswerCache
    codec: Codec[T]
    compute: Compute[T]
    refresh: bool = False

    def values(self, keys: Sequence[bytes], keep: Keep[T] | None = None) -> list[T]:
        """The values of keys, in their order; equal keys are computed once.

        Args:
            keys: digests of all that determines each value.
            keep: hears of each value as soon as it is there.

        Raises:
            asyncio.CancelledError: the run was interrupted; what was there by then is kept.
        """
        results: _Results[T] = _Results(keys, keep)
        if not self.refresh:
            results.take(self.store.find(list(results.positions), self.codec.decode))
        while missing := results.missing():
            interruption.current_cancellation().check()
            self._round(missing, results)
            if missing := results.missing():
                results.take(self.store.find(self._let_go(missing), self.codec.decode))
        return [results.values[key] for key in keys]

    def _round(self, missing: Sequence[bytes], results: "_Results[T]") -> None:
        """Computes those of the missing values that nobody else is at work on."""
        with CacheWriter(self.store, self.codec.step, replace=self.refresh) as keeper:
            if self.refresh:
                mine = list(missing)
            else:
                won = keeper.claim(missing)
                # A value may have been kept, and its claim ended, since it was looked for.
                results.take(self.store.find(list(won), self.codec.decode))
                mine = [key for key in missing if key in won and key not in results.values]
            if not mine:
                return

            def kept(place: int, value: T) -> None:
                key = mine[place]
                if key not in results.values:
                    results.take({key: value})
                    self._put(keeper, key, value)

            values = self.compute([results.positions[key][0] for key in mine], kept)
            for place, value in enumerate(values):
                kept(place, value)

    def _put(self, keeper: CacheWriter, key: bytes, value: T) -> None:
        try:
            content = self.codec.encode(value)
        except (TypeError, ValueError) as error:
            _logger.warning("a value of the kind %s can not be kept: %s", self.codec.step, error)
            return
        if content is not None:
            keeper.put(key, content)

    def _let_go(self, keys: Sequence[bytes]) -> list[bytes]:
        """Waits until somebody is done with some of the values, one way or another, and returns their keys."""
        pause = _SHORTEST_POLL
        while not (free := set(keys) - self.store.leases.claimed(keys)):
            interruption.current_cancellation().check()
            time.sleep(pause)
            pause = min(_LONGEST_POLL, 1.5 * pause)
        return list(free)


class _Results(Generic[T]):
    """The values that are there.

    Args:
        keys: of the values wanted, position by position.
        keep: hears of each value.
    """

    def __init__(self, keys: Sequence[bytes], keep: Keep[T] | None) -> None:
        self.positions: dict[bytes, list[int]] = {}
        for position, key in enumerate(keys):
            self.positions.setdefault(key, []).append(position)
        self.values: dict[bytes, T] = {}
        self._keep = keep

    def missing(self) -> list[bytes]:
        return [key for key in self.positions if key not in self.values]

    def take(self, values: dict[bytes, T]) -> None:
        for key, value in values.items():
            self.values[key] = value
            if self._keep is not None:
                for position in self.positions[key]:
                    self._keep(position, value)
