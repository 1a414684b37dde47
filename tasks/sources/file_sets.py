"""Open the files of a folder, or those that match a pattern, as one source."""

import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any, TypeAlias

from metric_core.errors import SourceError
from tasks.runtime.wording import quote_names
from tasks.sources.readers.concatenated import ConcatenatedSource
from tasks.sources.readers.formats import OPENERS, SUPPORTED, find_opener
from tasks.sources.readers.protocol import RowSource
from tasks.sources.readers.source_files import DataFile

_HIDDEN = ("_", ".")
"""Prefixes of the names of files and folders without rows: `_SUCCESS`, `_metadata`, `.part-0.crc`."""
_MOST_NAMES = 10


def is_pattern(path: str) -> bool:
    """Return whether a path that does not exist may be a pattern.

    >>> is_pattern("logs/part-?.jsonl"), is_pattern("https://host/log.jsonl?version=2")
    (True, False)
    """
    return _before_magic(path) != path


FileSet: TypeAlias = tuple[list[DataFile], str, str, tuple[str, ...]]
"""Files in order, at least one; the name of the set; the common prefix of the names; and warnings."""


def open_files_of(filesystem: Any, path: str, name: str) -> RowSource:
    """Return a source of the files of a folder and its subfolders.

    Raises:
        SourceError: None of the files can be read, or they have several formats.
    """
    return _open(*find_files(filesystem, path, name, OPENERS))


def find_files(filesystem: Any, path: str, name: str, extensions: Collection[str]) -> FileSet:
    """Return the files of a folder and its subfolders with one of these extensions.

    Raises:
        SourceError: There is none.
    """
    filesystem.invalidate_cache()  # files are added while this process runs, and some file systems cache listings
    found = filesystem.find(path, detail=True)
    root = name if name.endswith("/") else f"{name}/"
    files, left_out = _select_files(filesystem, found, path, root, extensions)
    if not files:
        inside = sorted(PurePosixPath(entry).name for entry in filesystem.ls(path, detail=False))
        raise SourceError(
            f"{name} is a folder without a readable file, and was not written by datasets.save_to_disk; it "
            f"has: {quote_names(inside, most=_MOST_NAMES)}; {_supported(extensions)}"
        )
    return files, name, root, _warn_about(left_out, name)


def open_pattern(filesystem: Any, path: str, name: str) -> RowSource:
    """Return a source of the files that match an fsspec pattern: `*`, `?`, `[a-z]`, and `**` for folders.

    Raises:
        SourceError: The pattern matches no readable file, or files of several formats.
    """
    return _open(*find_pattern(filesystem, path, name, OPENERS))


def find_pattern(filesystem: Any, path: str, name: str, extensions: Collection[str]) -> FileSet:
    """Return the files that match a pattern and have one of these extensions.

    Raises:
        SourceError: There is none.
    """
    filesystem.invalidate_cache()
    try:
        found = filesystem.glob(path, detail=True)
    except ValueError as error:
        raise SourceError(f"{name} cannot be used as a pattern: {error}") from error
    folder, root = _folder_of(path), _folder_of(name)
    files, left_out = _select_files(filesystem, found, folder, root, extensions)
    if not files:
        instead = _suggest_instead(filesystem, found, folder, root, extensions)
        raise SourceError(f"{name} matches no readable file: {instead}")
    return files, name, root, _warn_about(left_out, name)


def _select_files(
    filesystem: Any, found: Mapping[str, Mapping[str, object]], folder: str, root: str, extensions: Collection[str]
) -> tuple[list[DataFile], dict[str, list[str]]]:
    """Return the files with rows, in the order of their names, and the names of the others by their kind."""
    paths = {_inside(path, folder): path for path, info in found.items() if info["type"] != "directory"}
    names = sorted((name for name in paths if not _is_hidden(name)), key=_natural)
    files: list[DataFile] = []
    left_out: dict[str, list[str]] = {}
    for name in names:
        file = DataFile(filesystem, paths[name], f"{root}{name}")
        if not file.is_regular:
            left_out.setdefault("FIFOs, sockets, devices and broken links", []).append(name)
        elif file.extension not in extensions:
            left_out.setdefault("files of unknown formats", []).append(name)
        else:
            files.append(file)
    return files, left_out


def _warn_about(left_out: Mapping[str, Sequence[str]], name: str) -> tuple[str, ...]:
    return tuple(f"{name}: {kind} are not read: {quote_names(names, most=5)}" for kind, names in left_out.items())


def _supported(extensions: Collection[str]) -> str:
    return SUPPORTED if extensions is OPENERS else f"they end in {', '.join(extensions)}, also compressed"


def _open(files: Sequence[DataFile], name: str, root: str, warnings: Sequence[str]) -> RowSource:
    first = files[0]
    opener = find_opener(first)
    for file in files:
        if find_opener(file) is not opener:
            raise SourceError(
                f"{name} has files of several formats, such as {_inside(first.name, root)!r} and "
                f"{_inside(file.name, root)!r}; a source has one format. Select the files with a pattern, such as "
                f"{root}**/*{first.extension}*"
            )
    return ConcatenatedSource(files, opener, name, root, warnings)


def _suggest_instead(
    filesystem: Any, found: Mapping[str, Mapping[str, object]], folder: str, root: str, extensions: Collection[str]
) -> str:
    matched = quote_names((_inside(path, folder) for path in found), most=_MOST_NAMES)
    if found and all(info["type"] == "directory" for info in found.values()):
        return f"it matches only folders: {matched}. Append /*.jsonl to match the files in them"
    if found:
        return f"it matches {matched}; names that begin with _ or . are skipped, and {_supported(extensions)}"
    if not filesystem.isdir(folder or "/"):
        return f"there is no folder {root}"
    names = sorted(PurePosixPath(entry).name for entry in filesystem.ls(folder or "/", detail=False))
    return f"{root or 'the folder'} has {quote_names(names, most=_MOST_NAMES)}"


def _is_hidden(name: str) -> bool:
    return any(part.startswith(_HIDDEN) for part in name.split("/"))


def _natural(name: str) -> tuple[list[list[str | int]], str]:
    """Return a sort key that orders numbers in names by value.

    >>> sorted(["b/part-10", "b/part-9", "a b/part-11", "a/part-12"], key=_natural)
    ['a/part-12', 'a b/part-11', 'b/part-9', 'b/part-10']
    """
    return [
        [int(piece) if piece.isdecimal() else piece for piece in re.split(r"(\d+)", part)] for part in name.split("/")
    ], name


def _inside(path: str, folder: str) -> str:
    return path.removeprefix(folder).lstrip("/")


def _before_magic(path: str) -> str:
    magic = r"[*[]" if path.startswith(("http://", "https://")) else r"[*?[]"
    return re.split(magic, path, maxsplit=1)[0]


def _folder_of(pattern: str) -> str:
    folder, slash, _ = _before_magic(pattern).rpartition("/")
    return folder + slash
