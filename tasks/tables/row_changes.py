"""What became of the rows of an earlier run: which are new, gone, or say something else, and in which column.

Rows are compared by digests of their cells, so that of either run one shard at a time is in memory.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import blake2b

import pyarrow as pa

from metric_core.schemas import SAMPLES

_DIGEST_BYTES = 8
_NOT_CONTENT = ("row_id", "row_number")
CONTENT: tuple[str, ...] = tuple(field.name for field in SAMPLES.fields if field.name not in _NOT_CONTENT)
"""The columns of a samples table that are compared; where a row stands in its source is not its content."""


@dataclass(frozen=True, slots=True)
class RowChanges:
    """How the rows of a run differ from those of an earlier one.

    Args:
        added: ids of rows that the earlier run did not have.
        removed: ids of rows that only the earlier run had.
        changed: id -> the columns that differ, for rows that both have.
        unchanged: how many rows are the same in both.
    """

    added: tuple[str, ...]
    removed: tuple[str, ...]
    changed: Mapping[str, tuple[str, ...]]
    unchanged: int


def find_row_changes(earlier: Iterable[pa.Table], later: Iterable[pa.Table]) -> RowChanges:
    """Compares the samples of two runs by their row ids.

    Args:
        earlier: the samples tables of the earlier run, shard after shard.
        later: those of the later one.
    """
    before = _digests(earlier)
    after = _digests(later)
    both = [row_id for row_id in after if row_id in before]
    changed = {row_id: _differing(before[row_id], after[row_id]) for row_id in both if before[row_id] != after[row_id]}
    return RowChanges(
        added=tuple(row_id for row_id in after if row_id not in before),
        removed=tuple(row_id for row_id in before if row_id not in after),
        changed=changed,
        unchanged=len(both) - len(changed),
    )


def _digests(shards: Iterable[pa.Table]) -> dict[str, bytes]:
    """Row id -> the digests of its content, column after column."""
    found: dict[str, bytes] = {}
    for shard in shards:
        columns = [[_digest(cell) for cell in shard[name].to_pylist()] for name in CONTENT]
        rows = map(b"".join, zip(*columns, strict=True))
        found.update(zip(shard["row_id"].to_pylist(), rows, strict=True))
    return found


def _digest(cell: object) -> bytes:
    return blake2b(json.dumps(cell).encode(), digest_size=_DIGEST_BYTES).digest()


def _differing(before: bytes, after: bytes) -> tuple[str, ...]:
    starts = range(0, len(CONTENT) * _DIGEST_BYTES, _DIGEST_BYTES)
    return tuple(
        name
        for name, start in zip(CONTENT, starts, strict=True)
        if before[start : start + _DIGEST_BYTES] != after[start : start + _DIGEST_BYTES]
    )
