"""Disks that are full after some bytes: a limit on the size of files, and a small file system in memory."""

import os
import resource
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def full_after(size: int) -> Iterator[None]:
    """Let no file of this process grow beyond a size: the write that crosses it is cut short, the next one fails."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@contextmanager
def small_disk(folder: Path, size: int) -> Iterator[Path]:
    """Mount a file system of some bytes at a new folder; skip the test where mounting is not allowed."""
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(folder)]
    try:
        mounted = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        pytest.skip(f"a small disk cannot be mounted: {error}")
    if mounted.returncode:
        pytest.skip(f"a small disk cannot be mounted: {mounted.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)  # a file of it may still be open


def fill(folder: Path) -> Path:
    """Fill the disk of a folder with one file, and return the file."""
    path = folder / "filling"
    with path.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(os.statvfs(folder).f_frsize))
        except OSError:
            return path
