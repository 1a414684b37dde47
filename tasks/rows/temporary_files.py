"""Say which folder lacks room for temporary files."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from metric_core.errors import StorageError


@contextmanager
def name_folder() -> Iterator[None]:
    """Name the folder of temporary files in an error of writing or reading one in the block.

    Raises:
        StorageError: An operation fails.
    """
    try:
        yield
    except OSError as error:
        folder = tempfile.tempdir or "any folder that is usual for them"
        raise StorageError(
            f"temporary files cannot be used in {folder}: {error.strerror or error}. A run keeps there what it needs "
            "of its rows, about 1 kB each: make room, or set TMPDIR to another folder. What is computed is kept."
        ) from error
