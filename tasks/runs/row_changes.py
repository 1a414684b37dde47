"""Find the rows that were added, removed or changed between two runs, and the columns that changed.

Rows are compared by digests of their cells, so that only one shard at a time is in memory.
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
"""The columns of a samples table that are compared; the position of a row in its source is not content."""


@dataclass(frozen=True, slots=True)
class RowChanges:
    """The differences between the rows of a run and those of an earlier run.

    Args:
        added: Ids of the rows that only the later run has.
        removed: Ids of the rows that only the earlier run has.
        changed: Mapping from row id to the columns that differ, for changed rows that both runs have.
        unchanged: Number of rows that are equal in both runs.
    """

    added: tuple[str, ...]
    removed: tuple[str, ...]
    changed: Mapping[str, tuple[str, ...]]
    unchanged: int


def find_row_changes(earlier: Iterable[pa.Table], later: Iterable[pa.Table]) -> RowChanges:
    """Compare the samples of two runs by their row ids.

    Args:
        earlier: Samples tables of the earlier run, shard by shard.
        later: Samples tables of the later run, shard by shard.
    """
    before = _digests(earlier)
    after = _digests(later)
    both = [row_id for row_id in after if row_id in before]
    changed = {
        row_id: _differing_columns(before[row_id], after[row_id]) for row_id in both if before[row_id] != after[row_id]
    }
    return RowChanges(
        added=tuple(row_id for row_id in after if row_id not in before),
        removed=tuple(row_id for row_id in before if row_id not in after),
        changed=changed,
        unchanged=len(both) - len(changed),
    )


def _digests(shards: Iterable[pa.Table]) -> dict[str, bytes]:
    """Return a mapping from row id to the concatenated digests of its columns."""
    digests: dict[str, bytes] = {}
    for shard in shards:
        columns = [[_digest(cell) for cell in shard[name].to_pylist()] for name in CONTENT]
        rows = map(b"".join, zip(*columns, strict=True))
        digests.update(zip(shard["row_id"].to_pylist(), rows, strict=True))
    return digests


def _digest(cell: object) -> bytes:
    return blake2b(json.dumps(cell).encode(), digest_size=_DIGEST_BYTES).digest()


def _differing_columns(before: bytes, after: bytes) -> tuple[str, ...]:
    starts = range(0, len(CONTENT) * _DIGEST_BYTES, _DIGEST_BYTES)
    return tuple(
        name
        for name, start in zip(CONTENT, starts, strict=True)
        if before[start : start + _DIGEST_BYTES] != after[start : start + _DIGEST_BYTES]
    )
