"""Read rows of a stage's table in a run folder by sample, without reading the whole table each time.

A shard is a row group of the table. The row groups of each sample are looked up once, so reading the rows of all
shards in turn costs as much as reading the table once.
"""

from collections.abc import Collection
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tasks.tables.merge import select_rows


class RowGroups:
    """A stage's table, indexed by sample. Errors of pyarrow are not translated.

    Args:
        path: Parquet file of the table.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._metadata = pq.read_metadata(path)
        self._groups: dict[str, tuple[int, ...]] = {}
        with self._open() as file:
            for number in range(file.num_row_groups):
                for row_id in file.read_row_group(number, columns=["row_id"])["row_id"].unique().to_pylist():
                    self._groups[row_id] = (*self._groups.get(row_id, ()), number)

    def rows(self, row_ids: Collection[str]) -> pa.Table:
        """Return the rows that belong to these samples, in the table's order.

        Args:
            row_ids: Ids of samples.
        """
        numbers = sorted({number for row_id in row_ids for number in self._groups.get(row_id, ())})
        with self._open() as file:
            return select_rows(file.read_row_groups(numbers), row_ids)

    def _open(self) -> pq.ParquetFile:
        return pq.ParquetFile(self._path, metadata=self._metadata, page_checksum_verification=True)
