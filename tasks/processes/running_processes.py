"""List the running processes of this machine with their start times and groups.

The system reuses process ids, but an id and a start time together identify a process. Linux lists both in /proc, other
systems through `ps`.
"""

import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tasks.processes.stop import end_process

PROC = Path("/proc")
BOOT_ID = PROC / "sys/kernel/random/boot_id"


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


def find_process(pid: int) -> Process | None:
    """Return the running process with an id; None if there is none."""
    return next((process for process in running_processes() if process.pid == pid), None)


def end_group(group: int, timeout: float) -> bool:
    """End all processes of a group: send SIGTERM, and SIGKILL to those that do not end in time.

    Args:
        timeout: Seconds to wait after each of the two signals.

    Returns:
        Whether all processes have ended.
    """
    return end_process(lambda signal_number: os.killpg(group, signal_number), lambda: has_members(group), timeout)


def has_members(group: int) -> bool:
    """Return whether a process of a group is running."""
    return any(group_members(group))


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
