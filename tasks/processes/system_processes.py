"""Start, find and end processes of this machine.

The system reuses process ids, but an id and a start time together identify a process. Linux lists both in /proc, other
systems through `ps`.
"""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
BOOT_ID = PROC / "sys/kernel/random/boot_id"
POLL_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class Process:
    """A running process. A zombie, which has ended and waits for its parent, is not running.

    Args:
        group: Id of its process group.
        started: Start time, as the system writes it.
    """

    pid: int
    group: int
    started: str

    def may_follow(self, started: str) -> bool:
        """Return whether this process may have started after another one, within the same boot of the machine."""
        boot, _, ticks = started.rpartition(" ")
        own_boot, _, own_ticks = self.started.rpartition(" ")
        return not BOOT_ID.exists() or (own_boot == boot and int(own_ticks) >= int(ticks))


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


def end_group(group: int, is_alive: Callable[[], bool], timeout: float) -> bool:
    """Send SIGTERM to the processes of a group, and SIGKILL to those that do not end in time.

    Args:
        is_alive: Returns whether the group has not ended yet.
        timeout: Seconds to wait after each of the two signals.

    Returns:
        Whether the group has ended.
    """
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(group, number)
        deadline = time.monotonic() + timeout
        while is_alive():
            if time.monotonic() > deadline:
                break
            time.sleep(POLL_SECONDS)
        else:
            return True
    return False


def find_process(pid: int) -> Process | None:
    """Return the running process with an id; None if there is none."""
    return next((process for process in running_processes() if process.pid == pid), None)


def group_members(group: int) -> Iterator[Process]:
    """Iterate over the running processes of a group."""
    return (process for process in running_processes() if process.group == group)


def running_processes() -> Iterator[Process]:
    """Iterate over all running processes."""
    return _from_proc() if BOOT_ID.exists() else _from_ps()


def _from_proc() -> Iterator[Process]:
    boot = BOOT_ID.read_text(encoding="ascii").strip()
    for folder in PROC.iterdir():
        if not folder.name.isdigit():
            continue
        try:
            stat = (folder / "stat").read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue  # ended in the meantime
        state, _parent, group, *rest = stat.rpartition(")")[2].split()
        if state not in "ZX":
            yield Process(int(folder.name), int(group), f"{boot} {rest[16]}")


def _from_ps() -> Iterator[Process]:
    command = ["ps", "-A", "-o", "pid=", "-o", "pgid=", "-o", "stat=", "-o", "lstart="]
    environment = {**os.environ, "LC_ALL": "C", "TZ": "UTC"}
    listed = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)  # noqa: S603
    for line in listed.stdout.splitlines():
        pid, group, state, started = line.split(maxsplit=3)
        if not state.startswith("Z"):
            yield Process(int(pid), int(group), started)
