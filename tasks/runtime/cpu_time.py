"""Measure the CPU time of work in this process, also of threads that work for the measured one."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import local


@dataclass(slots=True)
class CpuTime:
    """CPU time of a block, in seconds; complete when the block has ended."""

    seconds: float = 0.0


class _Running(local):
    """The measurements that are running in a thread."""

    def __init__(self) -> None:
        self.measured: list[CpuTime] = []


_running = _Running()


@contextmanager
def measure_cpu() -> Iterator[CpuTime]:
    """Measure the CPU time of the calling thread, and that reported for threads that worked for it.

    >>> with measure_cpu() as spent:
    ...     add_cpu(1.5)
    >>> round(spent.seconds, 1)
    1.5
    """
    spent = CpuTime()
    _running.measured.append(spent)
    start = time.thread_time()
    try:
        yield spent
    finally:
        spent.seconds += time.thread_time() - start
        _running.measured.remove(spent)


def add_cpu(seconds: float) -> None:
    """Add CPU time that another thread or process spent to the measurements of the calling thread."""
    for spent in _running.measured:
        spent.seconds += seconds
