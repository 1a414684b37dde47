"""Stage tables as Parquet files named by their content, and the references that pass for them.

A table is written under a temporary name and renamed, so that a name that exists is a whole table. Equal tables
have one name, so that writing one again costs nothing and a stage's key depends on what its inputs say, not on when
they were computed.
"""

import hashlib
import posixpath
from collections.abc import Sequence

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import BaseModel, ConfigDict

from metric_core.errors import AssayError
from metric_core.schemas import SCHEMAS, TableSchema
from metric_core.stages import Stage
from tasks.runtime.usage import StageUsage
from tasks.tables.table_files import atomic_write, filesystem, is_local, touch, translate_storage_errors


class StageRef(BaseModel):
    """Stands for a stage's table wherever tables must not go: between tasks, in Prefect's results, in manifests.

    Args:
        stage: the stage that computed it.
        path: where the Parquet file is, a path or an fsspec URL.
        digest: of the table's content.
        rows: how many rows it has.
        schema_version: of the stage's schema.
        usage: what computing it cost.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    stage: Stage
    path: str
    digest: str
    rows: int
    schema_version: int
    usage: StageUsage = StageUsage()


class TableStore:
    """A folder of stage tables, on this machine or behind any fsspec URL.

    Args:
        root: path or URL of the folder; made when the first table is written.
    """

    def __init__(self, root: str) -> None:
        self._fs, self._root = filesystem(root)

    def write(self, table: pa.Table, schema: TableSchema, usage: StageUsage | None = None) -> StageRef:
        """Stores a table and returns its reference.

        Args:
            table: columns as in `schema`, in any order.
            schema: the schema of the stage.
            usage: what computing the table cost.

        Raises:
            ValueError: a column of the schema is missing or has a null where the schema allows none.
        """
        conformed = conform(table, schema)
        content = _parquet(conformed)
        digest = content_digest(pq.read_table(pa.BufferReader(content)))
        path = posixpath.join(self._root, str(schema.stage), f"{digest}.parquet")
        if self._is_there(path, content):
            touch(self._fs, path)
        else:
            atomic_write(self._fs, path, content)
        return StageRef(
            stage=schema.stage,
            path=path if is_local(self._fs) else self._fs.unstrip_protocol(path),
            digest=digest,
            rows=conformed.num_rows,
            schema_version=schema.version,
            usage=usage or StageUsage(),
        )

    def _is_there(self, path: str, content: bytes) -> bool:
        """Whether the table is there already; a file that says anything else has been damaged and is written again."""
        try:
            return bool(self._fs.cat_file(path) == content)
        except translate_storage_errors():
            return False


def read(ref: StageRef) -> pa.Table:
    """The table behind a reference.

    Raises:
        AssayError: the file is gone, damaged, or of another schema version.
    """
    expected = SCHEMAS[ref.stage]
    if ref.schema_version != expected.version:
        raise AssayError(
            f"the {ref.stage} table {ref.path} has schema version {ref.schema_version}, this rag-assay reads "
            f"{expected.version}. Run the evaluation again to compute it anew."
        )
    fs, path = filesystem(ref.path)
    try:
        with fs.open(path, "rb") as file:
            table = pq.read_table(file, page_checksum_verification=True)
    except FileNotFoundError as error:
        raise AssayError(
            f"the {ref.stage} table {ref.path} is gone. Run the evaluation again to compute it."
        ) from error
    except (pa.ArrowException, OSError) as error:
        raise AssayError(
            f"the {ref.stage} table {ref.path} can not be read ({error}). Delete it and run the evaluation again."
        ) from error
    except translate_storage_errors() as error:
        raise AssayError(
            f"the {ref.stage} table {ref.path} can not be reached: {error}. Look at the storage and at the credentials "
            "in the environment, and run the evaluation again; what was computed is kept."
        ) from error
    if table.num_rows != ref.rows:
        raise AssayError(
            f"the {ref.stage} table {ref.path} has {table.num_rows} rows, expected {ref.rows}. "
            "Delete it and run the evaluation again."
        )
    return table


def verify(ref: StageRef) -> None:
    """Makes sure that the table behind a reference is there and says what it said when it was written.

    Raises:
        AssayError: it is not, or the file is gone, damaged, or of another schema version.
    """
    if content_digest(read(ref)) != ref.digest:
        raise AssayError(f"the {ref.stage} table {ref.path} has been changed since it was computed")


def concatenate(refs: Sequence[StageRef], path: str) -> int:
    """Writes the tables of one stage, shard after shard, into one Parquet file; returns the number of rows.

    One shard is in memory at a time.
    """
    schema = SCHEMAS[refs[0].stage].arrow
    with fsspec.open(path, "wb") as file, pq.ParquetWriter(file, schema, compression="zstd") as writer:
        for ref in refs:
            writer.write_table(read(ref))
    return sum(ref.rows for ref in refs)


def conform(table: pa.Table, schema: TableSchema) -> pa.Table:
    """The table with the schema's columns, order, types and metadata."""
    arrow = schema.arrow
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
    """Digest of the schema and values of a table that was read, independent of how it was chunked.

    Only of a table that was read: in memory, what lies below a null may be anything.
    """
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table.combine_chunks())
    return hashlib.sha256(sink.getvalue()).hexdigest()[:32]
