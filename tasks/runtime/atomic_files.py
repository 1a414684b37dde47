"""Write files atomically: readers find the whole file or none.

Content goes into a temporary file beside the target, which is then renamed. `tasks.rows.table_files` does the same
for stores behind fsspec URLs. A structure test refuses other ways to write files.
"""

import errno
import json
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from metric_core.errors import AssayError, RunFolderError

PRIVATE_FOLDER = 0o700
PRIVATE_FILE = 0o600

_SUFFIX = ".tmp"


def temporary_name(name: str) -> str:
    """Return the name of the temporary file for a file.

    >>> temporary_name("run.json")
    '.run.json.tmp'
    """
    return f".{name}{_SUFFIX}"


def is_temporary(name: str) -> bool:
    """Return whether a name is that of a temporary file, which a killed writer leaves behind.

    >>> is_temporary(".run.json.tmp"), is_temporary("run.json")
    (True, False)
    """
    return name.startswith(".") and name.endswith(_SUFFIX)


@contextmanager
def atomic_file(path: Path) -> Iterator[Path]:
    """Yield a path to write to; it replaces `path` when the block ends and is deleted if the block fails.

    Devices and pipes, such as `/dev/stdout`, are written directly.

    Args:
        path: Target file, in an existing folder. Two writers must not write it at the same time.
    """
    if is_device(path):
        yield path
        return
    temporary = path.with_name(temporary_name(path.name))
    try:
        yield temporary
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def is_device(path: Path) -> bool:
    """Return whether a path names a device, a pipe or a folder, which no file can replace."""
    folder = os.path.realpath(path.parent)  # of /dev/fd/3 it is in /proc
    return folder == "/dev" or folder.startswith("/proc/") or (path.exists() and not path.is_file())


def atomic_write(path: Path, text: str, errors: str = "strict") -> None:
    r"""Write a text file in UTF-8, with `\n` at the ends of its lines, and wait until the disk has it.

    After a power cut, the old or the new file is there.

    Args:
        path: Target file, in an existing folder. Two writers must not write it at the same time.
        errors: Treatment of characters that UTF-8 cannot encode, as in `str.encode`.
    """
    with atomic_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8", errors=errors, newline="\n")
        if temporary != path:
            sync_to_disk(temporary)
    if not is_device(path):
        sync_to_disk(path.parent)


@contextmanager
def translate_write_errors(what: str, error_class: type[AssayError] = AssayError, advice: str = "") -> Iterator[None]:
    """Raise the errors of a block that writes files as errors that name what was being written.

    Args:
        what: Description of the file or folder, with its path.
        advice: Sentences that follow the cause.

    Raises:
        AssayError: The block raised an OSError.
    """
    try:
        yield
    except OSError as error:
        message = f"{what} cannot be written: {error.strerror or error}"
        raise error_class(f"{message}. {advice}" if advice else message) from error


@contextmanager
def output_file(path: Path, what: str, error_class: type[AssayError] = RunFolderError) -> Iterator[Path]:
    """Yield a path to write a file of the user to, as `atomic_file` does, and create its folder.

    A file that is replaced keeps its permissions.

    Args:
        what: Description of the file, for the message.

    Raises:
        AssayError: The file cannot be written.
    """
    with translate_write_errors(f"{what} {path}", error_class):
        if not path.parent.exists():  # if it exists and is not a folder, the error of writing names it
            path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_file(path) as temporary:
            yield temporary
            if path.is_file():
                temporary.chmod(stat.S_IMODE(path.stat().st_mode))


def write_output(path: Path, text: str, what: str, error_class: type[AssayError] = RunFolderError) -> None:
    """Write a text file of the user; characters that UTF-8 cannot encode become question marks. See `output_file`."""
    with output_file(path, what, error_class) as temporary:
        temporary.write_text(text, encoding="utf-8", errors="replace", newline="\n")


def create_private_folder(folder: Path) -> None:
    """Create a folder and its missing parents, accessible to the user only; leave one that exists as it is.

    Raises:
        OSError: A folder cannot be created.
    """
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    for each in reversed(missing):
        each.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)
    if not folder.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, f"{folder} is a file, not a folder")


def create_private_file(path: Path) -> None:
    """Create an empty file that the user alone can read, and its folder; leave one that exists as it is.

    Raises:
        OSError: The file cannot be created.
    """
    create_private_folder(path.parent)
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE_FILE))


def sync_to_disk(path: Path) -> None:
    """Wait until the content of a file, or the names in a folder, have reached the disk.

    Raises:
        OSError: The disk has not taken them.
    """
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def append_whole(path: Path, content: bytes) -> None:
    """Append to a file, which is created for the user alone if need be: all of the content or nothing.

    If the disk gets full, what was written is cut off again, unless another process has appended to the file meanwhile.

    Args:
        path: Target file, in an existing folder.

    Raises:
        OSError: The content cannot be appended.
    """
    create_private_file(path)
    with path.open("ab", buffering=0) as file:
        size, written = file.seek(0, os.SEEK_END), 0
        try:
            while written < len(content):
                written += file.write(memoryview(content)[written:])
        except OSError:
            if os.fstat(file.fileno()).st_size == size + written:
                file.truncate(size)
            raise


def write_json(path: Path, content: Mapping[str, object]) -> None:
    """Write a JSON file as `atomic_write` does.

    Args:
        path: Target file, in an existing folder.
        content: JSON object; values that JSON lacks are written as their `str`.

    Raises:
        ValueError: The content holds NaN or an infinity.
    """
    text = json.dumps(content, ensure_ascii=False, indent=2, allow_nan=False, default=str) + "\n"
    # The note about a row that was left out because its text is not UTF-8 must be writable.
    atomic_write(path, text, errors="backslashreplace")
