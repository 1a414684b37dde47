"""Find many keys among the keys of all segments of a recipe."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tasks.rows.mapped_arrays import MappedArrays
from tasks.rows.places import Places
from tasks.rows.row_digests import DIGEST_BYTES, Digests

MOST_KEYS = 1 << 20
"""Number of keys in an array: sorting takes three times its memory."""


@dataclass(frozen=True, eq=False, slots=True)
class _Level:
    """Sorted keys and their locations.

    Args:
        order: First halves of the keys, sorted, each once.
    """

    order: NDArray[np.uint64]
    keys: Digests
    placed: Places


class KeyIndex:
    """A mapping from keys to locations; the last location that was added for a key counts.

    The keys are in sorted arrays, large ones in files. An array is merged with the one before it when it has grown to
    half of its length, up to a limit, so that there are few arrays and adding keys stays cheap.

    Args:
        arrays: Files of large arrays.

    >>> index = KeyIndex(MappedArrays())
    >>> index.find(np.zeros(2, "V16")).missing.tolist()
    [True, True]
    """

    def __init__(self, arrays: MappedArrays) -> None:
        self._levels: list[_Level] = []
        self._arrays = arrays

    def add(self, keys: Digests, placed: Places) -> None:
        """Add keys.

        Args:
            keys: The keys, not many more than `MOST_KEYS`; of equal ones, the last counts.
        """
        level = self._sort(keys, placed)
        while self._levels and 2 * len(level.keys) >= len(self._levels[-1].keys):
            if len(level.keys) + len(self._levels[-1].keys) > MOST_KEYS:
                break
            earlier = self._levels.pop()
            both = Places.concat([earlier.placed, level.placed])
            level = self._sort(np.concatenate([earlier.keys, level.keys]), both)
        self._levels.append(level)

    def add_all(self, parts: Iterable[tuple[Digests, Places]]) -> None:
        """Add many keys, some at a time: see `add`."""
        waiting: list[tuple[Digests, Places]] = []
        size = 0
        for part in parts:
            waiting.append(part)
            size += len(part[0])
            if size >= MOST_KEYS:
                self._add_joined(waiting)
                size = 0
        self._add_joined(waiting)

    def find(self, keys: Digests) -> Places:
        """Return the location of each key."""
        placed = Places.nothing(len(keys))
        halves, open_samples = _halves(keys), np.arange(len(keys))
        for level in reversed(self._levels):
            if not len(open_samples) or not len(level.keys):
                continue
            positions = np.searchsorted(level.order, halves[open_samples])
            positions = np.minimum(positions, len(level.order) - 1)
            is_found = level.keys[positions] == keys[open_samples]
            if is_found.any():
                placed = placed.fill(open_samples[is_found], level.placed.select(positions[is_found]))
                open_samples = open_samples[~is_found]
        return placed

    def _add_joined(self, waiting: list[tuple[Digests, Places]]) -> None:
        """Add all keys that wait, and forget them: they are large, and sorting takes as much again."""
        if waiting:
            keys, placed = (np.concatenate([keys for keys, _ in waiting]), Places.concat([each for _, each in waiting]))
            waiting.clear()
            self.add(keys, placed)

    def _sort(self, keys: Digests, placed: Places) -> _Level:
        halves = _halves(keys)
        order = np.argsort(halves, kind="stable")
        # Different keys with equal first halves are never expected; the earlier one would be computed again.
        is_last = np.append(halves[order][1:] != halves[order][:-1], True)[: len(order)]
        kept = order[is_last]
        columns = (placed.segment, placed.start, placed.count, placed.digests)
        arrays = self._arrays.move([column[kept] for column in (halves, keys, *columns)])
        return _Level(arrays[0], arrays[1], Places(placed.segments, *arrays[2:]))


def _halves(keys: Digests) -> NDArray[np.uint64]:
    return np.ascontiguousarray(keys).view(np.uint64).reshape(-1, DIGEST_BYTES // 8)[:, 0]
