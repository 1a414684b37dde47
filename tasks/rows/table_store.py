"""Store tables of samples as Parquet files named by their content, and refer to them.

A table is written under a temporary name and renamed, so that a file under a final name is complete. Equal tables
have the same name: writing a table twice costs nothing.
"""

import hashlib
import posixpath
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from metric_core.errors import AssayError
from metric_core.schemas import SAMPLES, TableSchema
from metric_core.stages import Stage
from tasks.rows.records import add_missing_columns
from tasks.rows.table_files import atomic_fs_write, filesystem, is_local, open_stored, storage_errors, touch


@dataclass(frozen=True, slots=True)
class Samples:
    """The samples of a shard of the source, in a table store.

    Args:
        path: Path or fsspec URL of the Parquet file.
        digest: Digest of the content, by which the file is named.
        rows: Number of samples.
        schema_version: Version of the schema that the table was written with.
    """

    path: str
    digest: str
    rows: int
    schema_version: int

    def read(self, columns: Sequence[str] | None = None) -> pa.Table:
        """Return the table.

        Args:
            columns: Columns to read; None for all.

        Raises:
            AssayError: The file is missing, damaged, unreachable, or of another schema version.
        """
        what = f"the samples table {self.path}"
        if not SAMPLES.can_read(str(self.schema_version)):
            raise AssayError(
                f"{what} has schema version {self.schema_version}, this rag-assay reads {SAMPLES.version}. "
                "Run the evaluation again to recompute it."
            )
        with open_stored(self.path, what) as file:
            table = file.read(columns)
        if table.num_rows != self.rows:
            raise AssayError(
                f"{what} has {table.num_rows} rows, expected {self.rows}. Delete it and run the evaluation again."
            )
        return add_missing_columns(table, Stage.SAMPLES, columns)


class TableStore:
    """A folder of tables of samples, on this machine or at any fsspec URL.

    Args:
        root: Path or URL of the folder; created when the first table is written.
    """

    def __init__(self, root: str) -> None:
        self._fs, self._root = filesystem(root)

    def write(self, table: pa.Table) -> Samples:
        """Store the samples of a shard.

        Args:
            table: Table with the columns of samples, in any order.

        Raises:
            ValueError: A column of the schema is missing, or has a null where the schema allows none.
        """
        conformed = conform(table, SAMPLES)
        content = _parquet(conformed)
        digest = content_digest(pq.ParquetFile(pa.BufferReader(content)).read())
        path = posixpath.join(self._root, str(Stage.SAMPLES), f"{digest}.parquet")
        if self._is_written(path, content):
            touch(self._fs, path)
        else:
            atomic_fs_write(self._fs, path, content)
        return Samples(
            path=path if is_local(self._fs) else self._fs.unstrip_protocol(path),
            digest=digest,
            rows=conformed.num_rows,
            schema_version=int(conformed.schema.metadata[b"assay.version"]),
        )

    def _is_written(self, path: str, content: bytes) -> bool:
        """Return whether the file has this content; a file with other content is damaged and is written again."""
        try:
            return bool(self._fs.cat_file(path) == content)
        except storage_errors():
            return False


def conform(table: pa.Table, schema: TableSchema) -> pa.Table:
    """Return the table with the schema's columns, order, types and metadata, without optional columns that are null.

    Raises:
        ValueError: A column of the schema is missing, or has a null where the schema allows none.
    """
    empty = [
        name for name in schema.optional if name not in table.column_names or table[name].null_count == table.num_rows
    ]
    arrow = schema.arrow_without(empty)
    missing = [name for name in arrow.names if name not in table.column_names]
    if missing:
        raise ValueError(f"the {schema.stage} table lacks the columns {missing}; it has {table.column_names}")
    conformed = table.select(arrow.names).cast(arrow).combine_chunks()
    conformed.validate(full=False)
    for column in arrow:
        if not column.nullable and conformed.column(column.name).null_count:
            raise ValueError(f"the {schema.stage} table has nulls in {column.name}, which must not be null")
    return conformed.replace_schema_metadata(arrow.metadata)


def _parquet(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd", write_page_checksum=True)
    return bytes(sink.getvalue())


def content_digest(table: pa.Table) -> str:
    """Return the digest of the schema and values of a table that was read, independent of its chunks.

    The table must have been read from a file: in memory, the bytes below a null are arbitrary.
    """
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table.combine_chunks())
    return hashlib.sha256(sink.getvalue()).hexdigest()[:32]
