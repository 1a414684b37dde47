"""Finds out what a source is: an object, a name on the hub, a file or a folder, here or behind a URL."""

import os
from collections.abc import Callable
from pathlib import PurePosixPath
from typing import Any, TypeAlias
from urllib.parse import urlsplit

from metric_core.errors import MissingDependencyError, SourceError
from tasks.sources.files import DataFile, reading
from tasks.sources.readers.arrow_files import ArrowFileSource
from tasks.sources.readers.delimited import DelimitedSource
from tasks.sources.readers.huggingface import open_folder, open_hub, open_object
from tasks.sources.readers.json_document import open_json
from tasks.sources.readers.json_lines import JsonLinesSource
from tasks.sources.readers.parquet import ParquetSource
from tasks.sources.readers.protocol import RowSource
from tasks.sources.wording import described, listed, nearest

SourceLike: TypeAlias = str | os.PathLike[str] | Any
"""A path, a URL, `hub:owner/name`, or a `datasets.Dataset`."""

HUB = "hub:"
"""Before the name of a data set on the hub."""
_READERS: dict[str, Callable[[DataFile], RowSource]] = {
    ".jsonl": JsonLinesSource,
    ".ndjson": JsonLinesSource,
    ".json": open_json,
    ".csv": DelimitedSource,
    ".tsv": DelimitedSource,
    ".parquet": lambda file: ParquetSource([file], file.name),
    ".arrow": ArrowFileSource,
    ".feather": ArrowFileSource,
}
_TEXT_FORMATS = (".jsonl", ".ndjson", ".json", ".csv", ".tsv")
_SUPPORTED = (
    "supported are .jsonl, .ndjson, .json, .csv and .tsv (also with .gz, .bz2, .xz or .zst behind), .parquet, .arrow, "
    ".feather, a folder of .parquet files, a folder written by datasets.save_to_disk, and hub:owner/name"
)


def open_source(source: SourceLike) -> RowSource:
    """Opens a source without reading its rows.

    Args:
        source: a path or fsspec URL of a file (.jsonl, .ndjson, .json, .csv, .tsv, each also compressed; .parquet,
            .arrow, .feather) or of a folder (Parquet files, or a data set saved by `datasets`, with `#split` behind it
            where it has several); `hub:owner/name`, `hub:owner/name:configuration`, each also with `#split`; or a
            `datasets.Dataset`.

    Raises:
        SourceError: nothing is there, or nothing that can be read.
        MissingDependencyError: the package for a kind of URL is not installed.
    """
    found = open_object(source)
    if found is not None:
        return found
    if not isinstance(source, str | os.PathLike):
        raise SourceError(f"got {described(source)} as a source, wanted a path, a URL or a datasets.Dataset")
    address = os.fspath(source)
    if not address.strip():
        raise SourceError("the name of the source is empty; name a file, a folder, a URL or hub:owner/name")
    if address == "-" or address.startswith(("/dev/stdin", "/dev/fd/")):
        raise SourceError(f"{address}: a source is read more than once, which a stream can not be; save it to a file")
    if address.startswith(HUB):
        return open_hub(address.removeprefix(HUB))
    with reading(_shown(address)):
        return _open_address(address)


def _open_address(address: str) -> RowSource:
    filesystem, path = _filesystem(address)
    split = None
    if "#" in address and not _exists(filesystem, path, address):
        whole, _, split = address.rpartition("#")
        filesystem, path = _filesystem(whole)
    if not _exists(filesystem, path, address):
        raise SourceError(_not_found(filesystem, path, address))
    if filesystem.isdir(path):
        return _open_directory(filesystem, path, split, address)
    if split is not None:
        raise SourceError(f"{_shown(address)} is a file, which has no splits; leave out #{split}")
    return _open_file(DataFile(filesystem, path, _shown(address)))


def _open_file(file: DataFile) -> RowSource:
    open_reader = _READERS.get(file.extension)
    if open_reader is None:
        got = f"the extension {file.extension!r}" if file.extension else "no extension that names its format"
        raise SourceError(f"{file.name} has {got}; {_SUPPORTED}")
    if file.compression and file.extension not in _TEXT_FORMATS:
        raise SourceError(f"{file.name} is compressed as a whole, which {file.extension} files are not; decompress it")
    return open_reader(file)


def _open_directory(filesystem: Any, path: str, split: str | None, address: str) -> RowSource:
    name = _shown(address)
    names = {PurePosixPath(entry).name for entry in filesystem.ls(path, detail=False)}
    if "dataset_dict.json" in names or {"dataset_info.json", "state.json"} <= names:
        whole = address if split is None else address.removesuffix(f"#{split}")
        return open_folder(whole, split, name)
    if split is not None:
        raise SourceError(f"{name}: only a folder written by datasets.save_to_disk has splits; leave out #{split}")
    parts = sorted(part for part in filesystem.find(path) if _is_data(part, path))
    if parts:
        files = [DataFile(filesystem, part, PurePosixPath(part).name) for part in parts]
        others = [other for other in names if PurePosixPath(other).suffix in _READERS.keys() - {".parquet"}]
        return ParquetSource(files, name, sorted(others))
    raise SourceError(
        f"{name} is a folder without .parquet files and not one written by datasets.save_to_disk; it has: "
        f"{listed(sorted(names), most=10)}. Name one file; {_SUPPORTED}"
    )


def _is_data(part: str, folder: str) -> bool:
    inside = part.removeprefix(folder).strip("/").split("/")
    return part.endswith(".parquet") and not any(name.startswith(("_", ".")) for name in inside)


def _filesystem(address: str) -> tuple[Any, str]:
    from fsspec.core import url_to_fs  # noqa: PLC0415

    try:
        filesystem, path = url_to_fs(address)
    except ImportError as error:
        package = getattr(error.__cause__, "name", None) or "fsspec"
        kind = f"reading {address.partition('://')[0]}:// URLs"
        raise MissingDependencyError(package, kind, f"pip install {package}") from error
    except ValueError as error:
        raise SourceError(f"{_shown(address)} can not be opened: {error}") from error
    return filesystem, path


def _exists(filesystem: Any, path: str, address: str) -> bool:
    try:
        return bool(filesystem.exists(path))
    except Exception as error:  # the client library of every store has exceptions of its own
        raise SourceError(f"{_shown(address)} can not be reached: {error}") from error


def _not_found(filesystem: Any, path: str, address: str) -> str:
    parent, _, name = path.rstrip("/").rpartition("/")
    message = f"{_shown(address)} does not exist"
    if any(character in name for character in "*?["):
        return f"{message}: names are taken as they are, not as patterns. Name one file, or a folder of .parquet files"
    if not filesystem.isdir(parent or "/"):
        return f"{message}, nor does its folder"
    near = nearest(name, [PurePosixPath(entry).name for entry in filesystem.ls(parent or "/", detail=False)])
    return f"{message}. Did you mean {near!r}?" if near else message


def _shown(address: str) -> str:
    """An address without what may be secret in it: user, password and query of a URL."""
    if "://" not in address:
        return address
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}" + (
        f"#{parts.fragment}" if parts.fragment else ""
    )
