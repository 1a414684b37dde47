"""Open local and remote files, decompress them, and translate their errors."""

import io
import lzma
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, cast

import pyarrow as pa

from metric_core.errors import SourceError
from metric_core.parsing.regular_files import regular
from tasks.rows.table_files import is_local
from tasks.sources.readers.read_limits import BoundedStream, Expansion

_COMPRESSIONS = {".gz": "gzip", ".bz2": "bz2", ".xz": "xz", ".zst": "zstd"}
_BUFFER_BYTES = 1 << 20
_MARKS = {
    b"\x1f\x8b": ("gzip", "add .gz to its name"),
    b"BZh": ("bzip2", "add .bz2 to its name"),
    b"\xfd7zXZ\0": ("xz", "add .xz to its name"),
    b"\x28\xb5\x2f\xfd": ("zstd", "add .zst to its name"),
    b"PAR1": ("Parquet", "name it .parquet"),
    b"ARROW1": ("Arrow", "name it .arrow"),
    b"PK\x03\x04": ("a zip archive or a spreadsheet", "unpack it, or save the sheet as CSV"),
}
"""Mapping from the first bytes of a file to its content and the advice for a name that does not match it."""


@dataclass(frozen=True, slots=True)
class DataFile:
    """A file that exists.

    Args:
        path: Path within the file system.
        name: Name of the file in messages.
        is_compressed: False for a file whose suffix names the compression of its parts rather than of the whole.
    """

    filesystem: Any
    path: str
    name: str
    is_compressed: bool = True

    @property
    def compression(self) -> str | None:
        """The compression named by the suffix; None for an uncompressed file."""
        return _COMPRESSIONS.get(_suffixes(self.path)[-1]) if self.is_compressed else None

    @property
    def extension(self) -> str:
        """The suffix that names the format, in lower case: ".jsonl" for "log.jsonl.gz"."""
        return _suffixes(self.path)[-2 if self.compression else -1]

    @property
    def size(self) -> int | None:
        """The size in bytes, compressed; None if the file system does not know it."""
        size = self.filesystem.size(self.path)
        return None if size is None else int(size)

    @property
    def is_regular(self) -> bool:
        """Whether the file is a regular one, or a link to one: others may have no end."""
        return not is_local(self.filesystem) or Path(self.path).is_file()

    def expansion(self) -> Expansion:
        """Return a count of the bytes that the file expands to."""
        return Expansion(self.size, self.name)

    @contextmanager
    def open(self) -> Iterator[BinaryIO]:
        """Open the file for reading its decompressed bytes.

        Raises:
            SourceError: The file cannot be opened, read or decompressed, or expands too much.
        """
        with translate_read_errors(self.name), ExitStack() as stack:
            if is_local(self.filesystem):
                regular(Path(self.path))
            if self.compression == "zstd":
                compressed = stack.enter_context(self.filesystem.open(self.path, "rb"))
                stream = stack.enter_context(pa.CompressedInputStream(pa.PythonFile(compressed, "r"), "zstd"))
            else:
                stream = stack.enter_context(self.filesystem.open(self.path, "rb", compression=self.compression))
            if self.compression is not None:
                stream = BoundedStream(stream, self.expansion())
            yield cast("BinaryIO", stack.enter_context(io.BufferedReader(stream, _BUFFER_BYTES)))


@contextmanager
def translate_read_errors(name: str) -> Iterator[None]:
    """Translate the errors of damaged or unreachable files.

    Raises:
        SourceError: A file cannot be read; the message names the source.
    """
    try:
        yield
    except (OSError, EOFError, MemoryError, zlib.error, lzma.LZMAError, pa.ArrowException) as error:
        reason = str(error) or type(error).__name__
        raise SourceError(f"{name} cannot be read: {reason}") from error


def refuse_utf16(first_bytes: bytes, name: str) -> None:
    """Refuse a UTF-16 file, as some Windows programs write.

    Raises:
        SourceError: The file is UTF-16; the message says what to do.
    """
    if first_bytes.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in first_bytes[:2]:
        raise SourceError(f"{name} is UTF-16, wanted UTF-8; save it again as UTF-8")


def refuse_other_content(first_bytes: bytes, name: str) -> None:
    """Refuse a file whose content does not match its name.

    Raises:
        SourceError: The content does not match; the message names the content and a suitable name.
    """
    for mark, (content, advice) in _MARKS.items():
        if first_bytes.startswith(mark):
            raise SourceError(f"{name} contains {content}, which does not match its name; {advice}")


def _suffixes(path: str) -> list[str]:
    bare = path.partition("?")[0] if "://" in path else path
    return ["", "", *(suffix.lower() for suffix in PurePosixPath(bare).suffixes)]
