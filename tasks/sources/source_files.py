"""A file on a disk or behind a URL: its name, its format, and its bytes without the compression."""

import io
import lzma
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, BinaryIO, cast

import pyarrow as pa

from metric_core.errors import SourceError

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
"""First bytes of a file -> what it holds, and what to do about a name that says otherwise."""


@dataclass(frozen=True, slots=True)
class DataFile:
    """A file that exists.

    Args:
        filesystem: the fsspec file system.
        path: its path there.
        name: what messages call it.
    """

    filesystem: Any
    path: str
    name: str

    @property
    def compression(self) -> str | None:
        """How it is compressed, by its suffix."""
        return _COMPRESSIONS.get(_suffixes(self.path)[-1])

    @property
    def extension(self) -> str:
        """The suffix that names the format, in small letters: ".jsonl" of "log.jsonl.gz"."""
        return _suffixes(self.path)[-2 if self.compression else -1]

    @contextmanager
    def open(self) -> Iterator[BinaryIO]:
        """The file's bytes, decompressed.

        Raises:
            SourceError: it can not be opened, read or decompressed.
        """
        with translate_read_errors(self.name), ExitStack() as stack:
            if self.compression == "zstd":
                packed = stack.enter_context(self.filesystem.open(self.path, "rb"))
                stream = stack.enter_context(pa.CompressedInputStream(pa.PythonFile(packed, "r"), "zstd"))
            else:
                stream = stack.enter_context(self.filesystem.open(self.path, "rb", compression=self.compression))
            yield cast("BinaryIO", stack.enter_context(io.BufferedReader(stream, _BUFFER_BYTES)))


@contextmanager
def translate_read_errors(name: str) -> Iterator[None]:
    """Turns the many errors of damaged or unreachable files into the user's.

    Raises:
        SourceError: with the name of the source.
    """
    try:
        yield
    except (OSError, EOFError, zlib.error, lzma.LZMAError, pa.ArrowException) as error:
        reason = str(error) or type(error).__name__
        raise SourceError(f"{name} can not be read: {reason}") from error


def refuse_utf16(first_bytes: bytes, name: str) -> None:
    """Refuses a text file that some Windows programs write.

    Raises:
        SourceError: with the way out.
    """
    if first_bytes.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in first_bytes[:2]:
        raise SourceError(f"{name} is UTF-16, wanted UTF-8; save it again as UTF-8")


def refuse_other_content(first_bytes: bytes, name: str) -> None:
    """Refuses a text file whose content is something else than its name says.

    Raises:
        SourceError: with what it is and the name that it should have.
    """
    for mark, (content, advice) in _MARKS.items():
        if first_bytes.startswith(mark):
            raise SourceError(f"{name} holds {content}, which its name does not say; {advice}")


def _suffixes(path: str) -> list[str]:
    bare = path.partition("?")[0] if "://" in path else path
    return ["", "", *(suffix.lower() for suffix in PurePosixPath(bare).suffixes)]
