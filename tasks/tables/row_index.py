"""Remember in which tables the rows of finished runs are, so that a later run finds the rows that have not changed.

The index of a run maps the digest of each row to the shard with its tables. It is a Parquet file beside the records,
and lists the shards in its metadata.
"""

import hashlib
import json
import logging
import posixpath
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from metric_core.errors import AssayError
from metric_core.stages import Stage
from tasks.tables.row_digests import DIGEST_BYTES, row_digests
from tasks.tables.table_files import atomic_write, filesystem, storage_errors, touch
from tasks.tables.table_store import StageRef, read

CANDIDATES = 8
"""Newest indexes that are considered, those of the same source first: stages may have been computed in another way."""

ROWS = "rows"
"""Name of the folder of indexes."""

_METADATA = b"assay.row_index"

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RowIndex:
    """The index of the rows of a finished run.

    Args:
        recipes: Mapping from each stage to the digest of everything but the input tables that determined its tables.
        shards: Tables of each shard.
        digests: Sorted first halves of the digests of the rows.
        order: Positions of these rows among all rows.
        rows: Digest of each row.
        shard_of_row: Number of the shard of each row.
    """

    recipes: Mapping[Stage, str]
    shards: Sequence[Mapping[Stage, StageRef]]
    digests: NDArray[np.uint64]
    order: NDArray[np.int64]
    rows: NDArray[np.void]
    shard_of_row: NDArray[np.int32]

    def find(self, digests: bytes) -> NDArray[np.int32]:
        """Return the shard of each row; -1 for a row that the run did not have.

        Args:
            digests: Digests of the rows, one after the other.
        """
        wanted = np.frombuffer(digests, np.dtype((np.void, DIGEST_BYTES)))
        if not len(self.rows):
            return np.full(len(wanted), -1, np.int32)
        places = np.searchsorted(self.digests, _halves(wanted))
        rows = self.order[np.minimum(places, len(self.order) - 1)]
        # Two rows whose first halves are equal are never expected; the second one would count as changed.
        return np.where(self.rows[rows] == wanted, self.shard_of_row[rows], -1).astype(np.int32)


class RowIndexes:
    """The indexes of a table store.

    Args:
        root: Path or URL of the table store.
        source: Source of the rows; indexes of other sources are considered last.
    """

    def __init__(self, root: str, source: str) -> None:
        self._fs, folder = filesystem(root)
        self._folder = posixpath.join(folder, ROWS)
        self._stem = hashlib.sha256(source.encode()).hexdigest()[:16]
        self._digests: dict[str, bytes] = {}

    def digests(self, samples: StageRef) -> bytes:
        """Return the digests of the rows of a shard, one after the other; they are computed once.

        Args:
            samples: Samples of the shard.
        """
        if samples.digest not in self._digests:
            self._digests[samples.digest] = b"".join(row_digests(read(samples)))
        return self._digests[samples.digest]

    def closest(self, recipes: Mapping[Stage, str], digests: bytes) -> RowIndex | None:
        """Return an index with a stage that was computed in the same way; None if there is none.

        It is the newest one that has half of the rows, those of the same source first; otherwise the one that has most
        of them. Sources whose names change each night, and several sources in turn, are found so.

        Args:
            recipes: Recipes of the stages of a run; see `RowIndex`.
            digests: Digests of the rows of the run, one after the other.
        """
        best: tuple[int, str, RowIndex] | None = None
        try:
            paths = self._fs.glob(posixpath.join(self._folder, "*.parquet"))
            newest = sorted(paths, key=self._fs.modified, reverse=True)
            for path in sorted(newest, key=lambda path: self._stem not in path)[:CANDIDATES]:
                index = self.open(path)
                if any(index.recipes.get(stage) == recipe for stage, recipe in recipes.items()):
                    found = int(np.count_nonzero(index.find(digests) >= 0))
                    if best is None or found > best[0]:
                        best = found, path, index
                    if 2 * found * DIGEST_BYTES >= len(digests):
                        break
            if best is not None:
                touch(self._fs, best[1])
        except storage_errors(pa.ArrowException, ValueError, KeyError, TypeError) as error:
            _logger.warning("the rows of earlier runs cannot be looked up (%s); changed shards are recomputed", error)
        return None if best is None else best[2]

    def write(self, recipes: Mapping[Stage, str], shards: Sequence[Mapping[Stage, StageRef]]) -> None:
        """Write the index of a run, unless an equal one exists.

        An index that cannot be written costs the next run time and nothing else.

        Args:
            recipes: Recipes of the stages.
            shards: Tables of each shard, including the samples.
        """
        content = {
            "recipes": recipes,
            "shards": [{stage: ref.model_dump(mode="json") for stage, ref in shard.items()} for shard in shards],
        }
        tables = [recipes, [sorted(ref.digest for ref in shard.values()) for shard in shards]]
        name = hashlib.sha256(json.dumps(tables, sort_keys=True).encode()).hexdigest()[:16]
        path = posixpath.join(self._folder, f"{self._stem}-{name}.parquet")
        try:
            if self._fs.exists(path):
                touch(self._fs, path)
                return
            atomic_write(self._fs, path, self._parquet(shards, json.dumps(content)))
        except storage_errors(AssayError) as error:
            _logger.warning("the rows of this run are not indexed: %s", error)

    def open(self, path: str) -> RowIndex:
        """Return the index in a file.

        Args:
            path: Path of the file, within its file system.
        """
        table = pq.ParquetFile(pa.BufferReader(self._fs.cat_file(path))).read()
        content: dict[str, Any] = json.loads(table.schema.metadata[_METADATA])
        packed = b"".join(table["digest"].to_pylist())
        rows = np.frombuffer(packed, np.dtype((np.void, DIGEST_BYTES)))
        halves = _halves(rows)
        order = np.argsort(halves, kind="stable")
        return RowIndex(
            recipes={Stage(stage): recipe for stage, recipe in content["recipes"].items()},
            shards=[
                {Stage(stage): StageRef.model_validate(ref) for stage, ref in shard.items()}
                for shard in content["shards"]
            ],
            digests=halves[order],
            order=order,
            rows=rows,
            shard_of_row=table["shard"].to_numpy(),
        )

    def _parquet(self, shards: Sequence[Mapping[Stage, StageRef]], content: str) -> bytes:
        schema = pa.schema(
            [
                pa.field("digest", pa.binary(DIGEST_BYTES), nullable=False),
                pa.field("shard", pa.int32(), nullable=False),
            ],
            metadata={_METADATA: content},
        )
        sink = pa.BufferOutputStream()
        with pq.ParquetWriter(sink, schema, compression="zstd") as writer:
            for number, shard in enumerate(shards):
                packed = pa.py_buffer(self.digests(shard[Stage.SAMPLES]))
                rows = len(packed) // DIGEST_BYTES
                digests = pa.FixedSizeBinaryArray.from_buffers(pa.binary(DIGEST_BYTES), rows, [None, packed])
                numbers = pa.array(np.full(rows, number, np.int32))
                writer.write_table(pa.Table.from_arrays([digests, numbers], schema=schema))
        return bytes(sink.getvalue())


def _halves(digests: NDArray[np.void]) -> NDArray[np.uint64]:
    return np.ascontiguousarray(digests).view(np.uint64).reshape(-1, DIGEST_BYTES // 8)[:, 0]
