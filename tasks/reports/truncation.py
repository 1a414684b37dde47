"""Texts of the data as a page carries them: whole, or their beginning with the length of the whole."""

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from metric_core.records import AnswerStatus

Row: TypeAlias = Mapping[str, Any]

LONGEST_TEXT = 20_000
"""Characters of a text that a page carries; the tables keep the rest."""


def truncate_text(text: str | None, limit: int = LONGEST_TEXT) -> dict[str, Any] | None:
    """Return a text with its beginning only where it is too long, and then with its whole length.

    >>> truncate_text("It rains.", limit=2)
    {'text': 'It', 'of': 9}
    """
    if text is None:
        return None
    return {"text": text} if len(text) <= limit else {"text": text[:limit], "of": len(text)}


def truncate_reply(rows: Iterable[Row]) -> dict[str, Any] | None:
    """Return the judge's own words that rows were made from; None where it was not asked, or is no language model."""
    return truncate_text(next((row["reply"] for row in rows if row["reply"]), None))


def gap_view(rows: Iterable[Row]) -> dict[str, Any] | None:
    """Return why a stage has nothing to show for a row; None if it has something."""
    missing = next((row for row in rows if row["status"] != AnswerStatus.ANSWERED), None)
    return None if missing is None else {"status": missing["status"], "reason": missing["reason"]}
