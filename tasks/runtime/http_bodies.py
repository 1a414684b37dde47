"""Read the bodies of HTTP replies within a limit, decompressed piece by piece.

A few kilobytes of compressed zeros become gigabytes. HTTP clients decompress each piece that arrives as a whole, so
replies are taken from them compressed.
"""

import zlib

ACCEPTED = "gzip, deflate"
"""The value of the header `Accept-Encoding`: the compressions that `BoundedBody` reads."""

_ENCODINGS = frozenset({"", "identity", "gzip", "x-gzip", "deflate"})
_PIECE = 1 << 20


class UnreadableBodyError(Exception):
    """The body is larger than the limit, or is compressed in a way that was not asked for or that is damaged."""


class BoundedBody:
    """The body of a reply, held in memory up to a limit.

    Args:
        encoding: Value of the header `Content-Encoding`; None if there is none.
        limit: Maximum number of bytes, after decompression.

    Raises:
        UnreadableBodyError: The encoding is unknown.

    >>> body = BoundedBody("gzip", 100)
    >>> body.add(zlib.compress(bytes(1000), wbits=31))
    Traceback (most recent call last):
    ...
    tasks.runtime.http_bodies.UnreadableBodyError: reply larger than 100 bytes
    """

    def __init__(self, encoding: str | None, limit: int) -> None:
        self._encoding = (encoding or "").strip().lower()
        if self._encoding not in _ENCODINGS:
            raise UnreadableBodyError(f"reply compressed as {self._encoding[:20]!r}, wanted {ACCEPTED} or none")
        self._limit = limit
        self._content = bytearray()
        self._decompressor: zlib._Decompress | None = None

    def add(self, piece: bytes) -> None:
        """Add a piece as it was received.

        Raises:
            UnreadableBodyError: The body has become larger than the limit, or is damaged.
        """
        if self._encoding in ("", "identity"):
            self._append(piece)
            return
        try:
            self._decompress(piece)
        except zlib.error as error:
            raise UnreadableBodyError(f"reply damaged in its compression ({self._encoding})") from error

    def content(self) -> bytes:
        """Return the body.

        Raises:
            UnreadableBodyError: The compressed body ends too early.
        """
        if self._decompressor is not None and not self._decompressor.eof:
            raise UnreadableBodyError(f"reply damaged in its compression ({self._encoding})")
        return bytes(self._content)

    def _decompress(self, piece: bytes) -> None:
        output = b""
        while piece or len(output) == _PIECE:  # more output may wait although all input is consumed
            if self._decompressor is None or self._decompressor.eof:  # gzip may hold several members
                if not piece:
                    return
                self._decompressor = zlib.decompressobj(self._window_bits(piece))
            output = self._decompressor.decompress(piece, _PIECE)
            self._append(output)
            piece = self._decompressor.unconsumed_tail or self._decompressor.unused_data

    def _window_bits(self, piece: bytes) -> int:
        """Return the window bits: some servers send `deflate` without the header of zlib."""
        is_raw = self._encoding == "deflate" and piece[0] & 0xF != 8
        return -zlib.MAX_WBITS if is_raw else zlib.MAX_WBITS | 32

    def _append(self, content: bytes) -> None:
        if len(self._content) + len(content) > self._limit:
            self._content.clear()
            raise UnreadableBodyError(f"reply larger than {self._limit:,} bytes")
        self._content += content
