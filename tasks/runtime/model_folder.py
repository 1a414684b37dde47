"""What tells one state of a model's folder from another: a model trained anew may lie where the one before it lay."""

import hashlib
from pathlib import Path

_DIGITS = 16


def folder_revision(folder: Path) -> str:
    """Digest of all files of a folder, by name and content; hidden ones, which no model is made of, do not count.

    Args:
        folder: of a model.
    """
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
