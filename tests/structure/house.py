"""The files of the repository, for the tests that look at all of them."""

import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("deployments", "flows", "metric_core", "tasks")


@cache
def files() -> tuple[Path, ...]:
    """Return every file that is tracked or would be, relative to the root."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    except (FileNotFoundError, subprocess.CalledProcessError):
        pytest.skip("the files of the repository are known only in a git checkout")
    return tuple(path for path in map(Path, filter(None, listed.split("\0"))) if (ROOT / path).is_file())


def modules(*packages: str) -> list[Path]:
    """Return the Python files below these folders, relative to the root."""
    return [path for path in files() if path.suffix == ".py" and path.parts[0] in packages]


def modules_with(pattern: str, *packages: str) -> list[Path]:
    """Return the Python files below these folders in whose text a regular expression matches.

    Parsing all of them takes seconds, so tests that look for a name parse those that have it.
    """
    return [path for path in modules(*packages) if re.search(pattern, text_of(path))]


def text_of(path: Path) -> str:
    """Return the text of a file; empty if it is not a text file."""
    try:
        return (ROOT / path).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return ""
