"""Truncate the texts on a page, and give the full length of each truncated text."""

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from metric_core.records import AnswerStatus

Row: TypeAlias = Mapping[str, Any]

LONGEST_TEXT = 20_000
"""Maximum number of characters of a text on a page; the tables have the whole text."""


def truncate_text(text: str | None, limit: int = LONGEST_TEXT) -> dict[str, Any] | None:
    """Return a text; if it is too long, its beginning and its full length.

    >>> truncate_text("It rains.", limit=2)
    {'text': 'It', 'of': 9}
    """
    if text is None:
        return None
    return {"text": text} if len(text) <= limit else {"text": text[:limit], "of": len(text)}


def truncate_reply(rows: Iterable[Row]) -> dict[str, Any] | None:
    """Return the judge's reply that rows were made from; None if it was not asked or is not a language model."""
    return truncate_text(next((row["reply"] for row in rows if row["reply"]), None))


def gap_view(rows: Iterable[Row]) -> dict[str, Any] | None:
    """Return status and reason of the first row without an answer; None if all have one."""
    missing = next((row for row in rows if row["status"] != AnswerStatus.ANSWERED), None)
    return None if missing is None else {"status": missing["status"], "reason": missing["reason"]}
