"""A data set that is an object in this process, made into a file that any process can read."""

import posixpath
import uuid
from typing import TYPE_CHECKING

import fsspec
from fsspec.core import url_to_fs

if TYPE_CHECKING:
    from datasets import Dataset


def saved(dataset: "Dataset", root: str) -> str:
    """Saves a data set as Parquet and returns where it is; an equal one is saved once.

    Args:
        dataset: a `datasets.Dataset`.
        root: folder or fsspec URL to save it below.
    """
    path = posixpath.join(root, "sources", f"{dataset._fingerprint}.parquet")  # noqa: SLF001 its only stable name
    fs, inner = url_to_fs(path)
    if not fs.exists(inner):
        fs.makedirs(posixpath.dirname(inner), exist_ok=True)
        temporary = f"{path}.{uuid.uuid4().hex}.tmp"
        with fsspec.open(temporary, "wb") as file:
            dataset.to_parquet(file)
        fs.mv(url_to_fs(temporary)[1], inner)
    return path
