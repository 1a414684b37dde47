"""Map digests to small numbers in as little memory as possible."""

from array import array

_SLOTS = 1 << 10


class DigestTable:
    """A mapping from digests of eight bytes to numbers below 2^32, at 18 to 36 bytes per digest.

    Two of ten million texts have equal digests with a probability of three in a million.

    >>> table = DigestTable()
    >>> table.setdefault(b"digest-1", 7), table.setdefault(b"digest-1", 8)
    (7, 7)
    """

    def __init__(self) -> None:
        self._keys, self._values = array("Q", bytes(8 * _SLOTS)), array("I", bytes(4 * _SLOTS))
        self._free = 2 * _SLOTS // 3

    def setdefault(self, digest: bytes, value: int) -> int:
        """Return the number of a digest, which is the given one if it has none yet."""
        key, slot = self._find(digest)
        if not self._keys[slot]:
            self._keys[slot], self._values[slot] = key, value
            self._free -= 1
            if not self._free:
                self._grow()
            return value
        return self._values[slot]

    def __setitem__(self, digest: bytes, value: int) -> None:
        """Change the number of a digest that has one."""
        self._values[self._find(digest)[1]] = value

    def _find(self, digest: bytes) -> tuple[int, int]:
        """Return the key of a digest, and the slot that has it or is free for it."""
        key = int.from_bytes(digest, "little") or 1  # zero is a free slot
        return key, self._slot(key)

    def _slot(self, key: int) -> int:
        keys = self._keys
        last = len(keys) - 1
        slot = key & last
        while keys[slot] and keys[slot] != key:
            slot = (slot + 1) & last
        return slot

    def _grow(self) -> None:
        keys, values = self._keys, self._values
        self._keys, self._values = array("Q", bytes(16 * len(keys))), array("I", bytes(8 * len(keys)))
        for key, value in zip(keys, values, strict=True):
            if key:
                slot = self._slot(key)
                self._keys[slot], self._values[slot] = key, value
        self._free = 2 * len(self._keys) // 3 - 2 * len(keys) // 3
