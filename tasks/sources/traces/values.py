"""Read single values of spans: times, counts, names, and JSON in texts."""

import json
import math
import re
from datetime import UTC, datetime
from typing import Any

from tasks.sources.cells.text_cells import parse_cell
from tasks.sources.readers.bad_rows import InvalidRowError

_OBJECT = re.compile(r"<[\w.]+( object\b.*|\(.*\))>", re.DOTALL)


def decode_text(value: Any) -> Any:
    r"""Return the text in a text of JSON, which exporters encode once more at each step; any other value unchanged.

    >>> decode_text('"\\"Why?\\""'), decode_text('"Yes" and "no"'), decode_text(5)
    ('Why?', '"Yes" and "no"', 5)
    """
    while isinstance(value, str) and (shown := value.strip()).startswith('"'):
        try:
            value = json.loads(shown)
        except ValueError:
            break
    return value


def parse_literal(value: Any) -> Any:
    """Return what a text with JSON, a Python literal or a printed object holds; any other value unchanged.

    >>> parse_literal('{"question": "Why?"}'), parse_literal("Why?")
    ({'question': 'Why?'}, 'Why?')
    """
    value = decode_text(value)
    if not isinstance(value, str):
        return value
    try:
        return parse_cell(value)
    except InvalidRowError:
        return value


def is_unread_object(text: str) -> bool:
    """Return whether a text is what Python shows of an object whose content an instrumentor did not record.

    >>> is_unread_object("<generator object>"), is_unread_object("<NodeWithScore(node=TextNode(id_=a), score=1.0)>")
    (True, True)
    >>> is_unread_object("<b>At nine.</b>")
    False
    """
    return _OBJECT.fullmatch(text) is not None


def as_seconds(value: Any) -> float | None:
    """Return a time as seconds since 1970: from ISO 8601, of UTC without an offset, or a date and time.

    >>> as_seconds("2024-05-29 13:46:19.963000") == as_seconds("2024-05-29T13:46:19.963Z")
    True
    """
    if isinstance(value, str) and value:
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            return None
    if not isinstance(value, datetime):
        return None
    return (value if value.tzinfo is not None else value.replace(tzinfo=UTC)).timestamp()


def as_count(value: Any) -> int | None:
    """Return a number of tokens, which some exports write as text or with a fraction.

    >>> as_count("12"), as_count(12.0), as_count("many") is None
    (12, 12, True)
    """
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return int(number) if math.isfinite(number) and not isinstance(value, bool) else None


def as_name(value: Any) -> str | None:
    """Return an id or a name as text; None for a missing or empty one."""
    if isinstance(value, float) and math.isnan(value):
        return None
    return None if value is None or value == "" else str(value)
