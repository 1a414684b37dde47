"""Provide a mapping that allows only declared entries to be read."""

from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

from metric_core.errors import MetricError

K = TypeVar("K")
V = TypeVar("V")


class Guarded(Mapping[K, V]):
    """A mapping without its undeclared entries; a lookup of one raises MetricError.

    Args:
        require: Function that raises MetricError for the key of an undeclared entry.
    """

    def __init__(self, whole: Mapping[K, V], require: Callable[[K], None]) -> None:
        self._whole = whole
        self._require = require

    def __getitem__(self, key: K) -> V:
        self._require(key)
        return self._whole[key]

    def __iter__(self) -> Iterator[K]:
        return filter(self._is_declared, self._whole)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __bool__(self) -> bool:
        """Return whether there are entries at all; without, `entries or {}` would read undeclared ones as missing."""
        return bool(self._whole)

    def _is_declared(self, key: K) -> bool:
        try:
            self._require(key)
        except MetricError:
            return False
        return True
