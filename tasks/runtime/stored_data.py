"""Name the files in which data from Python are stored, and recognize them: their paths mean nothing to people."""

import re
from pathlib import PurePosixPath

_PREFIX = "data-"
_STORED = re.compile(rf"{_PREFIX}[0-9a-f]+")


def stored_name(digest: str, extension: str) -> str:
    """Return the file name of stored data.

    >>> stored_name("9f86d081884c7d65", "jsonl")
    'data-9f86d081884c7d65.jsonl'
    """
    return f"{_PREFIX}{digest}.{extension}"


def is_stored(source: str) -> bool:
    """Return whether a source is data from Python that `stored_name` has named.

    >>> is_stored("tables/sources/data-9f86d081884c7d65.jsonl"), is_stored("data-2026.jsonl")
    (True, False)
    """
    path = PurePosixPath(source)
    return path.parent.name == FOLDER and _STORED.fullmatch(path.stem) is not None


def shown_source(source: str) -> str:
    """Return a source as people know it.

    >>> shown_source("tables/sources/data-9f86d081884c7d65.jsonl"), shown_source("answers.jsonl")
    ('the data', 'answers.jsonl')
    """
    return "the data" if is_stored(source) else source


FOLDER = "sources"
"""Name of the folder of stored data, in the folder of stage tables."""
