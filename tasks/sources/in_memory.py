"""Save data that is an object in this process to a file that any process can read."""

import hashlib
import io
import posixpath
from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq

from metric_core.errors import SourceError
from tasks.rows.table_files import SOURCES, atomic_fs_file, atomic_fs_write, filesystem, touch
from tasks.runtime.jsonl_text import to_json_lines
from tasks.runtime.stored_data import stored_name
from tasks.sources.readers.bad_rows import InvalidRowError
from tasks.sources.redaction import Redaction

if TYPE_CHECKING:
    from datasets import Dataset

WANTED = "a path, a list of dicts, a pandas data frame, an Arrow table or a datasets.Dataset"


class ArrowStream(Protocol):
    """A table of any library that exports Arrow streams, such as pyarrow, pandas, polars or DuckDB."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Export the table as a PyCapsule with an Arrow stream."""


class DatasetLike(Protocol):
    """A `datasets.Dataset`."""

    @property
    def column_names(self) -> Any:
        """Names of the columns."""

    def to_parquet(self, path_or_buf: Any, *args: Any, **kwargs: Any) -> Any:
        """Write the rows as Parquet."""


Data: TypeAlias = str | PathLike[str] | Sequence[Mapping[str, Any]] | ArrowStream | DatasetLike
"""Data to evaluate: a path or URL, a list of dicts, a table, or a data set."""


def save_rows(data: Any, root: str, redact: str | None = None) -> str:
    """Save data and return the path; equal data is saved once.

    Args:
        data: A list of dicts, a pandas data frame, an Arrow table, another table that exports an Arrow stream, or a
            `datasets.Dataset`.
        root: Folder or fsspec URL to save it below.
        redact: Function that redacts all texts before they are saved, as the option `redact` names it.

    Raises:
        SourceError: The data is of another type, or cannot be written to a file.
    """
    kind = f"{type(data).__module__.partition('.')[0]}.{type(data).__name__}"
    if kind == "datasets.Dataset":
        return save_dataset(data, root, redact)
    try:
        if kind == "pandas.DataFrame":
            data = pa.Table.from_pandas(data, preserve_index=False)
        elif hasattr(data, "__arrow_c_stream__"):
            data = pa.table(data)
        if isinstance(data, pa.Table):
            return _save_bytes(_parquet(data if redact is None else _redact_table(data, redact)), root, "parquet")
        if isinstance(data, (list, tuple)) and all(isinstance(row, Mapping) for row in data):
            return _save_bytes(_json_lines(data if redact is None else _redact_rows(data, redact)), root, "jsonl")
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise SourceError(f"the data cannot be written to a file: {error}") from error
    raise SourceError(f"data of the type {type(data).__name__} cannot be evaluated; give {WANTED}")


def save_dataset(dataset: "Dataset", root: str, redact: str | None = None) -> str:
    """Save a data set as Parquet and return the path; an equal one is saved once.

    Args:
        dataset: A `datasets.Dataset`.
        root: Folder or fsspec URL to save it below.
        redact: See `save_rows`.

    Raises:
        AssayError: The file cannot be written.
    """
    if redact is not None:
        return save_rows(dataset.with_format("arrow")[:], root, redact)

    def write(fs: fsspec.AbstractFileSystem, path: str) -> None:
        with atomic_fs_file(fs, path) as temporary, fs.open(temporary, "wb") as file:
            dataset.to_parquet(file)

    return _save_once(stored_name(dataset._fingerprint, "parquet"), root, write)  # noqa: SLF001 its only stable name


def _redact_table(table: pa.Table, redact: str) -> pa.Table:
    return pa.Table.from_pylist(_redact_rows(table.to_pylist(), redact), schema=table.schema)


def _redact_rows(rows: Sequence[Mapping[str, object]], redact: str) -> list[dict[str, Any]]:
    redaction = Redaction(redact)
    redacted = []
    for number, row in enumerate(rows, start=1):
        try:
            redacted.append(redaction.row(row))
        except InvalidRowError as invalid:
            raise SourceError(f"row {number} of the data cannot be evaluated: {invalid.problem}") from None
    return redacted


def _save_bytes(content: bytes, root: str, suffix: str) -> str:
    name = stored_name(hashlib.sha256(content).hexdigest()[:16], suffix)
    return _save_once(name, root, lambda fs, path: atomic_fs_write(fs, path, content))


def _save_once(name: str, root: str, write: Callable[[fsspec.AbstractFileSystem, str], None]) -> str:
    path = posixpath.join(root, SOURCES, name)
    fs, inner = filesystem(path)
    if fs.exists(inner):
        touch(fs, inner)
    else:
        write(fs, inner)
    return path


def _parquet(table: pa.Table) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(table, buffer)
    return buffer.getvalue()


def _json_lines(rows: Sequence[Mapping[str, object]]) -> bytes:
    return to_json_lines(map(dict, rows), allow_nan=True).encode()
