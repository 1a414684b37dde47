"""Arrays in files have the same values, and free their memory with the last that uses it."""

import gc
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import IO, Any

import numpy as np
import pytest
from numpy.typing import NDArray

from metric_core.errors import StorageError
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


def test_arrays_of_all_types_are_in_one_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mapped_arrays, "MAPPED_BYTES", 1)
    arrays = MappedArrays()
    parts: list[NDArray[Any]] = [
        np.arange(3, dtype=np.int32),
        np.zeros(0, np.int64),
        np.arange(5),
        np.zeros(2, DIGEST),
        np.ones(1),
    ]
    moved = arrays.move(parts)
    assert len(arrays.maps) == 1  # each is an open file, of which a process may have about a thousand
    assert [(each.dtype, each.tobytes()) for each in moved] == [(part.dtype, part.tobytes()) for part in parts]
    assert all(each.flags.aligned and each.flags.writeable for each in moved)


def test_what_nobody_uses_is_freed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mapped_arrays, "MAPPED_BYTES", 1)
    arrays = MappedArrays()
    (first,), (second,) = arrays.move([np.arange(5)]), arrays.move([np.arange(7)])
    assert len(arrays.maps) == 2
    del first
    gc.collect()
    assert len(arrays.maps) == 1
    assert second.sum() == 21


@pytest.mark.parametrize(
    ("opening", "problem"),
    [
        (partial(Path("/dev/full").open, "r+b", buffering=64), "No space left"),
        (partial(Path("/nowhere/file").open, "r+b"), "No such file"),
    ],
)
def test_no_room_for_temporary_files_is_told(
    opening: Callable[[], IO[bytes]], problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mapped_arrays, "MAPPED_BYTES", 1)
    monkeypatch.setattr(mapped_arrays, "TemporaryFile", opening)
    with pytest.raises(StorageError, match=f"in {tempfile.gettempdir()}: {problem}.*set TMPDIR"):
        MappedArrays().move([np.arange(1000)])
