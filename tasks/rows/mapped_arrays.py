"""Keep arrays in temporary files that are mapped into memory, so that the system can take their memory back."""

import mmap
from collections.abc import Sequence
from ctypes import CDLL
from tempfile import TemporaryFile
from threading import Lock
from typing import Any
from weakref import WeakSet

import numpy as np
from numpy.typing import NDArray

from tasks.rows.temporary_files import name_folder

MAPPED_BYTES = 1 << 18
"""Size of arrays from which on they are moved to a file."""

_ALIGNED = 16
"""The position of an array in a file is a multiple of it, as processors read such arrays quickly."""


class MappedArrays:
    """Arrays in temporary files. May be used from several threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self.maps: WeakSet[mmap.mmap] = WeakSet()
        """The files whose arrays are in use."""

    def move(self, parts: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        """Return equal arrays, which may be changed; those that are large together are in one file.

        Raises:
            StorageError: The file cannot be written.
        """
        size = sum(part.nbytes for part in parts)
        if size < MAPPED_BYTES:
            return [*parts]
        with name_folder(), TemporaryFile() as file:
            starts = []
            for part in parts:
                file.write(bytes(-file.tell() % _ALIGNED))
                starts.append(file.tell())
                file.write(np.ascontiguousarray(part).view(np.uint8).data)
            file.flush()
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_WRITE)
        with self._lock:
            self.maps.add(mapped)
        pairs = zip(parts, starts, strict=True)
        return [np.frombuffer(mapped, part.dtype, len(part), start) if len(part) else part for part, start in pairs]

    def rest(self) -> None:
        """Give back the memory of what has been read; it is read again where it is needed."""
        with self._lock:
            maps = [*self.maps]
        for mapped in maps:
            mapped.madvise(mmap.MADV_DONTNEED)
        if (trim := getattr(CDLL(None), "malloc_trim", None)) is not None:
            trim(0)  # the C library of most Linux systems keeps what was freed
