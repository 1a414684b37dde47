"""Open a source by its kind: an object, a name on the hub, or one or several files, local or at a URL."""

import os
import re
from pathlib import PurePosixPath
from typing import Any, TypeAlias

from metric_core.errors import MissingDependencyError, SourceError
from tasks.options.source_options import split_kind
from tasks.runtime.stored_data import is_stored, shown_source
from tasks.runtime.wording import describe_value, suggest_nearest
from tasks.sources.file_sets import find_files, find_pattern, is_pattern, open_files_of, open_pattern
from tasks.sources.readers.formats import find_opener
from tasks.sources.readers.huggingface import open_folder, open_hub, open_object
from tasks.sources.readers.installed_reader import find_reader
from tasks.sources.readers.protocol import RowSource
from tasks.sources.readers.source_files import DataFile, translate_read_errors

SourceLike: TypeAlias = str | os.PathLike[str] | Any
"""A path, a URL, a pattern of either, `hub:owner/name`, or a `datasets.Dataset`."""

HUB = "hub:"
"""Prefix of the name of a data set on the hub."""


def open_source(source: SourceLike) -> RowSource:
    """Open a source without reading its rows.

    Args:
        source: One of: a path or fsspec URL of a file (.jsonl, .ndjson, .json, .csv, .tsv, each also compressed;
            .parquet, .arrow, .feather) or of a folder (files of one of these formats, or a data set saved by
            `datasets`, followed by `#split` if it has several splits); a pattern that matches such files;
            `hub:owner/name` or `hub:owner/name:configuration`, each also with `#split`; the name of an installed reader
            and a colon, such as `traces:`, before the path, URL, folder or pattern of its files; or a
            `datasets.Dataset`.

    Raises:
        SourceError: The source does not exist or cannot be read.
        MissingDependencyError: The package for a kind of URL is not installed.
    """
    dataset = open_object(source)
    if dataset is not None:
        return dataset
    if not isinstance(source, str | os.PathLike):
        raise SourceError(f"got {describe_value(source)} as a source, wanted a path, a URL or a datasets.Dataset")
    address = os.fspath(source)
    if not address.strip():
        raise SourceError("the name of the source is empty; name a file, a folder, a URL or hub:owner/name")
    if address == "-" or address.startswith(("/dev/stdin", "/dev/fd/")):
        raise SourceError(f"{address}: a source is read more than once, so it cannot be a stream; save it to a file")
    if address.startswith(HUB):
        return open_hub(address.removeprefix(HUB))
    with translate_read_errors(_redact(address)):
        if kind := split_kind(address)[0]:
            return _open_kind(kind, address.removeprefix(kind))
        return _open_address(address)


def _open_kind(kind: str, address: str) -> RowSource:
    if not address.strip():
        raise SourceError(f"{kind} names no files; write {kind}PATH, the path, URL or pattern of files")
    reader = find_reader(kind.removesuffix(":"))
    filesystem, path = _filesystem(address)
    name = _redact(address)
    if not _exists(filesystem, path, address):
        if is_pattern(path):
            return reader.open(*find_pattern(filesystem, path, name, reader.extensions))
        raise SourceError(_not_found(filesystem, path, address))
    if filesystem.isdir(path):
        return reader.open(*find_files(filesystem, path, name, reader.extensions))
    return reader.open([DataFile(filesystem, path, name)], name, f"{name.rpartition('/')[0]}/", ())


def open_file(address: str) -> DataFile:
    """Open one file at a path or fsspec URL.

    Raises:
        SourceError: The file does not exist, or cannot be reached.
        MissingDependencyError: The package for a kind of URL is not installed.
    """
    with translate_read_errors(_redact(address)):
        filesystem, path = _filesystem(address)
        if not _exists(filesystem, path, address):
            raise SourceError(_not_found(filesystem, path, address))
        if filesystem.isdir(path):
            raise SourceError(f"{_redact(address)} is a folder, wanted a file")
        return DataFile(filesystem, path, _redact(address))


def _open_address(address: str) -> RowSource:
    filesystem, path = _filesystem(address)
    split = None
    if not _exists(filesystem, path, address):
        pattern = path
        if "#" in address:
            whole, _, split = address.rpartition("#")
            filesystem, path = _filesystem(whole)
        if split is None or not _exists(filesystem, path, address):
            if is_pattern(pattern):
                return open_pattern(filesystem, pattern, _redact(address))
            raise SourceError(_not_found(filesystem, path, address))
    if filesystem.isdir(path):
        return _open_directory(filesystem, path, split, address)
    if split is not None:
        raise SourceError(f"{_redact(address)} is a file, which has no splits; leave out #{split}")
    file = DataFile(filesystem, path, _redact(address))
    return find_opener(file)(file)


def _open_directory(filesystem: Any, path: str, split: str | None, address: str) -> RowSource:
    name = _redact(address)
    names = {PurePosixPath(entry).name for entry in filesystem.ls(path, detail=False)}
    if "dataset_dict.json" in names or {"dataset_info.json", "state.json"} <= names:
        whole = address if split is None else address.removesuffix(f"#{split}")
        return open_folder(whole, split, name)
    if split is not None:
        raise SourceError(f"{name}: only a folder written by datasets.save_to_disk has splits; leave out #{split}")
    return open_files_of(filesystem, path, name)


def _filesystem(address: str) -> tuple[Any, str]:
    from fsspec.core import url_to_fs  # noqa: PLC0415

    try:
        filesystem, path = url_to_fs(address)
    except ImportError as error:
        package = getattr(error.__cause__, "name", None) or "fsspec"
        kind = f"reading {address.partition('://')[0]}:// URLs"
        raise MissingDependencyError(package, kind, f"pip install {package}") from error
    except ValueError as error:
        raise SourceError(f"{_redact(address)} cannot be opened: {error}") from error
    return filesystem, path


def _exists(filesystem: Any, path: str, address: str) -> bool:
    try:
        return bool(filesystem.exists(path))
    except Exception as error:  # the client library of every store raises different exceptions
        raise SourceError(f"{_redact(address)} cannot be reached: {error}") from error


def _not_found(filesystem: Any, path: str, address: str) -> str:
    parent, _, name = path.rstrip("/").rpartition("/")
    message = f"{_redact(address)} does not exist"
    if not filesystem.isdir(parent or "/"):
        return f"{message}, nor does its folder"
    near = suggest_nearest(name, [PurePosixPath(entry).name for entry in filesystem.ls(parent or "/", detail=False)])
    return f"{message}. Did you mean {near!r}?" if near else message


def _redact(address: str) -> str:
    """Return an address as people know it, without the possibly secret user, password and query of a URL.

    >>> _redact("s3://key:secret@bucket/part-?.jsonl"), _redact("https://host/log.jsonl?signature=key#train")
    ('s3://bucket/part-?.jsonl', 'https://host/log.jsonl#train')
    """
    scheme, separator, rest = address.partition("://")
    if is_stored(address) or not separator:
        return shown_source(address)
    host, slash, path = rest.partition("/")
    if scheme.endswith(("http", "https")):
        path = re.sub(r"\?[^#]*", "", path)
    return f"{scheme}://{host.rpartition('@')[2]}{slash}" + re.sub(r"\?\w[^/#]*=[^#]*", "", path)
