"""A table of digests says of each which number it was given first, however many there are."""

from hashlib import blake2b

from tasks.sources.digest_table import DigestTable


def test_the_first_number_of_a_digest_stays() -> None:
    digests = [
        bytes(8),
        *(blake2b(bytes([number % 256, number // 256]), digest_size=8).digest() for number in range(5000)),
    ]
    table = DigestTable()
    assert [table.setdefault(digest, number) for number, digest in enumerate(digests)] == list(range(5001))
    assert [table.setdefault(digest, 0) for digest in digests] == list(range(5001))
