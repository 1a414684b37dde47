"""Read files of run folders without following links, which would show files from elsewhere."""

import os
import stat
from pathlib import Path

from metric_core.errors import RunFolderError

MAX_PAGE = 512 * 1024**2
"""Maximum size of a page in bytes."""

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK  # a pipe would wait for its writer


def check_files(folder: Path) -> None:
    """Check that a run folder holds nothing but files and folders.

    Args:
        folder: Run folder; folders above it may be links.

    Raises:
        RunFolderError: The folder, or something in it, is a link, a pipe or a device.
    """
    found = [folder]
    for root, folders, files in os.walk(folder):
        found += (Path(root, name) for name in (*folders, *files))
    for path in found:
        mode = path.lstat().st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            raise _foreign(path)


def read_page(path: Path) -> str:
    """Return the text of a page in a run folder.

    Args:
        path: File in a run folder.

    Raises:
        RunFolderError: It is no file, or has more than MAX_PAGE bytes.
        OSError: It cannot be read.
    """
    folder = os.open(path.parent, _FOLDER)
    try:
        with os.fdopen(os.open(path.name, _FILE, dir_fd=folder), encoding="utf-8") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise _foreign(path)
            if status.st_size > MAX_PAGE:
                raise RunFolderError(f"{path} has more than {MAX_PAGE:,} bytes; open the file itself")
            return file.read()
    finally:
        os.close(folder)


def _foreign(path: Path) -> RunFolderError:
    return RunFolderError(f"{path} is a link, a pipe or a device, and only files are shown; put a file in its place")
