"""Keep a run going when the cache database fails: warn once, pause, and treat the cache as empty."""

import logging
import time
from collections.abc import Callable
from typing import Literal, TypeVar

from sqlalchemy.exc import SQLAlchemyError

from tasks.runtime.database import Database
from tasks.runtime.database_errors import error_reason, is_damage

T = TypeVar("T")
Access = Literal["reading", "writing"]

REST_SECONDS = 30.0
"""Seconds for which a database that failed is not used: waiting for one that is down would cost more than it saves."""

_logger = logging.getLogger(__name__)


class CircuitBreaker:
    """A guard around a database that replaces failures with a fallback. May be used from several threads.

    Reading and writing are paused separately: a full disk can still be read.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._warned = False
        self._open_until: dict[Access, float] = {"reading": 0.0, "writing": 0.0}

    def reset(self) -> None:
        """Allow the next access even if the database failed a moment ago."""
        self._open_until = {"reading": 0.0, "writing": 0.0}

    def call(self, access: Access, work: Callable[[], T], fallback: T) -> T:
        """Return the result of work on the database, or `fallback` if the database cannot be used."""
        if time.monotonic() < self._open_until[access]:
            return fallback
        try:
            return work()
        except (SQLAlchemyError, OSError) as error:
            self._open_until[access] = time.monotonic() + REST_SECONDS
            if not self._warned:
                self._warned = True
                _logger.warning(
                    "the answer cache %s cannot be used (%s): cached answers are recomputed, and new answers may "
                    "not be cached.%s",
                    self._database.name,
                    error_reason(error),
                    " The file is damaged: delete it or restore a copy." if is_damage(error) else "",
                )
            return fallback
