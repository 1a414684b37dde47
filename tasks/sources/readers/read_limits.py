"""Bounds on what is read of a source, so that a small or damaged file cannot fill the memory."""

import io
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

from metric_core.errors import SourceError

LEAST_EXPANDED_BYTES = 64 * 1024**2
"""Size up to which a file may expand at any rate."""
BATCH_BYTES = 64 * 1024**2
"""Approximate size of the texts that are held as Python values at a time."""


@dataclass(frozen=True, slots=True)
class ReadLimits:
    """Bounds on what is read.

    Args:
        row_bytes: Maximum size of a row in the source.
        expansion: Maximum ratio of the size of a decompressed file to that of the file.
    """

    row_bytes: int = 16 * 1024**2
    expansion: int = 200

    @property
    def row_problem(self) -> str:
        """The problem of a row that is too large."""
        return f"the row has more than {self.row_bytes:,} bytes"

    def refuse_expansion(self, expanded: int, size: int | None, name: str) -> None:
        """Refuse a file that expands too much.

        Args:
            expanded: Size of the decompressed file as far as it is known.
            size: Size of the file; None if it is not known.
            name: Name of the file in messages.

        Raises:
            SourceError: It expands too much; the message names the option.
        """
        if size is not None and expanded > max(LEAST_EXPANDED_BYTES, self.expansion * size):
            raise SourceError(
                f"{name} has {size:,} bytes and expands to over {expanded:,}, more than {self.expansion} times as "
                "many; if that is right, set max_expansion (--max-expansion) to a larger number"
            )


class Expansion:
    """A count of the bytes that a file has expanded to so far, which refuses to expand too much.

    Args:
        size: Size of the file; None if it is not known.
        name: Name of the file in messages.
    """

    def __init__(self, limits: ReadLimits, size: int | None, name: str) -> None:
        self._limits = limits
        self._size = size
        self._name = name
        self._count = 0

    def add(self, count: int) -> None:
        """Count further bytes.

        Raises:
            SourceError: The file expands too much.
        """
        self._count += count
        self._limits.refuse_expansion(self._count, self._size, self._name)


ROW_HINT = "--max-row-bytes N accepts larger rows"


class BoundedStream(io.RawIOBase):
    """A decompressing stream that refuses to expand too much.

    Args:
        stream: Stream of decompressed bytes.
    """

    def __init__(self, stream: Any, expansion: Expansion) -> None:
        self._stream = stream
        self._expansion = expansion

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read into a buffer and return the number of bytes."""
        content = self._stream.read(len(buffer))
        buffer[: len(content)] = content
        self._expansion.add(len(content))
        return len(content)


def bounded_lines(file: BinaryIO, most: int) -> Iterator[bytes | None]:
    """Yield the lines of a file; None for a line of more bytes, which is skipped."""
    while line := file.readline(most + 1):
        if len(line) <= most or (len(line) == most + 1 and line.endswith(b"\n")):
            yield line
            continue
        while line and not line.endswith(b"\n"):
            line = file.readline(1 << 20)
        yield None
