"""Files of the store of stage tables, here or behind an fsspec URL: each is there as a whole or not at all."""

import os
import posixpath
import uuid
from contextlib import suppress
from urllib.parse import urlsplit

import fsspec
from fsspec.core import url_to_fs

from metric_core.errors import AssayError, MissingDependencyError

OBJECT_STORES = frozenset({"s3", "s3a", "gs", "gcs", "abfs", "abfss", "az"})
"""Protocols under which a file can not be seen before it is whole, and that have no folders to make."""

_INSTALL = {"s3": "pip install 'rag-assay[s3]'", "s3a": "pip install 'rag-assay[s3]'"}


def filesystem(url: str) -> tuple[fsspec.AbstractFileSystem, str]:
    """The file system of a path or URL, and the place in it.

    Raises:
        AssayError: nothing installed knows the URL's protocol.
    """
    try:
        fs, path = url_to_fs(url)
    except ImportError as error:
        protocol = url.partition("://")[0]
        package = getattr(error.__cause__, "name", None) or "fsspec"
        install = _INSTALL.get(protocol, f"pip install {package}")
        raise MissingDependencyError(package, f"a store at a {protocol}:// URL", install) from error
    except ValueError as error:
        raise AssayError(f"the store {urlsplit(url).scheme}://... can not be opened: {error}") from error
    return fs, path


def write_whole(fs: fsspec.AbstractFileSystem, path: str, content: bytes) -> None:
    """Writes a file; nobody finds a part of it under its name.

    Raises:
        AssayError: it can not be written.
    """
    try:
        if OBJECT_STORES.intersection(_protocols(fs)):
            fs.pipe_file(path, content)
            return
        folder, name = posixpath.split(path)
        fs.makedirs(folder, exist_ok=True)
        _write_and_rename(
            fs, posixpath.join(folder, f".{name.partition('.')[0]}.{uuid.uuid4().hex}.tmp"), path, content
        )
    except OSError as error:
        raise AssayError(
            f"{fs.unstrip_protocol(path)} can not be written: {error}. Look at the place that `tables` names, at the "
            "credentials in the environment, and at the room that is left there."
        ) from error


def _write_and_rename(fs: fsspec.AbstractFileSystem, temporary: str, path: str, content: bytes) -> None:
    try:
        fs.pipe_file(temporary, content)
        fs.mv(temporary, path)
    except BaseException:
        if fs.exists(temporary):
            fs.rm(temporary)
        raise


def touch(fs: fsspec.AbstractFileSystem, path: str) -> None:
    """Notes that a file has been used, where the file system is local; elsewhere it is as old as its content."""
    if is_local(fs):
        with suppress(OSError):
            os.utime(path)


def is_local(fs: fsspec.AbstractFileSystem) -> bool:
    """Whether files lie on this machine, or look as if they did."""
    return "file" in _protocols(fs)


def _protocols(fs: fsspec.AbstractFileSystem) -> tuple[str, ...]:
    return (fs.protocol,) if isinstance(fs.protocol, str) else tuple(fs.protocol)
