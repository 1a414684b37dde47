"""Read the rows of segments, which stay decoded in memory while they are used."""

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from itertools import repeat
from threading import Lock
from typing import TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from metric_core.errors import AssayError
from metric_core.schemas import SCHEMAS
from metric_core.stages import Stage
from tasks.rows.ordered_reading import read_in_order
from tasks.rows.places import Places, Segment
from tasks.rows.records import add_missing_columns
from tasks.rows.table_files import open_stored

MOST_BYTES = 32 << 20
"""Size of the decoded segments that stay in memory."""

MOST_FILES = 64
"""Number of files whose metadata stays in memory."""

_Key: TypeAlias = tuple[Segment, tuple[str, ...] | None]


class SegmentReader:
    """Reads rows of segments. May be used from several threads."""

    def __init__(self) -> None:
        self._tables: OrderedDict[_Key, pa.Table] = OrderedDict()
        self._metadata: OrderedDict[str, pq.FileMetaData] = OrderedDict()
        self._size = 0
        self._pinned: dict[Segment, pa.Table] = {}
        self._lock = Lock()

    def pin(self, segment: Segment, table: pa.Table) -> None:
        """Keep the rows of a segment that has no file."""
        with self._lock:
            self._pinned[segment] = table

    def release(self) -> None:
        """Free the memory of the segments that have a file."""
        with self._lock:
            self._tables.clear()
            self._size = 0

    def read(self, stage: Stage, placed: Places, columns: Sequence[str] | None = None) -> pa.Table:
        """Return rows, in the order of their samples; the segments are kept in memory for the next call.

        Args:
            placed: Locations of the rows; none may be missing.
            columns: Columns to read; None for all.

        Raises:
            AssayError: A segment is missing, damaged, unreachable, or of another schema version.
        """
        return next(self.read_shards(stage, [placed], columns, keep=True))

    def read_shards(
        self, stage: Stage, shards: Sequence[Places], columns: Sequence[str] | None = None, *, keep: bool = False
    ) -> Iterator[pa.Table]:
        """Yield the rows of shards as `read` returns them; segments are decoded once.

        Args:
            keep: True to keep the segments in memory for the next call.
        """
        if missing := sum(int(placed.missing.sum()) for placed in shards):
            raise ValueError(f"{missing} of the rows of {stage} to read are missing")
        if not any(map(len, shards)):
            return repeat(add_missing_columns(SCHEMAS[stage].arrow.empty_table(), stage, columns), len(shards))
        return read_in_order(lambda segment: self._segment(stage, segment, columns, keep=keep), shards)

    def _segment(self, stage: Stage, segment: Segment, columns: Sequence[str] | None, *, keep: bool) -> pa.Table:
        """Return the rows of a segment, with all wanted columns of the schema."""
        wanted = None if columns is None else tuple(columns)
        with self._lock:
            table = self._pinned.get(segment)
            for key in ((segment, None), (segment, wanted)):
                if table is None and key in self._tables:
                    self._tables.move_to_end(key)
                    table = self._tables[key]
        if table is None:
            table = self._decode(stage, segment, wanted)
            if keep:
                self._remember((segment, wanted), table)
        names = table.column_names if columns is None else [name for name in columns if name in table.column_names]
        complete = add_missing_columns(table.select(names), stage, columns)
        return complete.replace_schema_metadata(SCHEMAS[stage].arrow.metadata)

    def _decode(self, stage: Stage, segment: Segment, columns: Sequence[str] | None) -> pa.Table:
        what = f"the file {segment.path} with rows of {stage}"
        with self._lock:
            metadata = self._metadata.get(segment.path)
        with open_stored(segment.path, what, metadata) as file:
            _check_version(stage, what, file.schema_arrow)
            with self._lock:
                self._metadata[segment.path] = file.metadata
                if len(self._metadata) > MOST_FILES:
                    self._metadata.popitem(last=False)
            return file.read_row_group(0, columns)

    def _remember(self, key: _Key, table: pa.Table) -> None:
        with self._lock:
            if key not in self._tables:
                self._tables[key] = table
                self._size += table.nbytes
            while self._size > MOST_BYTES and len(self._tables) > 1:
                _, oldest = self._tables.popitem(last=False)
                self._size -= oldest.nbytes


def _check_version(stage: Stage, what: str, schema: pa.Schema) -> None:
    version = (schema.metadata or {}).get(b"assay.version", b"").decode()
    if not SCHEMAS[stage].can_read(version):
        raise AssayError(
            f"{what} has schema version {version}, this rag-assay reads {SCHEMAS[stage].version}. "
            "Run the evaluation again to recompute it."
        )
