"""Rows are read in the order of the samples, and each segment once, in whatever order they are stored."""

import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random
from tempfile import TemporaryFile
from typing import IO

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metric_core.errors import StorageError
from tasks.rows import ordered_reading
from tasks.rows.ordered_reading import read_in_order
from tasks.rows.places import Places, Segment
from tasks.rows.row_digests import DIGEST

SIZES = st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=6), min_size=1, max_size=6)
"""For each segment, the number of rows of each of its samples."""


def read(
    sizes: Sequence[Sequence[int]], order: Sequence[int], shard: int, *, more_segments: bool
) -> tuple[list[list[str]], Counter[Segment]]:
    """Return the texts of shards of samples in an order, and how often each segment is decoded.

    Args:
        more_segments: True for locations that list segments without samples, too.
    """
    tables, parts, decoded = {}, [], Counter[Segment]()
    for number, counts in enumerate(sizes):
        segment = Segment(f"{number}.parquet")
        texts = [f"{number}.{sample}.{row}" for sample, count in enumerate(counts) for row in range(count)]
        tables[segment] = pa.table({"text": pa.array(texts, pa.string())})
        count = np.array(counts, np.int32)
        start = (np.cumsum(count) - count).astype(np.int32)
        parts.append(Places((segment,), np.zeros(len(counts), np.int32), start, count, np.zeros(len(counts), DIGEST)))
    placed = Places.concat(parts)
    shards = [placed.select(np.array(order[start : start + shard])) for start in range(0, len(order), shard)]
    if more_segments:
        shards = [
            replace(each, segments=placed.segments, segment=placed.segment[order[start : start + shard]])
            for each, start in zip(shards, range(0, len(order), shard), strict=True)
        ]

    def decode(segment: Segment) -> pa.Table:
        decoded[segment] += 1
        return tables[segment]

    return [table["text"].to_pylist() for table in read_in_order(decode, shards)], decoded


@pytest.mark.parametrize("batch_bytes", [1, 40, 1 << 20])
@settings(max_examples=30)
@given(SIZES, st.randoms(use_true_random=False), st.integers(1, 5), st.booleans())
def test_rows_come_in_order_and_segments_are_decoded_once(
    batch_bytes: int, sizes: Sequence[Sequence[int]], random: Random, shard: int, more_segments: bool
) -> None:
    samples = [(number, sample) for number, counts in enumerate(sizes) for sample in range(len(counts))]
    order = list(range(len(samples)))
    random.shuffle(order)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ordered_reading, "BATCH_BYTES", batch_bytes)
        shards, decoded = read(sizes, order, shard, more_segments=more_segments)
    wanted = [
        [
            f"{number}.{sample}.{row}"
            for number, sample in (samples[each] for each in order[start : start + shard])
            for row in range(sizes[number][sample])
        ]
        for start in range(0, len(order), shard)
    ]
    assert shards == wanted
    assert set(decoded.values()) == {1}


def test_the_files_of_rows_that_are_not_read_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ordered_reading, "BATCH_BYTES", 1)
    opened: list[IO[bytes]] = []

    def open_file() -> IO[bytes]:
        opened.append(TemporaryFile())  # noqa: SIM115 closed by what is tested
        return opened[-1]

    monkeypatch.setattr(ordered_reading, "TemporaryFile", open_file)
    tables = {Segment("a"): pa.table({"text": ["0", "1"]})}
    zeros, one = np.zeros(1, np.int32), np.ones(1, np.int32)
    shards = [Places((Segment("a"),), zeros, zeros + np.int32(start), one, np.zeros(1, DIGEST)) for start in (0, 1)]
    reading = read_in_order(tables.__getitem__, shards)
    assert next(reading)["text"].to_pylist() == ["0"]
    reading.close()
    assert [file.closed for file in opened] == [True]


def test_no_room_for_temporary_files_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ordered_reading, "BATCH_BYTES", 1)
    monkeypatch.setattr(ordered_reading, "TemporaryFile", partial(Path("/dev/full").open, "r+b", buffering=64))
    tables = {Segment("a"): pa.table({"text": ["0", "1" * 100]})}
    zeros, one = np.zeros(1, np.int32), np.ones(1, np.int32)
    shards = [Places((Segment("a"),), zeros, zeros + np.int32(start), one, np.zeros(1, DIGEST)) for start in (0, 1)]
    with pytest.raises(StorageError, match=f"in {tempfile.gettempdir()}: No space left.*set TMPDIR"):
        list(read_in_order(tables.__getitem__, shards))
