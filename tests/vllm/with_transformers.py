"""Let tests import torch and transformers from the environment of `just judge-cpu`: a plugin of pytest.

    python -m pytest -p tests.vllm.with_transformers tests/tasks/models/judges/verifiers

Packages of the running environment come first, so that only those that it lacks come from there.
"""

import sys

import pytest

from tests.vllm.build_judge_cpu import PYTHON, judge_cpu


def find_obstacle() -> str | None:
    """Return why torch and transformers cannot be imported from there; None if they can be."""
    if sys.version_info[:2] != PYTHON:
        return f"the judge on a CPU has packages for Python {PYTHON[0]}.{PYTHON[1]}, this is {sys.version.split()[0]}"
    if not judge_cpu().is_complete():
        return f"there is no vLLM for CPUs in {judge_cpu().path}: build it with `just judge-cpu`"
    return None


def extend_path() -> None:
    """Make its packages importable, behind all others."""
    folder = judge_cpu().path / "venv" / "lib" / f"python{PYTHON[0]}.{PYTHON[1]}" / "site-packages"
    if str(folder) not in sys.path:
        sys.path.append(str(folder))


@pytest.hookimpl(trylast=True)
def pytest_configure() -> None:
    """Fail unless torch and transformers can be imported, so that no test is skipped for want of them."""
    obstacle = find_obstacle()
    if obstacle is not None:
        raise pytest.UsageError(obstacle)
    extend_path()
    for name in ("torch", "transformers"):
        __import__(name)
