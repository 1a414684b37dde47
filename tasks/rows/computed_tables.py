"""Hold the tables of a run: the samples of each shard, and the places of the results of each stage for them."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.parquet as pq

from metric_core.schemas import SCHEMAS
from metric_core.stages import Stage
from tasks.rows.places import Places
from tasks.rows.row_store import RowStore
from tasks.rows.table_store import Samples
from tasks.runtime.usage import StageUsage


@dataclass(frozen=True)
class RunTables:
    """The tables of a run. Shards are read one at a time.

    Args:
        samples: Samples of each shard.
        places: Places of the results of each stage, shard by shard.
        usages: Cost of each stage, with that of the results that were found.
    """

    store: RowStore
    samples: Sequence[Samples]
    places: Mapping[Stage, Sequence[Places]]
    usages: Mapping[Stage, StageUsage]
    _schemas: dict[Stage, pa.Schema] = field(default_factory=dict, init=False, repr=False)

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The samples and the stages that were computed, in their order."""
        return (Stage.SAMPLES, *self.places)

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
            return sum(samples.rows for samples in self.samples)
        return sum(int(places.count.sum()) for places in self.places[stage])

    def digests(self, stage: Stage) -> list[str]:
        """Return the digest of each shard of a stage."""
        if stage is Stage.SAMPLES:
            return [samples.digest for samples in self.samples]
        return [hashlib.sha256(places.digests.tobytes()).hexdigest()[:32] for places in self.places[stage]]

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
        if stage is Stage.SAMPLES:
            for samples in self.samples:
                yield samples.read(columns)
        else:
            yield from (rows.table for rows in self.store.read_shards(stage, self.places[stage], columns))

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
                size = max(1, table.num_rows)
                writer.write_table(table.replace_schema_metadata(schema.metadata), row_group_size=size)
