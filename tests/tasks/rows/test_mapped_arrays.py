"""Arrays in files have the same values, and free their memory with the last that uses it."""

import gc
from collections.abc import Sequence

import numpy as np
import pytest

from tasks.rows import mapped_arrays
from tasks.rows.mapped_arrays import MappedArrays
from tasks.rows.row_digests import DIGEST


@pytest.mark.parametrize("lengths", [[0], [5], [3, 0, 4]])
def test_moved_arrays_are_equal(lengths: Sequence[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mapped_arrays, "MAPPED_BYTES", 1)
    arrays = MappedArrays()
    for kind in (np.dtype(np.int32), DIGEST):
        parts = [np.arange(4 * length, dtype=np.int32).view(kind)[::-1] for length in lengths]
        moved = arrays.move(parts)
        arrays.rest()
        assert [each.tobytes() for each in moved] == [part.tobytes() for part in parts]
        assert [each.dtype for each in moved] == [kind] * len(lengths)
    assert arrays.move([]) == []


def test_what_nobody_uses_is_freed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mapped_arrays, "MAPPED_BYTES", 1)
    arrays = MappedArrays()
    (first,), (second,) = arrays.move([np.arange(5)]), arrays.move([np.arange(7)])
    assert len(arrays.maps) == 2
    del first
    gc.collect()
    assert len(arrays.maps) == 1
    assert second.sum() == 21
