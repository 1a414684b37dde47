"""Identify the code of the formulas, so that scores and diagnoses are kept for as long as it stays the same."""

import hashlib
from functools import cache
from importlib import import_module
from pathlib import Path

_PACKAGES = tuple(map(import_module, ("metric_core", "tasks.evidence", "tasks.languages")))
_DIGITS = 32


@cache
def digest_formulas() -> str:
    """Return the digest of all modules that scores and diagnoses are computed by, besides the stages themselves.

    The stages have a version, but nobody would think of it who corrects a formula.
    """
    digest = hashlib.sha256()
    for package in _PACKAGES:
        folder = Path(str(package.__file__)).parent
        for file in sorted(folder.rglob("*.py")):
            digest.update(f"{file.relative_to(folder).as_posix()}\n".encode())
            digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()[:_DIGITS]
