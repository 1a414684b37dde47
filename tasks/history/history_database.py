"""Open the database of the history, and name it in errors."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import SQLAlchemyError

from metric_core.errors import ConfigError
from tasks.history.history_tables import LAYOUT
from tasks.runtime.credentials import is_reference, read_secret
from tasks.runtime.database import Database
from tasks.runtime.database_address import engine_url, normalize_address
from tasks.runtime.database_errors import error_reason, is_damage
from tasks.runtime.home import assay_home

HISTORY = "history.db"
"""File name of the default history, in ASSAY_HOME."""


class HistoryDatabase:
    """The database of the history. It is opened when it is first used, and missing tables are created.

    Args:
        url: Path of a SQLite file, a `postgresql://` URL, or a reference to one (`env:NAME`, `block:NAME`), as in the
            option `history`; None means a file in ASSAY_HOME.

    Raises:
        ConfigError: The address is none of these, or the reference names no secret.
    """

    def __init__(self, url: str | None = None) -> None:
        named = url or str(assay_home() / HISTORY)
        is_secret = is_reference(named)
        address = normalize_address(read_secret(named) if is_secret else named, "history", allow_password=is_secret)
        self.database = Database(engine_url(address), LAYOUT)
        self.address = named if is_secret else self.database.name
        """The address of the database, without a secret."""

    @contextmanager
    def translate_errors(self, done: str) -> Iterator[None]:
        """Raise the errors of the database as errors that name the history.

        Raises:
            ConfigError: The database cannot be used.
        """
        try:
            yield
        except (SQLAlchemyError, sqlite3.Error, OSError) as error:
            damaged = "The file is damaged: delete it, and record the runs again with `assay history --rebuild FOLDER`."
            advice = damaged if is_damage(error) else "Correct this, or set `history` to another database."
            raise ConfigError(
                f"the history {self.address} cannot be {done}: {error_reason(error)}. {advice}"
            ) from error
