"""Read a stage's table in a run folder: shard by shard, or the rows of samples, without reading the whole table.

A shard is a row group of the table. The row groups of each sample are looked up once, so reading the rows of all
shards in turn costs as much as reading the table once.
"""

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from metric_core.stages import Stage
from tasks.rows.merge import select_rows
from tasks.rows.records import add_missing_columns
from tasks.runs.file_checks import unreadable_error


def iterate_shards(
    path: Path, columns: Sequence[str] | None = None, stage: Stage = Stage.SAMPLES
) -> Iterator[pa.Table]:
    """Yield the shards of a stage's table, one in memory at a time.

    Args:
        columns: Columns to read; None for all.

    Raises:
        RunFolderError: The file is damaged or cannot be read.
    """
    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            for number in range(file.num_row_groups):
                yield add_missing_columns(file.read_row_group(number, columns=columns), stage, columns)
    except (pa.ArrowException, OSError) as error:
        raise unreadable_error(path, error) from error


class RowGroups:
    """A stage's table, indexed by sample. Errors of pyarrow are not translated."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._metadata = pq.read_metadata(path)
        self._groups: dict[str, tuple[int, ...]] = {}
        with self._open() as file:
            for number in range(file.num_row_groups):
                for row_id in file.read_row_group(number, columns=["row_id"])["row_id"].unique().to_pylist():
                    self._groups[row_id] = (*self._groups.get(row_id, ()), number)

    def rows(self, row_ids: Collection[str]) -> pa.Table:
        """Return the rows that belong to these samples, in the table's order."""
        numbers = sorted({number for row_id in row_ids for number in self._groups.get(row_id, ())})
        with self._open() as file:
            return select_rows(file.read_row_groups(numbers), row_ids)

    def _open(self) -> pq.ParquetFile:
        return pq.ParquetFile(self._path, metadata=self._metadata, page_checksum_verification=True)
