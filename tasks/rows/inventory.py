"""List and check the files of a table store: segments of rows, tables and data."""

import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from metric_core.stages import Stage
from tasks.rows.segment_files import DATA, INDEX, ROWS, SegmentNote, decode_index, digest_file, is_segment_file
from tasks.rows.table_files import RUNNING, SOURCES, filesystem, storage_errors, translate_errors
from tasks.rows.table_store import content_digest
from tasks.runtime.atomic_files import is_temporary

_SOURCE = re.compile(r"data-[0-9a-f]{16}\.(parquet|jsonl)|[0-9a-f]{16}\.fetched\.json")
"""Pattern of the names of data files; a user may have other files in a folder of this name."""

Kind: TypeAlias = Literal["rows", "table", "source", "temporary"]


@dataclass(frozen=True, slots=True)
class Entry:
    """A file of a table store, or the files of a segment.

    Args:
        paths: Paths within its file system, in the order in which they are removed: the index of a segment before its
            rows.
        kind: Kind of the entry: a segment of rows, a table of samples, data, or a temporary file of a killed writer.
        folder: Name of its folder in the table store, without that of the recipe of a segment.
        size: Size in bytes.
        used: Time of the last use on a local disk; elsewhere, of the last write.
    """

    paths: tuple[str, ...]
    kind: Kind
    folder: str
    size: int
    used: datetime

    @property
    def path(self) -> str:
        """Path of the file with the content."""
        return self.paths[-1]


class Inventory:
    """The files of a table store. Other files in its folder are not listed.

    Args:
        root: Path or URL of the table store; it need not exist.
    """

    def __init__(self, root: str) -> None:
        self.fs, self.root = filesystem(root)

    def entries(self) -> Iterator[Entry]:
        """Yield every entry, folder by folder; leave out files that disappear meanwhile.

        Raises:
            AssayError: The table store cannot be read.
        """
        self.fs.invalidate_cache()
        for folder in (str(Stage.SAMPLES), SOURCES, ROWS, RUNNING):
            with translate_errors(self.fs, self.root, what="read"):
                entries = list(self._entries_of(folder))
            yield from entries
        for stage in Stage:
            with translate_errors(self.fs, self.root, what="read"):
                entries = list(self._segments_of(f"{ROWS}/{stage}"))
            yield from entries

    def last_use(self, entry: Entry) -> datetime | None:
        """Return the time when an entry was written or last used; None if it does not exist any more."""
        times = []
        for path in entry.paths:
            try:
                times.append(_time_of(self.fs.modified(path)))
            except FileNotFoundError:
                continue
        return max(times, default=None)

    def problem(self, entry: Entry) -> str | None:
        """Return a description of the problem with an entry; None if there is none."""
        if entry.kind == "rows":
            return self._problem_of_segment(entry)
        return self._problem_of_table(entry.path) if entry.kind == "table" else None

    def _entries_of(self, folder: str) -> Iterator[Entry]:
        for file in self._files(folder):
            path = str(file["name"])
            if file["type"] == "file" and (kind := _kind_of(folder, path)) is not None:
                yield Entry((path,), kind, folder, int(file["size"] or 0), self._used(file))

    def _segments_of(self, folder: str) -> Iterator[Entry]:
        """Yield the segments of a stage, each with its index, and the temporary files of their writers."""
        for recipe in self._files(folder):
            files = {str(file["name"]): file for file in self._files(f"{folder}/{posixpath.basename(recipe['name'])}")}
            segments: dict[str, list[str]] = {}
            for path in sorted(files):
                name = posixpath.basename(path)
                if is_temporary(name):
                    yield Entry((path,), "temporary", folder, int(files[path]["size"] or 0), self._used(files[path]))
                elif is_segment_file(path):
                    segments.setdefault(name.partition(".")[0], []).append(path)
            for paths in segments.values():
                size = sum(int(files[path]["size"] or 0) for path in paths)
                yield Entry(tuple(paths), "rows", folder, size, max(self._used(files[path]) for path in paths))

    def _files(self, folder: str) -> list[dict[str, Any]]:
        try:
            files = self.fs.ls(posixpath.join(self.root, folder), detail=True)
        except (FileNotFoundError, NotADirectoryError):
            return []
        return sorted(files, key=lambda file: str(file["name"]))

    def _used(self, file: Mapping[str, Any]) -> datetime:
        """Return the time of last use of a listed file."""
        time = file.get("mtime") or file.get("LastModified")
        return _time_of(time if isinstance(time, datetime | float) else self.fs.modified(file["name"]))

    def _problem_of_segment(self, entry: Entry) -> str | None:
        note: SegmentNote | None = None
        index = entry.path.removesuffix(DATA).removesuffix(INDEX) + INDEX
        try:
            if index in entry.paths:
                note = decode_index(self.fs.cat_file(index)).note
            content = self.fs.cat_file(index.removesuffix(INDEX) + DATA)
            if note is None:  # rows that are never found, or whose writer was killed
                pq.read_table(pa.BufferReader(content), page_checksum_verification=True)
        except FileNotFoundError as error:
            return f"the rows {entry.path} lack a file: {error}" if self.fs.exists(index) else None
        except storage_errors(pa.ArrowException, ValueError, KeyError, TypeError) as error:
            return f"the rows {entry.path} cannot be used: {error}"
        if note is not None and digest_file(content) != note.file_digest:
            return f"the rows {entry.path} have been changed since they were written"
        return None

    def _problem_of_table(self, path: str) -> str | None:
        try:
            with self.fs.open(path, "rb") as file:
                digest = content_digest(pq.read_table(file, page_checksum_verification=True))
        except FileNotFoundError:
            return None
        except (pa.ArrowException, OSError) as error:
            return f"the table {path} cannot be read: {error}"
        stem = posixpath.basename(path).removesuffix(".parquet")
        return None if digest == stem else f"the table {path} has been changed since it was computed"


def _time_of(time: datetime | float) -> datetime:
    if not isinstance(time, datetime):
        return datetime.fromtimestamp(time, UTC)
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def _kind_of(folder: str, path: str) -> Kind | None:
    name = posixpath.basename(path)
    if is_temporary(name):
        return "temporary"
    if folder == RUNNING:
        return "temporary" if name.endswith(".json") else None
    if folder == SOURCES:
        return "source" if _SOURCE.fullmatch(name) else None
    return "table" if folder == Stage.SAMPLES and name.endswith(".parquet") else None
