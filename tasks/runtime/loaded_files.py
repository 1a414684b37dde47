"""Note the state of this project's source files when they are loaded, to notice when a file has changed since.

A process may run for days, and its files be edited or upgraded meanwhile: what lies on the disk is then not what runs.
The state of a file is that of its directory entry, which is read without opening the file.
"""

import os
import time
from collections.abc import Mapping
from pathlib import Path

PACKAGES = ("metric_core", "tasks")

FileState = tuple[int, int, int]
"""Time of the last change in nanoseconds, size, and inode."""

STARTED = time.time()
"""Time when this process began to load the project, in seconds since 1970."""


def note_files(root: Path) -> Mapping[str, FileState]:
    """Return the state of the source files of both packages, by path.

    Args:
        root: Folder of both packages.
    """
    found: dict[str, FileState] = {}
    for package in PACKAGES:
        _scan(f"{root}{os.sep}{package}", found)
    return found


def _scan(folder: str, found: dict[str, FileState]) -> None:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(".py"):
                found[entry.path] = _state(entry.stat())
            elif "." not in entry.name and entry.name != "__pycache__" and entry.is_dir():
                _scan(entry.path, found)


def file_state(path: str) -> FileState:
    """Return the present state of a file.

    Raises:
        OSError: The file does not exist.
    """
    return _state(Path(path).stat())


def _state(status: os.stat_result) -> FileState:
    return status.st_mtime_ns, status.st_size, status.st_ino


NOTED: Mapping[str, FileState] = note_files(Path(__file__).parents[2])
"""State of each file when this process began to load the project."""
