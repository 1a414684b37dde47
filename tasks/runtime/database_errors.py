"""Describe the errors of a database."""

import sqlite3

_DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def is_damage(error: Exception) -> bool:
    """Return whether a SQLite file is damaged; a locked file or a full disk loses nothing."""
    original = getattr(error, "orig", None) or error
    return getattr(original, "sqlite_errorcode", 0) & 0xFF in _DAMAGE


def error_reason(error: Exception) -> str:
    """Return the database's own message of an error, without the statement, its values and the address."""
    original = getattr(error, "orig", None) or error
    words = str(original).strip().splitlines()
    return words[0] if words else type(original).__name__
