"""Files of the store of stage tables, here or behind an fsspec URL: each is there as a whole or not at all."""

import os
import posixpath
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit

import fsspec
from fsspec.core import url_to_fs

from metric_core.errors import AssayError, MissingDependencyError

OBJECT_STORES = frozenset({"s3", "s3a", "gs", "gcs", "abfs", "abfss", "az"})
"""Protocols under which a file can not be seen before it is whole, and that have no folders to make."""

TABLES = "tables"
"""The setting that says where stage tables, and what is kept beside them, are."""

_CLIENT_ERRORS = {
    "botocore.exceptions": ("BotoCoreError", "ClientError"),
    "google.auth.exceptions": ("GoogleAuthError",),
    "gcsfs.retry": ("HttpError",),
    "azure.core.exceptions": ("AzureError",),
    "aiohttp": ("ClientError",),
}
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


def translate_storage_errors(*others: type[Exception]) -> tuple[type[Exception], ...]:
    """What the clients of file systems raise where a place can not be reached or used; not all of it is an OSError.

    To be asked when an error has come: a client that is not loaded has raised none.

    Args:
        others: errors that are to be treated likewise.
    """
    loaded = ((sys.modules.get(module), names) for module, names in _CLIENT_ERRORS.items())
    known = (getattr(module, name, None) for module, names in loaded for name in names)
    return (OSError, *others, *(error for error in known if error is not None))


def atomic_write(fs: fsspec.AbstractFileSystem, path: str, content: bytes, setting: str = TABLES) -> None:
    """Writes a file; nobody finds a part of it under its name.

    Args:
        fs: its file system.
        path: its place there.
        content: what it is to hold.
        setting: the setting that says where files of its kind are, for the message.

    Raises:
        AssayError: it can not be written.
    """
    if OBJECT_STORES.intersection(_protocols(fs)):
        with translate_errors(fs, path, setting):
            fs.pipe_file(path, content)
        return
    with atomic_file(fs, path, setting) as temporary:
        fs.pipe_file(temporary, content)


@contextmanager
def atomic_file(fs: fsspec.AbstractFileSystem, path: str, setting: str = TABLES) -> Iterator[str]:
    """A place for a file that takes its name when the block is done, and goes away if the block fails.

    Args:
        fs: its file system.
        path: the place that it is to have there.
        setting: as for `atomic_write`.

    Raises:
        AssayError: it can not be written.
    """
    folder, name = posixpath.split(path)
    temporary = posixpath.join(folder, f".{name.partition('.')[0]}.{uuid.uuid4().hex}.tmp")
    with translate_errors(fs, path, setting):
        fs.makedirs(folder, exist_ok=True)
        try:
            yield temporary
            fs.mv(temporary, path)
        except BaseException:
            if fs.exists(temporary):
                fs.rm(temporary)
            raise


@contextmanager
def translate_errors(
    fs: fsspec.AbstractFileSystem, path: str, setting: str = TABLES, what: str = "written"
) -> Iterator[None]:
    """A block that does something at a place.

    Args:
        fs: its file system.
        path: the place.
        setting: the setting that says where it is, for the message.
        what: what is done, likewise.

    Raises:
        AssayError: it can not be done.
    """
    try:
        yield
    except translate_storage_errors() as error:
        raise AssayError(
            f"{fs.unstrip_protocol(path)} can not be {what}: {error}. Look at the place that `{setting}` names, at "
            "the credentials in the environment, and at the room that is left there."
        ) from error


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
