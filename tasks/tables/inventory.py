"""List and check the files of a table store: tables, the records that refer to them, data, and temporary files."""

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
"""Name of the folder of records, beside the folders of the stages."""

SOURCES = "sources"
"""Name of the folder of data that was passed as objects or fetched from an index."""

ROWS = "rows"
"""Name of the folder of the indexes that say in which tables the rows of finished runs are."""

RUNNING = "running"
"""Name of the folder of the heartbeat files of runs in progress; the file of a killed run stays."""

_SOURCE = re.compile(r"[0-9a-f]{16}\.(parquet|jsonl|fetched\.json)")
"""Pattern of the names of these files; a user may have other files in a folder of this name."""

Kind: TypeAlias = Literal["record", "table", "source", "temporary"]


@dataclass(frozen=True, slots=True)
class Entry:
    """A file of a table store.

    Args:
        path: Path within its file system.
        kind: Kind of the file: a record (of a table, or of the rows of a run), a table, data, or a temporary file of a
            writer that was killed.
        folder: Name of the stage of a table, or RECORDS, SOURCES, ROWS or RUNNING.
        size: Size in bytes.
        used: Time of the last use on a local disk; elsewhere, of the last write.
    """

    path: str
    kind: Kind
    folder: str
    size: int
    used: datetime


class Inventory:
    """The files of a table store. Other files in its folder are not listed.

    Args:
        root: Path or URL of the table store; it need not exist.
    """

    def __init__(self, root: str) -> None:
        self.fs, self.root = filesystem(root)

    def entries(self) -> Iterator[Entry]:
        """Yield every file, folder by folder; leave out files that disappear meanwhile.

        Raises:
            AssayError: The table store cannot be read.
        """
        self.fs.invalidate_cache()
        for folder in (RECORDS, *map(str, Stage), SOURCES, ROWS, RUNNING):
            with translate_errors(self.fs, self.root, what="read"):
                entries = list(self._entries_of(folder))
            yield from entries

    def _entries_of(self, folder: str) -> Iterator[Entry]:
        location = posixpath.join(self.root, folder)
        for path in sorted(self.fs.ls(location, detail=False)) if self.fs.exists(location) else ():
            if (kind := _kind_of(folder, path)) is not None and (entry := self._entry(path, kind, folder)) is not None:
                yield entry

    def _entry(self, path: str, kind: Kind, folder: str) -> Entry | None:
        try:
            return Entry(path, kind, folder, int(self.fs.size(path) or 0), self.last_use(path))
        except FileNotFoundError:
            return None

    def last_use(self, path: str) -> datetime:
        """Return the time when a file was written or last used."""
        time: datetime = self.fs.modified(path)
        return time if time.tzinfo else time.replace(tzinfo=UTC)

    def reference(self, path: str) -> StageRef | None:
        """Return the reference in a record; None if there is none or it cannot be read."""
        try:
            return StageRef.model_validate_json(json.loads(self.fs.cat_file(path))["result"])
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def path_of(self, ref: StageRef) -> str:
        """Return the path, within this file system, of the table that a reference points to."""
        return str(self.fs._strip_protocol(ref.path))  # noqa: SLF001 fsspec has no public method for this

    def problem(self, entry: Entry) -> str | None:
        """Return a description of the problem with a file; None if there is none."""
        if entry.kind == "record" and entry.folder == RECORDS:
            return self._problem_of_record(entry.path)
        if entry.kind == "table":
            return self._problem_of_table(entry.path)
        return None

    def _problem_of_record(self, path: str) -> str | None:
        ref = self.reference(path)
        if ref is None:
            return f"the record {path} cannot be read"
        try:
            verify(ref)
        except AssayError as error:
            return f"the record {path} cannot be used: {error}"
        return None

    def _problem_of_table(self, path: str) -> str | None:
        try:
            with self.fs.open(path, "rb") as file:
                digest = content_digest(pq.read_table(file, page_checksum_verification=True))
        except FileNotFoundError:
            return None
        except (pa.ArrowException, OSError) as error:
            return f"the table {path} cannot be read: {error}"
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
    if folder == ROWS:
        return "record" if name.endswith(".parquet") else None
    return "table" if name.endswith(".parquet") else None


def _stem(path: str) -> str:
    return posixpath.basename(path).removesuffix(".parquet")
