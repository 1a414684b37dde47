"""Limit what is read of a source, so that a small or damaged file cannot fill the memory."""

import io
from collections.abc import Iterator
from typing import Any, BinaryIO

from metric_core.errors import SourceError

LEAST_EXPANDED_BYTES = 64 * 1024**2
"""Size up to which a file may expand at any rate."""
BATCH_BYTES = 64 * 1024**2
"""Approximate size of the texts that are held as Python values at a time."""


MAX_EXPANSION = 200
"""Number of times its size that a larger file may expand to."""
MAX_ROW_BYTES = 16 * 1024**2
"""Size of the largest row that is read."""


def row_problem() -> str:
    """Return the problem of a row that is too large."""
    return f"the row has more than {MAX_ROW_BYTES:,} bytes"


def _refuse_expansion(expanded: int, size: int | None, name: str) -> None:
    """Refuse a file that expands too much.

    Args:
        expanded: Size of the decompressed file, if known.
        size: Size of the file; None if it is not known.
    """
    if size is not None and expanded > max(LEAST_EXPANDED_BYTES, MAX_EXPANSION * size):
        raise SourceError(
            f"{name} has {size:,} bytes and expands to over {expanded:,}, more than {MAX_EXPANSION} times as many; if "
            "that is right, store it with less compression"
        )


class Expansion:
    """A count of the bytes that a file has expanded to so far, which refuses to expand too much.

    Args:
        size: Size of the file; None if it is not known.
        name: Name of the file in messages.
    """

    def __init__(self, size: int | None, name: str) -> None:
        self._size = size
        self._name = name
        self._count = 0

    def add(self, count: int) -> None:
        """Count further bytes.

        Raises:
            SourceError: The file expands too much.
        """
        self._count += count
        _refuse_expansion(self._count, self._size, self._name)


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


def bounded_lines(file: BinaryIO, most: int | None = None) -> Iterator[bytes | None]:
    """Yield the lines of a file; None for a line of more bytes, which is skipped.

    Args:
        most: Size of the longest line; None for that of a row.
    """
    most = MAX_ROW_BYTES if most is None else most
    while line := file.readline(most + 1):
        if len(line) <= most or (len(line) == most + 1 and line.endswith(b"\n")):
            yield line
            continue
        while line and not line.endswith(b"\n"):
            line = file.readline(1 << 20)
        yield None
