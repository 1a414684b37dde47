"""Drops from a store of stage tables what nothing has used for long.

A record goes when it has not been used for as long; a table when it has not been used for as long and no record that
stays leads to it; data that were handed over as objects, or fetched from an index, like records. Run folders have
copies of their tables, so that no run that is finished needs the store. What a run that is under way has used since it
began stays; on storage that is no local disk, where use leaves no trace, everything stays until it has ended.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from tasks.tables.inventory import Entry, Inventory
from tasks.tables.table_files import is_local, translate_errors
from tasks.tables.tables_in_use import oldest_start

YOUNGEST = timedelta(hours=1)
"""What was used within this time stays whatever is asked for: a run that is under way may need it."""

YOUNGEST_TEMPORARY = timedelta(days=1)
"""A temporary file that is younger may still be written."""

_EVER = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class PrunedTables:
    """What pruning removes, or would remove: how many files of each kind, and their bytes.

    Args:
        records: results of stages.
        tables: stage tables.
        sources: data that were handed over or fetched.
        temporary: what writers left behind.
        size: their bytes.
        runs: runs that are using the store.
    """

    records: int
    tables: int
    sources: int
    temporary: int
    size: int
    runs: int


def prune_tables(root: str, *, before: datetime, size: int | None = None, dry_run: bool = True) -> PrunedTables:
    """Removes what was last used before a time.

    Args:
        root: path or URL of the store of stage tables.
        before: the time; at least an hour ago, or an hour ago is taken.
        size: remove what has not been used for longest, until the rest takes no more than these bytes.
        dry_run: only tell what would be removed.

    Raises:
        AssayError: the store can not be read, or a file not be removed.
    """
    inventory = Inventory(root)
    now = datetime.now(UTC)
    entries = list(inventory.entries())
    if size is not None:
        before = max(before, _cutoff(inventory, entries, size))
    runs = oldest_start(root)
    before = min(before, now - YOUNGEST, *runs) if is_local(inventory.fs) or not runs else _EVER
    records = [entry for entry in entries if entry.kind == "record" and entry.used < before]
    temporary = [e for e in entries if e.kind == "temporary" and e.used < min(before, now - YOUNGEST_TEMPORARY)]
    gone = [*records, *temporary] if dry_run else [*_remove(inventory, records), *_remove(inventory, temporary)]
    # Looked up anew: a run may have written records meanwhile.
    paths = {entry.path for entry in gone}
    stay = {
        inventory.path_of(ref)
        for entry in inventory.entries()
        if entry.kind == "record" and entry.path not in paths and (ref := inventory.reference(entry.path)) is not None
    }
    others = [e for e in entries if e.kind in ("table", "source") and e.used < before and e.path not in stay]
    gone += others if dry_run else _remove(inventory, others)
    kinds = [entry.kind for entry in gone]
    counts = (kinds.count("record"), kinds.count("table"), kinds.count("source"), kinds.count("temporary"))
    return PrunedTables(*counts, size=sum(entry.size for entry in gone), runs=len(runs))


def _cutoff(inventory: Inventory, entries: Iterable[Entry], size: int) -> datetime:
    """The time of last use from which on files fit into a size; a table is used whenever a record of it is."""
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
    return cutoff if total > size else _EVER


def _remove(inventory: Inventory, entries: Iterable[Entry]) -> Iterator[Entry]:
    """Removes files, but for those that have been used since they were listed."""
    for entry in entries:
        with translate_errors(inventory.fs, entry.path, what="removed"):
            try:
                if inventory.used(entry.path) > entry.used:
                    continue
                inventory.fs.rm_file(entry.path)
            except FileNotFoundError:
                continue
        yield entry
