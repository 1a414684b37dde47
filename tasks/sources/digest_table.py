"""Map digests to numbers in as little memory as possible."""

from array import array


class DigestTable:
    """A mapping from digests of eight bytes to numbers below 2^32, at 18 to 36 bytes per digest.

    Two of ten million texts have equal digests with a probability of three in a million.

    >>> table = DigestTable()
    >>> table.setdefault(b"digest-1", 7), table.setdefault(b"digest-1", 8)
    (7, 7)
    """

    def __init__(self) -> None:
        self._allocate(1 << 10)

    def setdefault(self, digest: bytes, value: int) -> int:
        """Return the number of a digest, which is the given one if it has none yet."""
        if not self._free:
            keys, values = self._keys, self._values
            self._allocate(2 * len(keys))
            for key, earlier in zip(keys, values, strict=True):
                if key:
                    self._add(key, earlier)
        return self._add(int.from_bytes(digest, "little") or 1, value)  # zero is a free slot

    def _allocate(self, slots: int) -> None:
        self._keys, self._values, self._free = (
            array("Q", bytes(8 * slots)),
            array("I", bytes(4 * slots)),
            2 * slots // 3,
        )

    def _add(self, key: int, value: int) -> int:
        keys, last = self._keys, len(self._keys) - 1
        slot = key & last
        while keys[slot] and keys[slot] != key:
            slot = (slot + 1) & last
        if not keys[slot]:
            keys[slot], self._values[slot] = key, value
            self._free -= 1
        return self._values[slot]
