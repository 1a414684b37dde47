"""Read the results of many samples in the order of the samples, however they are scattered over segments.

Shards are read in batches of limited size. A segment is decoded once, when the first batch needs it; its rows for later
batches wait in temporary files. So any order of the rows costs the same, beyond one copy to the disk of what is not
needed at once.
"""

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from itertools import pairwise
from tempfile import TemporaryFile
from typing import IO, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tasks.rows.merge import number_ranges, take_rows
from tasks.rows.places import Places, Segment
from tasks.rows.temporary_files import name_folder

BATCH_BYTES = 16 << 20
"""Size of the decoded rows of a batch, about; one shard at least."""

MOST_BATCHES = 256
"""Number of batches, and so of temporary files; the batches of a very large table are larger."""


def read_in_order(decode: Callable[[Segment], pa.Table], shards: Sequence[Places]) -> Generator[pa.Table, None, None]:
    """Yield the rows of each shard, in the order of its samples; whole segments in order are not copied.

    Args:
        decode: Returns the rows of a segment; called once for each.
        shards: Locations of the rows. None may be missing, and there must be a segment.

    Raises:
        StorageError: A temporary file cannot be written.
    """
    segments, numbers, first = _number_segments(shards)
    rows = [int(placed.count.sum()) for placed in shards]
    table = decode(segments[0])
    batches = _batches(rows, table.nbytes / max(1, table.num_rows))
    later = _LaterSamples.find(shards, numbers, batches, batches[first])
    decoded = 0
    with ExitStack() as files:
        waiting: dict[int, tuple[IO[bytes], pa.RecordBatchStreamWriter]] = {}
        for number in range(batches[-1] + 1):
            own = slice(*np.searchsorted(batches, [number, number + 1]).tolist())
            segment, start, count = _join(shards[own], numbers[own])
            order = np.argsort(segment, kind="stable")
            ends = np.searchsorted(segment[order], np.arange(decoded, segment.max(initial=-1) + 2))
            pieces = _read_back(*waiting.pop(number)) if number in waiting else []
            for begin, end in pairwise(ends.tolist()):
                table = decode(segments[decoded]) if decoded else table
                pieces.append(_take(table, start[order[begin:end]], count[order[begin:end]]))
                for batch, starts, counts in later.of_segment(decoded):
                    if batch not in waiting:
                        with name_folder():
                            file = TemporaryFile()  # noqa: SIM115 closed by the stack
                        files.callback(_close, file)
                        waiting[batch] = file, pa.ipc.new_stream(file, table.schema)
                    with name_folder():
                        waiting[batch][1].write_table(_take(table, starts, counts))
                        waiting[batch][0].flush()
                decoded += 1
            begins = (np.cumsum(count[order]) - count[order])[np.argsort(order)]
            ordered = _take(pa.concat_tables(pieces or [table.slice(0, 0)]), begins, count)
            for begin, end in pairwise(np.cumsum([0, *rows[own]]).tolist()):
                yield ordered.slice(begin, end - begin)


@dataclass(frozen=True, eq=False, slots=True)
class _LaterSamples:
    """The samples whose segment is decoded for an earlier batch than theirs, sorted by segment and batch.

    Args:
        ends: Number of these samples up to and including each segment.
        batch: Batch of each sample.
        start: Position of the first row of each sample in its segment.
        count: Number of its rows.
    """

    ends: NDArray[np.int64]
    batch: NDArray[np.int16]
    start: NDArray[np.int32]
    count: NDArray[np.int32]

    @classmethod
    def find(
        cls,
        shards: Sequence[Places],
        numbers: Sequence[NDArray[np.int32]],
        batches: NDArray[np.int64],
        decoded: NDArray[np.int64],
    ) -> Self:
        """Find the samples; there are hardly any if the samples come in the order of the segments.

        Args:
            numbers: Numbers of the segments of each shard.
            batches: Batch of each shard.
            decoded: Batch of each segment.
        """
        found = []
        for placed, used, batch in zip(shards, numbers, batches.tolist(), strict=True):
            if (decoded[used] < batch).any():
                segment = used[placed.segment]
                later = np.flatnonzero(decoded[segment] < batch)
                found.append((segment[later], np.full(len(later), batch), placed.start[later], placed.count[later]))
        columns = [np.concatenate(each) for each in zip(*found, strict=True)] or [np.zeros(0, np.int32)] * 4
        segment, batch_of, start, count = columns
        order = np.lexsort((batch_of, segment))
        ends = np.cumsum(np.bincount(segment, minlength=len(decoded)))
        return cls(ends, batch_of[order].astype(np.int16), start[order], count[order])

    def of_segment(self, number: int) -> Iterator[tuple[int, NDArray[np.int32], NDArray[np.int32]]]:
        """Yield the later batches that need a segment, with first row and number of rows of their samples."""
        end = int(self.ends[number])
        begin = int(self.ends[number - 1]) if number else 0
        bounds = np.flatnonzero(np.diff(self.batch[begin:end], prepend=-1)) + begin
        for first, last in pairwise([*bounds.tolist(), end]):
            yield int(self.batch[first]), self.start[first:last], self.count[first:last]


def _close(file: IO[bytes]) -> None:
    """Close a file; what could not be written to it is needed no more."""
    with suppress(OSError):
        file.close()


def _read_back(file: IO[bytes], writer: pa.RecordBatchStreamWriter) -> list[pa.Table]:
    """Return the rows in a temporary file, in the order in which they were written, and free the file."""
    with file, name_folder():
        writer.close()
        file.seek(0)
        return [pa.ipc.open_stream(file).read_all()]


def _number_segments(shards: Sequence[Places]) -> tuple[list[Segment], list[NDArray[np.int32]], list[int]]:
    """Number the segments that hold samples in the order of their first use.

    Returns:
        The segments; for each shard, the numbers of its segments; for each segment, the first shard that it is used in.
    """
    numbers: dict[Segment, int] = {}
    of_shards: list[NDArray[np.int32]] = []
    first: list[int] = []
    for placed in shards:
        of_shards.append(np.zeros(len(placed.segments), np.int32))
        for position in np.unique(placed.segment).tolist():
            of_shards[-1][position] = number = numbers.setdefault(placed.segments[position], len(numbers))
            first += [len(of_shards) - 1] if number == len(first) else []
    return [*numbers], of_shards, first


def _batches(rows: Sequence[int], row_bytes: float) -> NDArray[np.int64]:
    """Return the batch of each shard."""
    size = max(BATCH_BYTES, sum(rows) * row_bytes / MOST_BATCHES)
    before = np.cumsum([0, *rows[:-1]])
    batches: NDArray[np.int64] = np.unique(before * row_bytes // size, return_inverse=True)[1]
    return batches


def _join(
    shards: Sequence[Places], numbers: Sequence[NDArray[np.int32]]
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
    """Return the number of the segment, the first row and the number of rows of each sample of some shards."""
    segment = np.concatenate([used[placed.segment] for placed, used in zip(shards, numbers, strict=True)])
    start, count = np.concatenate([np.stack([placed.start, placed.count]) for placed in shards], axis=1)
    return segment, start, count


def _take(table: pa.Table, start: NDArray[np.integer], count: NDArray[np.int32]) -> pa.Table:
    rows = number_ranges(start, count)
    return table if np.array_equal(rows, np.arange(table.num_rows)) else take_rows(table, rows)
