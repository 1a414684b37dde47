"""Remove what has not been used for a given time from a table store, and merge small segments of rows.

Rows that later ones replace are removed as soon as no run can be reading them. Run folders contain copies of their
tables, so a finished run does not need the table store. Files that a run in progress has used since its start stay.
Storage other than a local disk does not record uses; there, nothing is removed while a run is in progress.
"""

import posixpath
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from tasks.rows.inventory import Entry, Inventory
from tasks.rows.merge_segments import merge_segments
from tasks.rows.segment_files import INDEX
from tasks.rows.table_files import is_local, translate_errors
from tasks.rows.tables_in_use import start_times

YOUNGEST = timedelta(hours=1)
"""Files used within this time are never removed: a run in progress may need them."""

YOUNGEST_TEMPORARY = timedelta(days=1)
"""Temporary files younger than this are never removed: a writer may still be writing them."""

_BEGINNING = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class PrunedTables:
    """The numbers of entries that pruning removes and merges, or would, and the size of those that it removes.

    Args:
        segments: Number of segments of rows that are removed.
        merged: Number of segments whose rows are merged into larger ones; those that a run may be reading are removed
            by a later pruning.
        tables: Number of tables of samples that are removed.
        sources: Number of files with data that was passed as objects or fetched.
        temporary: Number of temporary files that writers left.
        size: Total size in bytes of what is removed.
        runs: Number of runs that are using the table store.
    """

    segments: int
    merged: int
    tables: int
    sources: int
    temporary: int
    size: int
    runs: int


def prune_tables(root: str, *, before: datetime, size: int | None = None, dry_run: bool = True) -> PrunedTables:
    """Remove what was last used before a time, and merge small segments of the rest.

    Args:
        root: Path or URL of the table store.
        before: Remove files last used before this time; a time less than an hour ago counts as an hour ago.
        size: Size in bytes that the remaining files must not exceed; the least recently used files are removed first.
        dry_run: If true, only count what would be removed and merged.

    Raises:
        AssayError: The table store cannot be read, or a file cannot be removed or written.
    """
    inventory = Inventory(root)
    entries = list(inventory.entries())
    if size is not None:
        before = max(before, _cutoff(entries, size))
    unused, runs = _unused_before(inventory, root)
    before = min(before, unused)
    old_temporary = min(before, datetime.now(UTC) - YOUNGEST_TEMPORARY)
    old = [entry for entry in entries if entry.used < (old_temporary if entry.kind == "temporary" else before)]
    removed = old if dry_run else list(_remove(inventory, old))
    removed_paths = {entry.path for entry in removed}
    segments = [entry for entry in entries if entry.kind == "rows" and entry.path not in removed_paths]
    superseded, merged = _merge(inventory, segments, dry_run=dry_run)
    unused, _ = _unused_before(inventory, root)  # a run may have begun meanwhile
    useless = [entry for entry in segments if entry.used < unused and _location(entry) in superseded]
    removed += useless if dry_run else list(_remove(inventory, useless))
    kinds = [entry.kind for entry in removed]
    return PrunedTables(
        segments=kinds.count("rows"),
        merged=merged,
        tables=kinds.count("table"),
        sources=kinds.count("source"),
        temporary=kinds.count("temporary"),
        size=sum(entry.size for entry in removed),
        runs=runs,
    )


def _unused_before(inventory: Inventory, root: str) -> tuple[datetime, int]:
    """Return the time such that no run needs what was last used before, and the number of runs in progress."""
    runs = start_times(root)
    if runs and not is_local(inventory.fs):
        return _BEGINNING, len(runs)
    return min([datetime.now(UTC) - YOUNGEST, *runs]), len(runs)


def _merge(inventory: Inventory, segments: Collection[Entry], *, dry_run: bool) -> tuple[set[str], int]:
    """Merge small segments; return the locations of those that are no longer found, and the number of merged ones."""
    indexed = [entry for entry in segments if any(path.endswith(INDEX) for path in entry.paths)]
    used = {_location(entry): entry.used for entry in indexed}
    superseded = {_location(entry) for entry in segments} - set(used)
    merged = 0
    for folder in sorted({posixpath.dirname(location) for location in used}):
        done = merge_segments(inventory, folder, used, dry_run=dry_run)
        superseded |= done.superseded
        merged += done.merged
    return superseded, merged


def _location(entry: Entry) -> str:
    """Return the path of the files of a segment without suffix."""
    return posixpath.splitext(entry.path)[0]


def _cutoff(entries: Iterable[Entry], size: int) -> datetime:
    """Return the earliest time of last use such that newer files fit into a size."""
    cutoff, total = datetime.max.replace(tzinfo=UTC), 0
    for entry in sorted(entries, key=lambda entry: entry.used, reverse=True):
        total += entry.size
        if total > size:
            return cutoff
        cutoff = entry.used
    return _BEGINNING


def _remove(inventory: Inventory, entries: Iterable[Entry]) -> Iterator[Entry]:
    """Remove entries, except those used since they were listed, and yield the removed ones."""
    for entry in entries:
        with translate_errors(inventory.fs, entry.path, what="removed"):
            used = inventory.last_use(entry)
            if used is None or used > entry.used:
                continue
            for path in entry.paths:
                try:
                    inventory.fs.rm_file(path)
                except FileNotFoundError:
                    continue
        yield entry
