"""Merge small segments of a recipe into larger ones, so that few files are read to look rows up.

The rows of a merged segment count as written just after the latest of those that it is made of: a row that a run writes
at the same time still replaces them. The segments that it is made of stay, because a run in progress may read them.
Segments that were last used on different days are not merged, so that unused rows can expire.
"""

import os
import posixpath
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from metric_core.schemas import SCHEMAS
from metric_core.stages import Stage
from tasks.rows.cached_usage import share_of
from tasks.rows.inventory import Inventory
from tasks.rows.merge import number_ranges, take_rows
from tasks.rows.records import add_missing_columns
from tasks.rows.row_digests import DIGEST_BYTES
from tasks.rows.segment_files import (
    DATA,
    INDEX,
    SegmentIndex,
    SegmentNote,
    StoredSegment,
    digest_file,
    new_stem,
    read_folder,
    write_segment,
    written_time,
)
from tasks.rows.table_files import is_local, storage_errors
from tasks.rows.table_store import conform
from tasks.runtime.usage import StageUsage

MERGED_SAMPLES = 2000
"""Number of samples of a merged segment; segments with fewer than half of them are merged."""

MERGED_BYTES = 64 << 20
"""Size of the files that are merged into one."""


@dataclass(frozen=True, eq=False, slots=True)
class _Part:
    """The samples of a segment that no later one replaces.

    Args:
        samples: Positions of these samples in its index.
    """

    segment: StoredSegment
    samples: NDArray[np.int64]

    @property
    def note(self) -> SegmentNote:
        return self.segment.index.note

    @property
    def is_small(self) -> bool:
        return 0 < len(self.samples) < MERGED_SAMPLES / 2 or self.is_sparse

    @property
    def is_sparse(self) -> bool:
        return 0 < 2 * len(self.samples) < self.note.samples


@dataclass(frozen=True, slots=True)
class MergedSegments:
    """The result of merging the segments of a folder, or of its dry run.

    Args:
        superseded: Locations of the segments whose rows are all in later ones.
        merged: Number of those that merging superseded.
    """

    superseded: frozenset[str]
    merged: int


def merge_segments(inventory: Inventory, folder: str, used: Mapping[str, datetime], *, dry_run: bool) -> MergedSegments:
    """Merge the small segments in the folder of a recipe.

    Args:
        used: Mapping from the location of each segment to consider to the time of its last use.

    Raises:
        AssayError: A merged segment cannot be written.
    """
    stage = Stage(posixpath.basename(posixpath.dirname(folder)))
    found = [segment for segment in read_folder(inventory.fs, folder, []) if segment.location in used]
    superseded: set[str] = set()
    merged, now = 0, datetime.now(UTC)
    for recipe in sorted({segment.index.note.recipe for segment in found}):
        parts = _latest_samples([segment for segment in found if segment.index.note.recipe == recipe])
        superseded |= {part.segment.location for part in parts if not len(part.samples)}
        by_day: dict[int, list[_Part]] = {}  # local disks only: elsewhere, uses are not recorded
        for part in parts:
            if part.is_small and SCHEMAS[stage].can_read(str(part.note.schema_version)):
                age = now - used[part.segment.location]
                day = age // timedelta(days=1) if is_local(inventory.fs) else 0
                by_day.setdefault(day, []).append(part)
        for group in (group for same_day in by_day.values() for group in _groups(same_day)):
            sources = group if dry_run else _merge(inventory, stage, group, used)
            superseded |= {part.segment.location for part in sources}
            merged += len(sources)
    return MergedSegments(frozenset(superseded), merged)


def _latest_samples(segments: Sequence[StoredSegment]) -> list[_Part]:
    """Return the segments of a recipe, each with the samples that no later one replaces."""
    ends = np.cumsum([0, *(len(segment.index.keys) for segment in segments)])
    keys = np.concatenate([segment.index.keys for segment in segments])
    halves = keys.view(np.uint64).reshape(-1, DIGEST_BYTES // 8)
    order = np.lexsort((np.arange(len(keys)), halves[:, 1], halves[:, 0]))
    is_latest = np.ones(len(keys), np.bool_)
    is_latest[order[:-1]] = (halves[order[:-1]] != halves[order[1:]]).any(axis=1)
    return [
        _Part(segment, np.flatnonzero(is_latest[start:end]))
        for segment, start, end in zip(segments, ends[:-1].tolist(), ends[1:].tolist(), strict=True)
    ]


def _groups(parts: Iterable[_Part]) -> Iterator[list[_Part]]:
    """Yield segments that are merged into one each, the earliest first."""
    group: list[_Part] = []
    for part in parts:
        samples = sum(len(other.samples) for other in (*group, part))
        if group and (samples > MERGED_SAMPLES or sum(p.note.size for p in (*group, part)) > MERGED_BYTES):
            if _is_worth(group):
                yield group
            group = []
        group.append(part)
    if _is_worth(group):
        yield group


def _is_worth(group: Sequence[_Part]) -> bool:
    return len(group) > 1 or any(part.is_sparse for part in group)


def _merge(inventory: Inventory, stage: Stage, group: Sequence[_Part], used: Mapping[str, datetime]) -> list[_Part]:
    """Write the rows of segments as one, and return those that it is made of: damaged ones are left out."""
    sources, tables, counts = [], [], []
    usage = StageUsage()
    for part in group:
        if (table := _read(inventory, stage, part)) is not None:
            sources.append(part)
            tables.append(table)
            counts.append(part.segment.index.count[part.samples])
            usage += share_of(part.note.usage, len(part.samples) / part.note.samples)
    if not _is_worth(sources):
        return []
    indexes = [(part.segment.index, part.samples) for part in sources]
    count = np.concatenate(counts)
    table = conform(pa.concat_tables(tables), SCHEMAS[stage])
    note = SegmentNote(
        recipe=sources[0].note.recipe,
        schema_version=int(table.schema.metadata[b"assay.version"]),
        samples=len(count),
        usage=usage,
    )
    index = SegmentIndex(
        note,
        np.concatenate([index.keys[samples] for index, samples in indexes]),
        np.concatenate([index.digests[samples] for index, samples in indexes]),
        (np.cumsum(count) - count).astype(np.int32),
        count,
    )
    folder, last = posixpath.split(sources[-1].segment.location)
    location = posixpath.join(folder, new_stem(written_time(last) + 1))
    write_segment(inventory.fs, location, table, index)
    if is_local(inventory.fs):  # merging gains nothing
        time = max(used[part.segment.location] for part in sources).timestamp()
        for suffix in (INDEX, DATA):
            with suppress(OSError):
                os.utime(location + suffix, (time, time))
    return sources


def _read(inventory: Inventory, stage: Stage, part: _Part) -> pa.Table | None:
    """Return the rows of a segment that no later one replaces; None if they cannot be used."""
    index = part.segment.index
    try:
        content = inventory.fs.cat_file(part.segment.location + DATA)
        if digest_file(content) != index.note.file_digest:
            return None
        table = pq.read_table(pa.BufferReader(content))
    except storage_errors(pa.ArrowException):
        return None
    rows = number_ranges(index.start[part.samples].astype(np.int64), index.count[part.samples])
    complete = add_missing_columns(table, stage)
    return take_rows(complete.replace_schema_metadata(SCHEMAS[stage].arrow.metadata), rows)
