"""Read and write files of a table store, local or behind an fsspec URL. Every file appears whole or not at all."""

import os
import posixpath
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
from fsspec.core import url_to_fs

from metric_core.errors import AssayError, MissingDependencyError, StorageError
from tasks.runtime.atomic_files import PRIVATE_FILE, create_private_folder, sync_to_disk, temporary_name
from tasks.runtime.stored_data import FOLDER

OBJECT_STORES = frozenset({"s3", "s3a", "gs", "gcs", "abfs", "abfss", "az"})
"""Protocols under which a file appears only when it is whole, and which have no folders to create."""

TABLES = "tables"
"""Name of the option that says where stage tables and the files beside them are."""

SOURCES = FOLDER
"""Name of the folder of data that was passed as objects or fetched from an index."""

RUNNING = "running"
"""Name of the folder of the heartbeat files of runs in progress; the file of a killed run stays."""

MODELS = "models"
"""Name of the folder of the served models that gave rows."""

_CLIENT_ERRORS = {
    "botocore.exceptions": ("BotoCoreError", "ClientError"),
    "google.auth.exceptions": ("GoogleAuthError",),
    "gcsfs.retry": ("HttpError",),
    "azure.core.exceptions": ("AzureError",),
    "aiohttp": ("ClientError",),
}
_INSTALL = {"s3": "pip install 'rag-assay[s3]'", "s3a": "pip install 'rag-assay[s3]'"}


def filesystem(url: str) -> tuple[fsspec.AbstractFileSystem, str]:
    """Return the file system of a path or URL, and the path within it.

    Args:
        url: Local path or fsspec URL.

    Raises:
        AssayError: No installed package supports the protocol of the URL.
    """
    try:
        fs, path = url_to_fs(url)
    except ImportError as error:
        protocol = url.partition("://")[0]
        package = getattr(error.__cause__, "name", None) or "fsspec"
        install = _INSTALL.get(protocol, f"pip install {package}")
        raise MissingDependencyError(package, f"a store at a {protocol}:// URL", install) from error
    except ValueError as error:
        raise AssayError(f"the store {urlsplit(url).scheme}://... cannot be opened: {error}") from error
    return fs, path


def storage_errors(*others: type[Exception]) -> tuple[type[Exception], ...]:
    """Return the errors that clients of file systems raise when they cannot reach or use a path.

    Not all of them are OSErrors. Call this when an error was raised: a client that is not loaded did not raise it.

    Args:
        others: Further errors to return.
    """
    loaded = ((sys.modules.get(module), names) for module, names in _CLIENT_ERRORS.items())
    known = (getattr(module, name, None) for module, names in loaded for name in names)
    return (OSError, *others, *(error for error in known if error is not None))


def atomic_fs_write(
    fs: fsspec.AbstractFileSystem, path: str, content: bytes, setting: str = TABLES, *, is_synced: bool = False
) -> None:
    """Write a file whole or not at all.

    Args:
        path: Target file within the file system.
        setting: Name of the option that says where such files are, for the error message.
        is_synced: True waits until the disk has the file, so that it is there after a power cut; ignored for URLs.

    Raises:
        AssayError: The file cannot be written.
    """
    if OBJECT_STORES.intersection(_protocols(fs)):
        with translate_errors(fs, path, setting):
            fs.pipe_file(path, content)
        return
    with atomic_fs_file(fs, path, setting) as temporary:
        fs.pipe_file(temporary, content)
        if is_synced and is_local(fs):
            sync_to_disk(Path(temporary))
    if is_synced and is_local(fs):
        sync_to_disk(Path(path).parent)


@contextmanager
def atomic_fs_file(fs: fsspec.AbstractFileSystem, path: str, setting: str = TABLES) -> Iterator[str]:
    """Yield a path to write to; it replaces `path` when the block ends and is deleted if the block fails.

    Args:
        path: Target file within the file system.
        setting: Name of the option that says where such files are, for the error message.

    Raises:
        AssayError: The file cannot be written.
    """
    folder, name = posixpath.split(path)
    # Several processes may write the same table at the same time.
    temporary = posixpath.join(folder, temporary_name(f"{name.partition('.')[0]}.{uuid.uuid4().hex}"))
    with translate_errors(fs, path, setting):
        if is_local(fs):
            create_private_folder(Path(folder))
        else:
            fs.makedirs(folder, exist_ok=True)
        try:
            yield temporary
            if is_local(fs):
                Path(temporary).chmod(PRIVATE_FILE)
            fs.mv(temporary, path)
        except BaseException:
            if fs.exists(temporary):
                fs.rm(temporary)
            raise


@contextmanager
def translate_errors(
    fs: fsspec.AbstractFileSystem, path: str, setting: str = TABLES, what: str = "written"
) -> Iterator[None]:
    """Raise the errors of a block that uses a file as errors that name the file and the option.

    Args:
        path: File or folder within the file system.
        setting: Name of the option that says where such files are.
        what: Participle that says what the block does: "written", "read".

    Raises:
        StorageError: The block raised an error of the file system.
    """
    try:
        yield
    except storage_errors() as error:
        raise StorageError(
            f"{fs.unstrip_protocol(path)} cannot be {what}: {error}. Check the place that `{setting}` names, the "
            "credentials in the environment, and the free space there."
        ) from error


@contextmanager
def open_stored(path: str, what: str, metadata: pq.FileMetaData | None = None) -> Iterator[pq.ParquetFile]:
    """Open a Parquet file for a block, whose errors are raised as errors that name it and say what to do.

    Args:
        path: Path or URL of the file.
        what: Description of the file, for error messages.
        metadata: Metadata of the file, if it is known.

    Raises:
        AssayError: The file is missing or damaged.
        StorageError: The store cannot be reached, or refuses the request.
    """
    try:
        fs, location = filesystem(path)
        # Arrow reads a local file without the interpreter's lock, an open file of Python's with it.
        with pa.OSFile(location) if is_local(fs) else fs.open(location, "rb") as file:
            yield pq.ParquetFile(file, metadata=metadata, page_checksum_verification=True)
    except FileNotFoundError as error:
        raise AssayError(f"{what} does not exist. Run the evaluation again to recompute it.") from error
    except (pa.ArrowException, *storage_errors()) as error:
        if isinstance(error, pa.ArrowException) or is_local(fs):
            raise AssayError(f"{what} cannot be read ({error}). Delete it and run the evaluation again.") from error
        raise StorageError(
            f"{what} cannot be reached: {error}. Check the storage and the credentials in the environment, and run the "
            "evaluation again; rows that are stored are not recomputed."
        ) from error


def touch(fs: fsspec.AbstractFileSystem, path: str) -> None:
    """Set the time of a local file to now, to record its use; do nothing for a URL."""
    if is_local(fs):
        with suppress(OSError):
            os.utime(path)


def is_local(fs: fsspec.AbstractFileSystem) -> bool:
    """Return whether the files of a file system are local files."""
    return "file" in _protocols(fs)


def _protocols(fs: fsspec.AbstractFileSystem) -> tuple[str, ...]:
    return (fs.protocol,) if isinstance(fs.protocol, str) else tuple(fs.protocol)
