"""Identify the content of a model's folder, where a retrained model may replace an earlier one."""

import hashlib
from pathlib import Path

_DIGITS = 16


def folder_revision(folder: Path) -> str:
    """Return a digest of the names and contents of all files of a folder except hidden ones."""
    digest = hashlib.sha256()
    files = (path for path in folder.rglob("*") if path.is_file())
    for path in sorted(files, key=lambda path: path.relative_to(folder).as_posix()):
        name = path.relative_to(folder)
        if any(part.startswith(".") for part in name.parts):
            continue
        with path.open("rb") as file:
            content = hashlib.file_digest(file, "sha256").hexdigest()
        digest.update(f"{name.as_posix()}\n{content}\n".encode())
    return f"sha256:{digest.hexdigest()[:_DIGITS]}"
