"""A data set that is an object in this process, made into a file that any process can read."""

import posixpath
from typing import TYPE_CHECKING

from tasks.tables.inventory import SOURCES
from tasks.tables.table_files import atomic_file, filesystem, touch

if TYPE_CHECKING:
    from datasets import Dataset


def save_dataset(dataset: "Dataset", root: str) -> str:
    """Saves a data set as Parquet and returns where it is; an equal one is saved once.

    Args:
        dataset: a `datasets.Dataset`.
        root: folder or fsspec URL to save it below.

    Raises:
        AssayError: it can not be written there.
    """
    path = posixpath.join(root, SOURCES, f"{dataset._fingerprint}.parquet")  # noqa: SLF001 its only stable name
    fs, inner = filesystem(path)
    if fs.exists(inner):
        touch(fs, inner)
    else:
        with atomic_file(fs, inner) as temporary, fs.open(temporary, "wb") as file:
            dataset.to_parquet(file)
    return path
