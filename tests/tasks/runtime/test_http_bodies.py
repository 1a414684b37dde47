"""Tests of reading HTTP bodies within a limit."""

import gzip
import tracemalloc
import zlib

import pytest

from tasks.runtime.http_bodies import BoundedBody, UnreadableBodyError

TEXT = b"It rains in Paris. " * 1000


def _raw_deflate(text: bytes) -> bytes:
    compressor = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return compressor.compress(text) + compressor.flush()


def test_body_is_the_same_in_any_pieces() -> None:
    cases: list[tuple[str | None, bytes]] = [
        (None, TEXT),
        ("identity", TEXT),
        ("gzip", gzip.compress(TEXT)),
        ("GZIP", gzip.compress(TEXT[:100]) + gzip.compress(TEXT[100:])),
        ("deflate", zlib.compress(TEXT)),
        ("deflate", _raw_deflate(TEXT)),
    ]
    for size in [1, 37, 1_000_000]:
        for encoding, sent in cases:
            body = BoundedBody(encoding, len(TEXT))
            for start in range(0, len(sent), size):
                body.add(sent[start : start + size])
            assert body.content() == TEXT, (encoding, sent, size)
            with pytest.raises(UnreadableBodyError, match=r"reply larger than 18,999 bytes$"):
                BoundedBody(encoding, len(TEXT) - 1).add(sent)


def test_a_bomb_takes_little_memory() -> None:
    bomb = gzip.compress(bytes(200_000_000))
    tracemalloc.start()
    with pytest.raises(UnreadableBodyError, match="larger than"):
        BoundedBody("gzip", 4_000_000).add(bomb)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 12_000_000


def test_a_damaged_body_is_refused() -> None:
    with pytest.raises(UnreadableBodyError, match="damaged"):
        BoundedBody("gzip", 100).add(b"no gzip")
    cut = BoundedBody("gzip", 10**6)
    cut.add(gzip.compress(TEXT)[:-20])
    with pytest.raises(UnreadableBodyError, match="damaged"):
        cut.content()
    with pytest.raises(UnreadableBodyError, match="compressed as 'br', wanted gzip, deflate or none"):
        BoundedBody("br", 100)
