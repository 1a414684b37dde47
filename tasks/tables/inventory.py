"""What lies in a store of stage tables: tables, the records that lead to them, data, and what writers left behind."""

import json
import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from metric_core.errors import AssayError
from metric_core.stages import Stage
from tasks.runtime.atomic_files import is_temporary
from tasks.tables.table_files import filesystem, translate_errors
from tasks.tables.table_store import StageRef, content_digest, verify

RECORDS = "results"
"""The folder of records beside the folders of the stages."""

SOURCES = "sources"
"""The folder of data that were handed over as objects, or fetched from an index."""

RUNNING = "running"
"""The folder of notes of runs that are under way; that of a run that was killed stays."""

_SOURCE = re.compile(r"[0-9a-f]{16}\.(parquet|jsonl|fetched\.json)")
"""The names that such files get; a user may have a folder of that name too."""

Kind: TypeAlias = Literal["record", "table", "source", "temporary"]


@dataclass(frozen=True, slots=True)
class Entry:
    """A file of a store.

    Args:
        path: within its file system.
        kind: a record, a table, data, or what a writer leaves behind that was killed.
        folder: the stage of a table, RECORDS, SOURCES or RUNNING.
        size: in bytes.
        used: when it was written or last used, as far as the file system tells.
    """

    path: str
    kind: Kind
    folder: str
    size: int
    used: datetime


class Inventory:
    """The files of a store of stage tables. Files that are none of a store's are not listed.

    Args:
        root: path or URL of the store; it need not be there.
    """

    def __init__(self, root: str) -> None:
        self.fs, self.root = filesystem(root)

    def entries(self) -> Iterator[Entry]:
        """Every file, folder after folder. One that goes away meanwhile is left out.

        Raises:
            AssayError: the store can not be read.
        """
        self.fs.invalidate_cache()
        for folder in (RECORDS, *map(str, Stage), SOURCES, RUNNING):
            with translate_errors(self.fs, self.root, what="read"):
                found = list(self._entries_of(folder))
            yield from found

    def _entries_of(self, folder: str) -> Iterator[Entry]:
        place = posixpath.join(self.root, folder)
        for path in sorted(self.fs.ls(place, detail=False)) if self.fs.exists(place) else ():
            if (kind := _kind_of(folder, path)) is not None and (entry := self._entry(path, kind, folder)) is not None:
                yield entry

    def _entry(self, path: str, kind: Kind, folder: str) -> Entry | None:
        try:
            return Entry(path, kind, folder, int(self.fs.size(path) or 0), self.used(path))
        except FileNotFoundError:
            return None

    def used(self, path: str) -> datetime:
        """When a file was written or last used."""
        time: datetime = self.fs.modified(path)
        return time if time.tzinfo else time.replace(tzinfo=UTC)

    def reference(self, path: str) -> StageRef | None:
        """The reference in a record; None if it has none that can be read."""
        try:
            return StageRef.model_validate_json(json.loads(self.fs.cat_file(path))["result"])
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def path_of(self, ref: StageRef) -> str:
        """Where the table behind a reference is within this file system."""
        return str(self.fs._strip_protocol(ref.path))  # noqa: SLF001 fsspec has no other way

    def problem(self, entry: Entry) -> str | None:
        """What is wrong with a file; None if nothing is."""
        if entry.kind == "record":
            return self._problem_of_record(entry.path)
        if entry.kind == "table":
            return self._problem_of_table(entry.path)
        return None

    def _problem_of_record(self, path: str) -> str | None:
        ref = self.reference(path)
        if ref is None:
            return f"the record {path} can not be read"
        try:
            verify(ref)
        except AssayError as error:
            return f"the record {path} is of no use: {error}"
        return None

    def _problem_of_table(self, path: str) -> str | None:
        try:
            with self.fs.open(path, "rb") as file:
                digest = content_digest(pq.read_table(file, page_checksum_verification=True))
        except FileNotFoundError:
            return None
        except (pa.ArrowException, OSError) as error:
            return f"the table {path} can not be read: {error}"
        return None if digest == _stem(path) else f"the table {path} has been changed since it was computed"


def _kind_of(folder: str, path: str) -> Kind | None:
    name = posixpath.basename(path)
    if is_temporary(name):
        return "temporary"
    if folder == RECORDS:
        return "record" if name.endswith(".json") else None
    if folder == RUNNING:
        return "temporary" if name.endswith(".json") else None
    if folder == SOURCES:
        return "source" if _SOURCE.fullmatch(name) else None
    return "table" if name.endswith(".parquet") else None


def _stem(path: str) -> str:
    return posixpath.basename(path).removesuffix(".parquet")
