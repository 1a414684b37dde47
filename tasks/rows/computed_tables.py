"""Hold the tables of a run: the samples of each shard, and the places of the results of each stage for them."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.parquet as pq

from metric_core.schemas import SCHEMAS
from metric_core.stages import Stage
from tasks.rows.placed_rows import PlacedRows
from tasks.rows.row_store import RowStore
from tasks.runtime.usage import StageUsage
from tasks.tables.table_store import StageRef, read


@dataclass(frozen=True)
class RunTables:
    """The tables of a run. Shards are read one at a time.

    Args:
        placed: Places of the results of each stage, shard by shard.
        usages: Cost of each stage, with that of the results that were found.
    """

    store: RowStore
    samples: Sequence[StageRef]
    placed: Mapping[Stage, Sequence[PlacedRows]]
    usages: Mapping[Stage, StageUsage]
    _schemas: dict[Stage, pa.Schema] = field(default_factory=dict, init=False, repr=False)

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The samples and the stages that were computed, in their order."""
        return (Stage.SAMPLES, *self.placed)

    @property
    def total(self) -> StageUsage:
        """The cost of all stages."""
        return sum(self.usages.values(), StageUsage())

    def usage(self, stage: Stage) -> StageUsage:
        """Return the cost of a stage."""
        return self.usages.get(stage, StageUsage())

    def rows(self, stage: Stage) -> int:
        """Return the number of rows of a stage's table."""
        if stage is Stage.SAMPLES:
            return sum(ref.rows for ref in self.samples)
        return sum(int(placed.count.sum()) for placed in self.placed[stage])

    def digests(self, stage: Stage) -> list[str]:
        """Return the digest of each shard of a stage."""
        if stage is Stage.SAMPLES:
            return [ref.digest for ref in self.samples]
        return [hashlib.sha256(placed.digests.tobytes()).hexdigest()[:32] for placed in self.placed[stage]]

    def schema(self, stage: Stage) -> pa.Schema:
        """Return the schema of a stage's table, with the optional columns in which a shard has a value."""
        if stage not in self._schemas:
            self._schemas[stage] = self._find_schema(stage)
        return self._schemas[stage]

    def _find_schema(self, stage: Stage) -> pa.Schema:
        expected = SCHEMAS[stage]
        empty = set(expected.optional)
        for table in self.shards(stage, expected.optional) if empty else ():
            empty -= {name for name in expected.optional if table[name].null_count < table.num_rows}
        return expected.arrow_without([name for name in expected.optional if name in empty])

    def shards(self, stage: Stage, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """Yield the table of a stage shard by shard, with its rows in the order of the samples.

        Args:
            columns: Columns to read; None for all.

        Raises:
            AssayError: A table cannot be read.
        """
        for number, ref in enumerate(self.samples):
            if stage is Stage.SAMPLES:
                yield read(ref, columns)
            else:
                yield self.store.read(stage, self.placed[stage][number], columns)

    def write(self, stage: Stage, path: str) -> None:
        """Write the table of a stage into a Parquet file, a row group per shard.

        The file has the optional columns in which a shard has a value.

        Args:
            path: Local path of the file.

        Raises:
            AssayError: A table cannot be read.
        """
        schema = self.schema(stage)
        with pq.ParquetWriter(path, schema, compression="zstd") as writer:
            for table in self.shards(stage, schema.names):
                writer.write_table(table.replace_schema_metadata(schema.metadata))
