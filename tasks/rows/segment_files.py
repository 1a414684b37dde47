"""Write and read the files of segments: a Parquet file with rows, and beside it the index by which rows are found.

The rows of a segment belong to one stage and one recipe. The index is written last, so that a segment with an index is
whole, and has digests of itself and of the rows, so that damage is seen. Rows without a recipe have no index.
"""

import hashlib
import posixpath
import secrets
import time
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

from metric_core.stages import Stage
from tasks.rows.row_digests import DIGEST, DIGEST_BYTES, Digests
from tasks.runtime.usage import StageUsage

ROWS = "rows"
"""Name of the folder of segments in a table store."""

WITHOUT_RECIPE = "none"
"""Name of the folder of the rows of a stage that are stored and never found."""

DATA = ".parquet"

INDEX = ".index"

_NOTE = b"assay.segment"

_COLUMNS = pa.schema(
    [
        pa.field("key", pa.binary(DIGEST_BYTES), nullable=False),
        pa.field("digest", pa.binary(DIGEST_BYTES), nullable=False),
        pa.field("start", pa.int32(), nullable=False),
        pa.field("count", pa.int32(), nullable=False),
    ]
)


class SegmentNote(BaseModel):
    """What the index of a segment says about all of its rows.

    Args:
        recipe: Everything but the input tables that determined the rows.
        schema_version: Version of the stage's schema.
        samples: Number of samples, including those that are not in the index.
        size: Size of the Parquet file in bytes.
        file_digest: Digest of the Parquet file.
        usage: Cost of finding the results of all samples.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    recipe: str
    schema_version: int
    samples: int
    size: int
    file_digest: str
    usage: StageUsage


@dataclass(frozen=True, eq=False, slots=True)
class SegmentIndex:
    """The index of a segment.

    Args:
        note: What it says about all rows.
        keys: Keys of the samples whose results can be found.
        digests: Digests of their rows.
        start: Position of the first row of each.
        count: Number of rows of each.
    """

    note: SegmentNote
    keys: Digests
    digests: Digests
    start: NDArray[np.int32]
    count: NDArray[np.int32]


def recipe_folder(root: str, stage: Stage, recipe: str | None) -> str:
    """Return the folder of the segments of a recipe.

    Args:
        root: Folder of the table store.
        stage: Stage that computed the rows.
        recipe: Everything but the input tables that determined them; None for rows that are never found.
    """
    name = WITHOUT_RECIPE if recipe is None else hashlib.sha256(recipe.encode()).hexdigest()[:16]
    return posixpath.join(root, ROWS, str(stage), name)


def new_stem(written: int | None = None) -> str:
    """Return a name for a segment: of two names, the earlier one is the less.

    Args:
        written: Time in nanoseconds that its rows count as written at; None for now.
    """
    return f"{time.time_ns() if written is None else written:020d}-{secrets.token_hex(4)}"


def written_time(stem: str) -> int:
    """Return the time in nanoseconds in the name of a segment.

    >>> written_time(new_stem(7))
    7
    """
    return int(stem.partition("-")[0])


def encode_rows(table: pa.Table) -> bytes:
    """Return the Parquet file of rows: one row group, with a checksum of each page."""
    sink = pa.BufferOutputStream()
    size = max(1, table.num_rows)
    pq.write_table(table, sink, compression="zstd", write_page_checksum=True, row_group_size=size)
    return bytes(sink.getvalue())


def digest_file(content: bytes) -> str:
    """Return the digest of the bytes of a file."""
    return hashlib.sha256(content).hexdigest()[:32]


def encode_index(index: SegmentIndex) -> bytes:
    """Return the file of an index."""
    columns = [_fixed_size(index.keys), _fixed_size(index.digests), pa.array(index.start), pa.array(index.count)]
    schema = _COLUMNS.with_metadata({_NOTE: index.note.model_dump_json()})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        writer.write_table(pa.Table.from_arrays(columns, schema=schema))
    body = bytes(sink.getvalue())
    return _checksum(body) + body


def decode_index(content: bytes) -> SegmentIndex:
    """Return the index in a file.

    Raises:
        ValueError: The file is damaged, or of another version.
    """
    body = content[DIGEST_BYTES:]
    if content[:DIGEST_BYTES] != _checksum(body):
        raise ValueError("its content does not match its digest")
    with pa.ipc.open_stream(body) as reader:
        table = reader.read_all().combine_chunks()
    if not table.schema.equals(_COLUMNS):
        raise ValueError("it is of another version")
    keys, digests = (_digests(table[name]) for name in ("key", "digest"))
    start, count = (table[name].to_numpy() for name in ("start", "count"))
    return SegmentIndex(SegmentNote.model_validate_json(table.schema.metadata[_NOTE]), keys, digests, start, count)


def _checksum(body: bytes) -> bytes:
    return hashlib.blake2b(body, digest_size=DIGEST_BYTES).digest()


def _fixed_size(digests: Digests) -> pa.Array:
    packed = pa.py_buffer(digests.tobytes())
    return pa.FixedSizeBinaryArray.from_buffers(pa.binary(DIGEST_BYTES), len(digests), [None, packed])


def _digests(column: pa.ChunkedArray) -> Digests:
    packed = [np.frombuffer(chunk.buffers()[1], DIGEST)[chunk.offset :][: len(chunk)] for chunk in column.chunks]
    return np.concatenate(packed) if packed else np.zeros(0, DIGEST)
