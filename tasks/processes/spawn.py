"""Start a detached process, in its own session, with its output in a log."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path


class _Detached(subprocess.Popen[bytes]):
    """A process that may still run when its object is dropped."""

    def __del__(self) -> None:
        """Do nothing: `subprocess.Popen` warns of a process that runs, also when Python ends."""


_children: list[_Detached] = []
"""The processes that this one started, until it has waited for them."""


def spawn_detached(
    command: Sequence[str], log: Path, environment: Mapping[str, str], working_folder: Path | None = None
) -> subprocess.Popen[bytes]:
    """Start a process that leads a new session and group, and outlives this process.

    Args:
        command: Program and arguments.
        log: File to which the output is appended; only the user can read it.
        environment: All environment variables of the process.
        working_folder: Folder in which the process starts; None is the current one.
    """
    with os.fdopen(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab") as output:
        child = _Detached(
            command,
            cwd=working_folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    _children[:] = [other for other in _children if other.poll() is None]
    _children.append(child)
    return child


def find_exit_code(pid: int) -> int | None:
    """Return the exit code of a process that this one started; None if it is running or was started elsewhere."""
    return next((child.poll() for child in _children if child.pid == pid), None)
