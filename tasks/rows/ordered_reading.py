"""Read the results of many samples in the order of the samples, however they are scattered over segments.

Shards are read in batches of limited size. A segment is decoded once, when the first batch needs it; its rows for later
batches wait in temporary files. So any order of the rows costs the same, beyond one copy to the disk of what is not
needed at once.
"""

from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, suppress
from itertools import pairwise
from tempfile import TemporaryFile
from typing import IO

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
    segments, segment, start, count, bounds = _join(shards)
    table, rows = decode(segments[0]), np.concatenate([[0], np.cumsum(count, dtype=np.int64)])[bounds]
    row_bytes = table.nbytes / max(1, table.num_rows)
    size = max(BATCH_BYTES, rows[-1] * row_bytes / MOST_BATCHES)
    batches = np.unique(rows[:-1] * row_bytes // size, return_inverse=True)[1]
    batch = np.repeat(batches, np.diff(bounds)).astype(np.int16)
    by_segment, ends = np.lexsort((batch, segment)), np.cumsum(np.bincount(segment, minlength=len(segments)))
    decoded = 0
    with ExitStack() as files:
        waiting: dict[int, tuple[IO[bytes], pa.RecordBatchStreamWriter]] = {}
        for number in range(batches[-1] + 1):
            first, last = np.searchsorted(batches, [number, number + 1]).tolist()
            own = slice(bounds[first], bounds[last])
            pieces = _read_back(*waiting.pop(number)) if number in waiting else []
            while decoded <= segment[own].max(initial=-1):
                table = decode(segments[decoded]) if decoded else table
                chosen = by_segment[ends[decoded - 1] if decoded else 0 : ends[decoded]]
                for part in filter(len, np.split(chosen, np.flatnonzero(np.diff(batch[chosen])) + 1)):
                    later = int(batch[part[0]])
                    if later > number and later not in waiting:
                        with name_folder():
                            file = TemporaryFile()  # noqa: SIM115 closed by the stack
                        files.callback(_close, file)
                        waiting[later] = file, pa.ipc.new_stream(file, table.schema)
                    taken = _take(table, start[part], count[part])
                    if later == number:
                        pieces.append(taken)
                    else:
                        with name_folder():
                            waiting[later][1].write_table(taken)
                            waiting[later][0].flush()
                decoded += 1
            order = np.argsort(segment[own], kind="stable")
            begins = (np.cumsum(count[own][order]) - count[own][order])[np.argsort(order)]
            ordered = _take(pa.concat_tables(pieces or [table.slice(0, 0)]), begins, count[own])
            for begin, end in pairwise((rows[first : last + 1] - rows[first]).tolist()):
                yield ordered.slice(begin, end - begin)


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


def _join(
    shards: Sequence[Places],
) -> tuple[list[Segment], NDArray[np.int32], NDArray[np.int32], NDArray[np.int32], list[int]]:
    """Join the samples of all shards.

    Returns:
        The segments in the order of their first use; the segment, first row and number of rows of each sample; the
        bounds of the shards.
    """
    numbers: dict[Segment, int] = {}
    segment = [
        np.array([numbers.setdefault(each, len(numbers)) for each in placed.segments], np.int32)[placed.segment]
        for placed in shards
    ]
    start, count = np.concatenate([np.stack([placed.start, placed.count]) for placed in shards], axis=1)
    return [*numbers], np.concatenate(segment), start, count, np.cumsum([0, *map(len, segment)]).tolist()


def _take(table: pa.Table, start: NDArray[np.integer], count: NDArray[np.int32]) -> pa.Table:
    rows = number_ranges(start, count)
    return table if np.array_equal(rows, np.arange(table.num_rows)) else take_rows(table, rows)
