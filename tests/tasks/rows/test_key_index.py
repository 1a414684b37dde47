"""An index of keys is a mapping in which the last location counts, however its keys are divided over arrays."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.rows import key_index
from tasks.rows.key_index import KeyIndex
from tasks.rows.mapped_arrays import MappedArrays
from tasks.rows.places import Places, Segment
from tasks.rows.row_digests import Digests

PARTS = st.lists(st.lists(st.integers(0, 20), max_size=6), max_size=8)
"""The keys of each segment."""


def keys_of(numbers: Sequence[int]) -> Digests:
    return np.frombuffer(b"".join(number.to_bytes(16, "little") for number in numbers), "V16")


def part(number: int, keys: Sequence[int]) -> tuple[Digests, Places]:
    """Return the keys of a segment, and the locations of its rows."""
    rows, ones = np.arange(len(keys), dtype=np.int32), np.ones(len(keys), np.int32)
    return keys_of(keys), Places((Segment(str(number)),), 0 * rows, rows, ones, keys_of(keys))


@pytest.mark.parametrize("most", [1, 3, 1000])
@given(PARTS, st.booleans())
def test_the_last_location_of_a_key_is_found(most: int, parts: Sequence[Sequence[int]], at_once: bool) -> None:
    index = KeyIndex(MappedArrays())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(key_index, "MOST_KEYS", most)
        given_parts = [part(number, keys) for number, keys in enumerate(parts)]
        if at_once:
            index.add_all(given_parts)
        else:
            for keys, placed in given_parts:
                index.add(keys, placed)
    wanted = {key: (str(number), row) for number, keys in enumerate(parts) for row, key in enumerate(keys)}
    found = index.find(keys_of(range(21)))
    segments = [None if number < 0 else found.segments[number].path for number in found.segment.tolist()]
    pairs = zip(segments, found.start.tolist(), strict=True)
    assert {key: pair for key, pair in enumerate(pairs) if pair[0] is not None} == wanted
