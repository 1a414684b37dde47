"""Open the caches of answers, vectors and entities."""

from functools import lru_cache
from typing import TYPE_CHECKING

from tasks.runtime.database_address import engine_url, normalize_address
from tasks.runtime.home import assay_home

if TYPE_CHECKING:
    from tasks.cache.answer_cache import AnswerCache

ANSWERS = "answers.db"
"""File name of the default cache, in ASSAY_HOME."""


def open_cache(cache: str | None = None) -> "AnswerCache":
    """Return the cache at an address, without connecting to it yet.

    Args:
        cache: Address of the cache; None for a file in ASSAY_HOME.
    """
    return _open_cache(engine_url(normalize_address(cache or str(assay_home() / ANSWERS))))


@lru_cache(maxsize=16)
def _open_cache(url: str) -> "AnswerCache":
    from tasks.cache.answer_cache import AnswerCache  # noqa: PLC0415 loads the database driver

    return AnswerCache(url)
