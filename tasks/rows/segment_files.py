"""Write and read the files of segments: a Parquet file with rows, and beside it the index by which rows are found.

The rows of a segment belong to one stage and one recipe. The index is written last, so that a segment with an index is
whole, and has digests of itself and of the rows, so that damage is seen. Rows without a recipe have no index.
"""

import hashlib
import posixpath
import re
import secrets
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

from metric_core.stages import Stage
from tasks.rows.row_digests import DIGEST, DIGEST_BYTES, Digests
from tasks.rows.table_files import atomic_fs_write, storage_errors
from tasks.runtime.usage import StageUsage

ROWS = "rows"
"""Name of the folder of segments in a table store."""

WITHOUT_RECIPE = "none"
"""Name of the folder of the rows of a stage that are stored and never found."""

READ_AT_ONCE = 256
"""Number of indexes that are read at a time."""

DATA = ".parquet"

INDEX = ".index"

_LATER = 1_000_000
"""Nanoseconds by which new rows count as later than all others: merged rows count as one later than their originals."""

_NAME = re.compile(r"[0-9]{20}-[0-9a-f]{8}\.(parquet|index)")

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
    """Metadata of a segment, in its index.

    Args:
        recipe: Everything but the input tables that determined the rows.
        samples: Number of samples, including those that are not in the index.
        usage: Cost of finding the results of all samples.
        size: Size of the Parquet file in bytes.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    recipe: str
    schema_version: int
    samples: int
    usage: StageUsage
    size: int = 0
    file_digest: str = ""


@dataclass(frozen=True, eq=False, slots=True)
class SegmentIndex:
    """The index of a segment.

    Args:
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
        recipe: Everything but the input tables that determined the rows; None for rows that are never found.
    """
    name = WITHOUT_RECIPE if recipe is None else hashlib.sha256(recipe.encode()).hexdigest()[:16]
    return posixpath.join(root, ROWS, str(stage), name)


def is_segment_file(path: str) -> bool:
    """Return whether a file has a name that the files of segments have; a user may have put others beside them."""
    return _NAME.fullmatch(posixpath.basename(path)) is not None


def new_stem(written: int) -> str:
    """Return a new name for the files of a segment; names sort by the order of writing.

    Args:
        written: Time in nanoseconds that its rows count as written at.
    """
    return f"{written:020d}-{secrets.token_hex(4)}"


def next_stem(fs: fsspec.AbstractFileSystem, folder: str) -> str:
    """Return the name of a segment that counts as written after all others in its folder.

    Its time is the present by the clock of this machine, unless another segment has a later one: clocks go back, and
    those of several machines differ.

    Args:
        folder: Folder of a recipe; it need not exist.
    """
    fs.invalidate_cache(folder)
    names: list[str] = []
    with suppress(*storage_errors()):  # whoever writes there says so
        names = [posixpath.basename(path) for path in fs.ls(folder, detail=False) if is_segment_file(path)]
    return new_stem(max([time.time_ns(), *(written_time(name) + _LATER for name in names)]))


def written_time(stem: str) -> int:
    """Return the time in nanoseconds in the name of a segment.

    >>> written_time(new_stem(7))
    7
    """
    return int(stem.partition("-")[0])


def write_segment(
    fs: fsspec.AbstractFileSystem, location: str, table: pa.Table, index: SegmentIndex, *, is_found: bool = True
) -> SegmentNote:
    """Write the files of a segment, and return its metadata.

    Args:
        location: Path of the files without suffix.
        table: The rows, conformed to the schema of their stage.
        index: The index; size and digest of the file are added.
        is_found: False to write no index.

    Raises:
        AssayError: A file cannot be written.
    """
    content = _encode_rows(table)
    atomic_fs_write(fs, location + DATA, content)
    note = index.note.model_copy(update={"size": len(content), "file_digest": digest_file(content)})
    if is_found:
        atomic_fs_write(fs, location + INDEX, encode_index(replace(index, note=note)))
    return note


@dataclass(frozen=True, eq=False, slots=True)
class StoredSegment:
    """A segment with an index, as it was found in a folder.

    Args:
        location: Path of its files without suffix.
        state: State of the file with the rows, as `file_state` returns it.
    """

    location: str
    index: SegmentIndex
    state: str


def read_folder(fs: fsspec.AbstractFileSystem, folder: str, problems: list[str]) -> Iterator[StoredSegment]:
    """Yield the segments with an index in a folder, the earliest first.

    Args:
        folder: Folder of a recipe; it need not exist.
        problems: List to which descriptions of damage are added.
    """
    fs.invalidate_cache(folder)
    try:
        files = {str(file["name"]): file for file in fs.ls(folder, detail=True)}
    except FileNotFoundError:
        return
    paths = sorted(path for path in files if path.endswith(INDEX) and is_segment_file(path))
    contents = (fs.cat_ranges(paths[start:][:READ_AT_ONCE], None, None) for start in range(0, len(paths), READ_AT_ONCE))
    for path, content in zip(paths, chain.from_iterable(contents), strict=True):
        if isinstance(content, FileNotFoundError):
            continue  # removed since it was listed
        location = path.removesuffix(INDEX)
        try:
            index = decode_index(content)
            file = files.get(location + DATA) or fs.info(location + DATA)
        except storage_errors(pa.ArrowException, ValueError, KeyError, TypeError) as error:
            problems.append(f"{path} ({error or type(error).__name__})")
            continue
        if file["size"] == index.note.size:
            yield StoredSegment(location, index, file_state(file))
        else:
            problems.append(f"{location}{DATA} (it has {file['size']} bytes instead of {index.note.size})")


def file_state(file: Mapping[str, Any]) -> str:
    """Return a text that changes whenever a file is written.

    Args:
        file: Information of the file system about the file.
    """
    return str(sorted(file.items()))


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


def decode_index(content: bytes | Exception) -> SegmentIndex:
    """Return the index in a file.

    Args:
        content: Content of the file, or the error that reading it gave, which is raised.

    Raises:
        ValueError: The file is damaged, or of another version.
    """
    if isinstance(content, Exception):
        raise content
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


def _encode_rows(table: pa.Table) -> bytes:
    """Return the Parquet file of rows: one row group, with a checksum of each page."""
    sink = pa.BufferOutputStream()
    size = max(1, table.num_rows)
    pq.write_table(table, sink, compression="zstd", write_page_checksum=True, row_group_size=size)
    return bytes(sink.getvalue())


def _checksum(body: bytes) -> bytes:
    return hashlib.blake2b(body, digest_size=DIGEST_BYTES).digest()


def _fixed_size(digests: Digests) -> pa.Array:
    packed = pa.py_buffer(digests.tobytes())
    return pa.FixedSizeBinaryArray.from_buffers(pa.binary(DIGEST_BYTES), len(digests), [None, packed])


def _digests(column: pa.ChunkedArray) -> Digests:
    packed = [np.frombuffer(chunk.buffers()[1], DIGEST)[chunk.offset :][: len(chunk)] for chunk in column.chunks]
    return packed[0] if len(packed) == 1 else np.concatenate([np.zeros(0, DIGEST), *packed])
