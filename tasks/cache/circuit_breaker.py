"""What stands between a run and a store that can not be used: one warning, a rest, and emptiness."""

import logging
import sqlite3
import time
from collections.abc import Callable
from typing import Literal, TypeVar

from sqlalchemy.exc import SQLAlchemyError

from tasks.cache.database import Database

T = TypeVar("T")
Access = Literal["reading", "writing"]

REST_SECONDS = 30.0
"""How long a store that failed is left alone: waiting for one that is down would cost more than it saves."""

_DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)

_logger = logging.getLogger(__name__)


class CircuitBreaker:
    """Asks a database, and gives another answer where it can not. May be used from several threads.

    Reading and writing rest by themselves: a full disk can still be read.

    Args:
        database: who is asked.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._told = False
        self._rests_until: dict[Access, float] = {"reading": 0.0, "writing": 0.0}

    def rested(self) -> None:
        """Has the next access tried, although the database failed a moment ago."""
        self._rests_until = {"reading": 0.0, "writing": 0.0}

    def asked(self, access: Access, work: Callable[[], T], otherwise: T) -> T:
        """The result of work at the database; `otherwise` if the database can not be used."""
        if time.monotonic() < self._rests_until[access]:
            return otherwise
        try:
            return work()
        except (SQLAlchemyError, OSError) as error:
            self._rests_until[access] = time.monotonic() + REST_SECONDS
            if not self._told:
                self._told = True
                _logger.warning(
                    "the store of answers %s can not be used (%s): what it may hold is computed again, and what is "
                    "computed may not be kept.%s",
                    self._database.name,
                    error_reason(error),
                    " The file is damaged: delete it, or put a copy of it back." if _is_damage(error) else "",
                )
            return otherwise


def _is_damage(error: Exception) -> bool:
    """Whether a SQLite file is none, or not whole; a locked or a full one has everything that was kept."""
    return getattr(getattr(error, "orig", None), "sqlite_errorcode", 0) & 0xFF in _DAMAGE


def error_reason(error: Exception) -> str:
    """What went wrong, in the database's words: without the statement, its values and the address."""
    original = getattr(error, "orig", None) or error
    words = str(original).strip().splitlines()
    return words[0] if words else type(original).__name__
