"""The processes of this machine: which are running, since when, and in which group.

A process number is used again sooner or later; number and start time together are not. Linux tells both in /proc,
other systems through `ps`.
"""

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
BOOT_ID = PROC / "sys/kernel/random/boot_id"


@dataclass(frozen=True, slots=True)
class Process:
    """A process that is running; one that has ended and only waits for its parent does not count.

    Args:
        pid: its number.
        group: the number of its process group.
        started: when it started, in the words of the system.
    """

    pid: int
    group: int
    started: str

    def may_follow(self, started: str) -> bool:
        """Whether it may have started after another process: not where the machine was started anew in between."""
        boot, _, ticks = started.rpartition(" ")
        own_boot, _, own_ticks = self.started.rpartition(" ")
        return not BOOT_ID.exists() or (own_boot == boot and int(own_ticks) >= int(ticks))


def find_process(pid: int) -> Process | None:
    """The running process with this number."""
    return next((process for process in running_processes() if process.pid == pid), None)


def end_group(group: int, patience: float) -> bool:
    """Ends all processes of a group: asks them to, and kills those that are left.

    Args:
        group: its number.
        patience: seconds to wait for each of the two.

    Returns:
        Whether none is left.
    """
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(group, number)
        deadline = time.monotonic() + patience
        while has_members(group):
            if time.monotonic() > deadline:
                break
            time.sleep(0.05)
        else:
            return True
    return False


def has_members(group: int) -> bool:
    """Whether a process of the group is running."""
    return any(group_members(group))


def group_members(group: int) -> Iterator[Process]:
    """The running processes of a group."""
    return (process for process in running_processes() if process.group == group)


def running_processes() -> Iterator[Process]:
    """All that are running."""
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
