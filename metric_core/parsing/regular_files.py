"""Refuse what is not a regular file before it is opened: reading a FIFO or a device may never end."""

import errno
import stat
from contextlib import suppress
from pathlib import Path

_KINDS = {
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def regular(path: Path) -> Path:
    """Return the path of a file or folder, which may be a link to one; open files that users name by this path.

    Raises:
        OSError: It is a FIFO, a socket or a device, or it does not exist.

    >>> regular(Path("/dev/null"))
    Traceback (most recent call last):
        ...
    OSError: [Errno 22] it is a device, wanted a regular file: '/dev/null'
    """
    kind = _KINDS.get(stat.S_IFMT(path.stat().st_mode))
    if kind is not None:
        raise OSError(errno.EINVAL, f"it is {kind}, wanted a regular file", str(path))
    return path


def check_folder(folder: Path) -> None:
    """Check that a folder and its subfolders have only regular files, before a program opens any of them.

    Raises:
        OSError: See `regular`.
    """
    for path in folder.rglob("*"):
        with suppress(FileNotFoundError):  # removed meanwhile, or a broken link
            regular(path)
