"""Locate the results of rows without reading them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tasks.rows.mapped_arrays import MappedArrays
from tasks.rows.row_digests import DIGEST, Digests

_UNKNOWN = -1
_ABSENT = -2


@dataclass(frozen=True, slots=True)
class Segment:
    """A Parquet file of one row group that holds rows of a stage, sorted by sample.

    Args:
        path: Path or fsspec URL of the file.
    """

    path: str


@dataclass(frozen=True, eq=False)
class Places:
    """The locations of the results of samples: small, and can be sent to another process.

    Args:
        segment: Position of each sample's segment in `segments`; if its result is missing, -1, or -2 once it has been
            looked up.
        start: Position of the first row of each sample in its segment.
        count: Number of rows of each sample, which may be 0.
        digests: Digest of the rows of each sample; zeros if its result is missing.
    """

    segments: tuple[Segment, ...]
    segment: NDArray[np.int32]
    start: NDArray[np.int32]
    count: NDArray[np.int32]
    digests: Digests

    def __len__(self) -> int:
        return len(self.segment)

    @property
    def missing(self) -> NDArray[np.bool_]:
        """Whether the result of each sample is missing."""
        are_missing: NDArray[np.bool_] = self.segment < 0
        return are_missing

    @property
    def unknown(self) -> NDArray[np.bool_]:
        """Whether the result of each sample is missing and has not been looked up."""
        are_unknown: NDArray[np.bool_] = self.segment == _UNKNOWN
        return are_unknown

    @staticmethod
    def nothing(samples: int) -> "Places":
        """Return the locations of results that are all missing.

        >>> Places.nothing(2).missing.tolist()
        [True, True]
        """
        start, count = np.zeros((2, samples), np.int32)
        return Places((), np.full(samples, _UNKNOWN, np.int32), start, count, np.zeros(samples, DIGEST))

    @staticmethod
    def concat(parts: Sequence["Places"]) -> "Places":
        """Return the locations of the samples of all parts, one part after the other."""
        if not parts:
            return Places.nothing(0)
        segments, positions = _join(part.segments for part in parts)
        renumbered = [_renumber(part.segment, found) for part, found in zip(parts, positions, strict=True)]
        return Places(
            segments,
            np.concatenate(renumbered),
            np.concatenate([part.start for part in parts]),
            np.concatenate([part.count for part in parts]),
            np.concatenate([part.digests for part in parts]),
        )

    @staticmethod
    def move(parts: Sequence["Places"], arrays: MappedArrays) -> list["Places"]:
        """Return the same locations in mapped arrays, which take little memory."""
        columns = [array for part in parts for array in (part.segment, part.start, part.count, part.digests)]
        moved = iter(arrays.move(columns))
        return [Places(part.segments, next(moved), next(moved), next(moved), next(moved)) for part in parts]

    def looked_up(self) -> "Places":
        """Return the locations with the missing results marked as looked up.

        >>> Places.nothing(2).looked_up().unknown.tolist()
        [False, False]
        """
        return replace(self, segment=np.where(self.missing, np.int32(_ABSENT), self.segment))

    def cut(self, start: int, end: int) -> "Places":
        """Return the locations of consecutive samples, and only the segments that hold them."""
        return self.select(np.arange(start, end))

    def select(self, samples: "NDArray[np.integer] | NDArray[np.bool_]") -> "Places":
        """Return the locations of some samples, and only the segments that hold them.

        Args:
            samples: Their positions, in the order of the result, or a mask.
        """
        segment = self.segment[samples]
        used = np.unique(segment[segment >= 0])
        positions = np.zeros(len(self.segments), np.int32)
        positions[used] = np.arange(len(used))
        return Places(
            tuple(self.segments[number] for number in used.tolist()),
            _renumber(segment, positions),
            self.start[samples],
            self.count[samples],
            self.digests[samples],
        )

    def fill(self, samples: "NDArray[np.integer] | NDArray[np.bool_]", other: "Places") -> "Places":
        """Return a copy in which some samples have other locations.

        Args:
            samples: Their positions, or a mask.
            other: Their new locations, in this order.
        """
        copied = Places(self.segments, self.segment.copy(), self.start.copy(), self.count.copy(), self.digests.copy())
        return copied.put(samples, other).select(np.arange(len(self)))

    def put(self, samples: "NDArray[np.integer] | NDArray[np.bool_]", other: "Places") -> "Places":
        """Return the same locations, in the same arrays, after some samples in them got other locations.

        Args:
            samples: Their positions, or a mask.
            other: Their new locations, in this order.
        """
        segments, (_, theirs) = _join((self.segments, other.segments))
        self.segment[samples] = _renumber(other.segment, theirs)
        self.start[samples], self.count[samples], self.digests[samples] = other.start, other.count, other.digests
        return replace(self, segments=segments)


def _join(several: "Iterable[tuple[Segment, ...]]") -> tuple[tuple[Segment, ...], list[NDArray[np.int32]]]:
    """Return all segments, each once, and their positions among them."""
    numbers: dict[Segment, int] = {}
    positions = [
        np.array([numbers.setdefault(segment, len(numbers)) for segment in segments], np.int32) for segments in several
    ]
    return tuple(numbers), positions


def _renumber(segment: NDArray[np.int32], positions: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return a copy with the positions of segments among others; missing ones stay missing."""
    if not len(positions):
        return segment.copy()
    renumbered: NDArray[np.int32] = np.where(segment < 0, segment, positions[np.maximum(segment, 0)])
    return renumbered
