"""Remove files from a table store that have not been used for a given time.

A record is removed when it has not been used for that time; a table when, in addition, no remaining record refers to
it; data that was passed as objects or fetched from an index is treated like a record. Run folders contain copies of
their tables, so a finished run does not need the table store. Files that a run in progress has used since its start
stay. Storage other than a local disk does not record uses; there, nothing is removed while a run is in progress.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from tasks.tables.inventory import Entry, Inventory
from tasks.tables.table_files import is_local, translate_errors
from tasks.tables.tables_in_use import start_times

YOUNGEST = timedelta(hours=1)
"""Files used within this time are never removed: a run in progress may need them."""

YOUNGEST_TEMPORARY = timedelta(days=1)
"""Temporary files younger than this are never removed: a writer may still be writing them."""

_BEGINNING = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class PrunedTables:
    """The number of files that pruning removes, or would remove, and their size.

    Args:
        records: Number of stage records.
        tables: Number of stage tables.
        sources: Number of files with data that was passed as objects or fetched.
        temporary: Number of temporary files that writers left.
        size: Total size in bytes.
        runs: Number of runs that are using the table store.
    """

    records: int
    tables: int
    sources: int
    temporary: int
    size: int
    runs: int


def prune_tables(root: str, *, before: datetime, size: int | None = None, dry_run: bool = True) -> PrunedTables:
    """Remove the files that were last used before a time.

    Args:
        root: Path or URL of the table store.
        before: Remove files last used before this time; a time less than an hour ago counts as an hour ago.
        size: Size in bytes that the remaining files must not exceed; the least recently used files are removed first.
        dry_run: If true, only count what would be removed.

    Raises:
        AssayError: The table store cannot be read, or a file cannot be removed.
    """
    inventory = Inventory(root)
    now = datetime.now(UTC)
    entries = list(inventory.entries())
    if size is not None:
        before = max(before, _cutoff(inventory, entries, size))
    runs = start_times(root)
    before = min(before, now - YOUNGEST, *runs) if is_local(inventory.fs) or not runs else _BEGINNING
    records = [entry for entry in entries if entry.kind == "record" and entry.used < before]
    temporary = [e for e in entries if e.kind == "temporary" and e.used < min(before, now - YOUNGEST_TEMPORARY)]
    removed = [*records, *temporary] if dry_run else [*_remove(inventory, records), *_remove(inventory, temporary)]
    # Listed again: a run may have written records meanwhile.
    removed_paths = {entry.path for entry in removed}
    referenced = {
        inventory.path_of(ref)
        for entry in inventory.entries()
        if entry.kind == "record"
        and entry.path not in removed_paths
        and (ref := inventory.reference(entry.path)) is not None
    }
    others = [e for e in entries if e.kind in ("table", "source") and e.used < before and e.path not in referenced]
    removed += others if dry_run else _remove(inventory, others)
    kinds = [entry.kind for entry in removed]
    counts = (kinds.count("record"), kinds.count("table"), kinds.count("source"), kinds.count("temporary"))
    return PrunedTables(*counts, size=sum(entry.size for entry in removed), runs=len(runs))


def _cutoff(inventory: Inventory, entries: Iterable[Entry], size: int) -> datetime:
    """Return the earliest time of last use such that newer files fit into a size; using a record uses its table."""
    used = {entry.path: entry.used for entry in entries}
    for entry in entries:
        if entry.kind == "record" and (ref := inventory.reference(entry.path)) is not None:
            path = inventory.path_of(ref)
            used[path] = max(entry.used, used.get(path, entry.used))
    cutoff, total = datetime.max.replace(tzinfo=UTC), 0
    for entry in sorted(entries, key=lambda entry: used[entry.path], reverse=True):
        total += entry.size
        if total > size:
            break
        cutoff = used[entry.path]
    return cutoff if total > size else _BEGINNING


def _remove(inventory: Inventory, entries: Iterable[Entry]) -> Iterator[Entry]:
    """Remove files, except those used since they were listed, and yield the removed ones."""
    for entry in entries:
        with translate_errors(inventory.fs, entry.path, what="removed"):
            try:
                if inventory.last_use(entry.path) > entry.used:
                    continue
                inventory.fs.rm_file(entry.path)
            except FileNotFoundError:
                continue
        yield entry
