"""Check that files can be written, before anything is computed that would be written to them."""

import os
from contextlib import suppress
from pathlib import Path

from metric_core.errors import AssayError
from tasks.runtime.atomic_files import is_device, translate_write_errors


def probe_folder(folder: Path) -> None:
    """Check that files can be created in a folder, which need not exist; leave nothing behind.

    Creating a file is the only sure check: permissions do not show that a file system is full or read-only.

    Args:
        folder: Absolute path of the folder.

    Raises:
        OSError: The folder cannot be created, or no file in it.
    """
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    probe = folder / f".assay-probe-{os.getpid()}"
    try:
        for each in reversed(missing):
            each.mkdir(exist_ok=True)
        if not folder.is_dir():
            raise NotADirectoryError(f"{folder} is a file, not a folder")
        probe.write_bytes(b"")
    finally:
        with suppress(OSError):
            probe.unlink(missing_ok=True)
        for each in missing:
            with suppress(OSError):  # another process may have put a file there
                each.rmdir()


def check_file(path: Path, what: str, error_class: type[AssayError] = AssayError) -> None:
    """Check that a file can be written; its folder need not exist.

    Args:
        what: Description of the file, for the message.

    Raises:
        AssayError: The file cannot be written; the message says why.
    """
    target = path.expanduser().absolute()
    with translate_write_errors(f"{what} {path}", error_class):
        if target.is_dir():
            raise IsADirectoryError(f"{target} is a folder, not a file")
        if not is_device(target):
            probe_folder(target.parent)
        if target.exists() and not os.access(target, os.W_OK):
            raise PermissionError("the existing file is not writable")
