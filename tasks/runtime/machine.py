"""Tell how many processors this process may use, and how much memory is free."""

import os
from pathlib import Path

_MEMORY = Path("/proc/meminfo")
_GROUP = Path("/sys/fs/cgroup")
"""The limits of a container, where it has some."""


def count_processors() -> int:
    """Return how many processors this process may use."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota, _, period = _read(_GROUP / "cpu.max").partition(" ")
    return max(1, min(allowed, int(quota) // int(period))) if quota.isdecimal() else allowed


def find_free_memory() -> int | None:
    """Return the bytes of memory that new processes can have; None if this system does not tell."""
    lines = dict(line.split(":", 1) for line in _read(_MEMORY).splitlines())
    if "MemAvailable" not in lines:
        return None
    free = int(lines["MemAvailable"].split()[0]) * 1024
    limit, used = _read(_GROUP / "memory.max"), _read(_GROUP / "memory.current")
    return min(free, int(limit) - int(used)) if limit.isdecimal() and used.isdecimal() else free


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="ascii").strip()
    except OSError:
        return ""
