"""Data that somebody hands over as an object, made into a file that any process can read."""

import hashlib
import io
import json
import posixpath
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from metric_core.errors import SourceError
from tasks.sources.in_memory import save_dataset
from tasks.tables.inventory import SOURCES
from tasks.tables.table_files import atomic_write, filesystem, touch

WANTED = "a path, a list of dicts, a pandas data frame, an Arrow table or a datasets.Dataset"


def save_rows(data: Any, root: str) -> str:
    """Saves data and returns where it is; equal data is saved once.

    Args:
        data: a list of dicts, a pandas data frame, an Arrow table or a `datasets.Dataset`.
        root: folder or fsspec URL to save it below.

    Raises:
        SourceError: it is none of these, or holds what no file can.
    """
    kind = f"{type(data).__module__.partition('.')[0]}.{type(data).__name__}"
    if kind == "datasets.Dataset":
        return save_dataset(data, root)
    try:
        if kind == "pandas.DataFrame":
            data = pa.Table.from_pandas(data, preserve_index=False)
        if isinstance(data, pa.Table):
            return _keep(_parquet(data), root, "parquet")
        if isinstance(data, (list, tuple)) and all(isinstance(row, Mapping) for row in data):
            return _keep(_json_lines(data), root, "jsonl")
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise SourceError(f"the data can not be written to a file: {error}") from error
    raise SourceError(f"data of the type {type(data).__name__} can not be evaluated; give {WANTED}")


def _parquet(table: pa.Table) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(table, buffer)
    return buffer.getvalue()


def _json_lines(rows: list[Mapping[str, Any]] | tuple[Mapping[str, Any], ...]) -> bytes:
    return "".join(json.dumps(dict(row), ensure_ascii=False) + "\n" for row in rows).encode()


def _keep(content: bytes, root: str, suffix: str) -> str:
    path = posixpath.join(root, SOURCES, f"{hashlib.sha256(content).hexdigest()[:16]}.{suffix}")
    fs, inner = filesystem(path)
    if fs.exists(inner):
        touch(fs, inner)
    else:
        atomic_write(fs, inner, content)
    return path
