"""Store stage tables as Parquet files named by their content, and refer to them.

A table is written under a temporary name and renamed, so that a file under a final name is complete. Equal tables
have the same name: writing a table twice costs nothing, and the key of a stage depends on the content of its inputs,
not on when they were computed.
"""

import hashlib
import posixpath
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import BaseModel, ConfigDict

from metric_core.errors import AssayError
from metric_core.schemas import SCHEMAS, TableSchema
from metric_core.stages import Stage
from tasks.runtime.usage import StageUsage
from tasks.tables.records import add_missing_columns
from tasks.tables.table_files import atomic_fs_write, filesystem, is_local, open_stored, storage_errors, touch


class StageRef(BaseModel):
    """A reference to a stage's table: passed between tasks, stored in Prefect's results and in manifests.

    Args:
        path: Path or fsspec URL of the Parquet file.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    stage: Stage
    path: str
    digest: str
    rows: int
    schema_version: int
    usage: StageUsage = StageUsage()


class TableStore:
    """A folder of stage tables, on this machine or at any fsspec URL.

    Args:
        root: Path or URL of the folder; created when the first table is written.
    """

    def __init__(self, root: str) -> None:
        self._fs, self._root = filesystem(root)

    def write(self, table: pa.Table, schema: TableSchema, usage: StageUsage | None = None) -> StageRef:
        """Write a table and return its reference.

        Args:
            table: Table with the columns of `schema`, in any order.

        Raises:
            ValueError: A column of the schema is missing, or has a null where the schema allows none.
        """
        conformed = conform(table, schema)
        content = _parquet(conformed)
        digest = content_digest(pq.ParquetFile(pa.BufferReader(content)).read())
        path = posixpath.join(self._root, str(schema.stage), f"{digest}.parquet")
        if self._is_written(path, content):
            touch(self._fs, path)
        else:
            atomic_fs_write(self._fs, path, content)
        return StageRef(
            stage=schema.stage,
            path=path if is_local(self._fs) else self._fs.unstrip_protocol(path),
            digest=digest,
            rows=conformed.num_rows,
            schema_version=int(conformed.schema.metadata[b"assay.version"]),
            usage=usage or StageUsage(),
        )

    def _is_written(self, path: str, content: bytes) -> bool:
        """Return whether the file has this content; a file with other content is damaged and is written again."""
        try:
            return bool(self._fs.cat_file(path) == content)
        except storage_errors():
            return False


def read(ref: StageRef, columns: Sequence[str] | None = None) -> pa.Table:
    """Return the table that a reference points to.

    Args:
        columns: Columns to read; None for all.

    Raises:
        AssayError: The file is missing, damaged, unreachable, or of another schema version.
    """
    with _open_stored(ref) as file:
        table = file.read(columns)
    if table.num_rows != ref.rows:
        raise AssayError(
            f"the {ref.stage} table {ref.path} has {table.num_rows} rows, expected {ref.rows}. "
            "Delete it and run the evaluation again."
        )
    return add_missing_columns(table, ref.stage, columns)


@contextmanager
def _open_stored(ref: StageRef) -> Iterator[pq.ParquetFile]:
    """Open the file of a table for a block, whose errors are raised as errors that name the table."""
    expected, what = SCHEMAS[ref.stage], f"the {ref.stage} table {ref.path}"
    if not expected.can_read(str(ref.schema_version)):
        raise AssayError(
            f"{what} has schema version {ref.schema_version}, this rag-assay reads {expected.version}. "
            "Run the evaluation again to recompute it."
        )
    with open_stored(ref.path, what) as file:
        yield file


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
