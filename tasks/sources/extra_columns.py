"""Encode the columns that no metric reads as JSON, for reports and exports."""

import json
import math
from collections.abc import Mapping
from typing import Any

from tasks.sources.readers.bad_rows import InvalidRowError

_READABLE = json.JSONEncoder(ensure_ascii=False, allow_nan=False, default=str).encode
_ESCAPED = json.JSONEncoder(ensure_ascii=True, allow_nan=False, default=str).encode


def encode_extras(values: Mapping[str, Any]) -> str | None:
    """Return the JSON of a row's extra columns, with values unknown to JSON as text; None if there are no columns.

    >>> encode_extras({"score": 1.5, "at": float("inf")})
    '{"score": 1.5, "at": "inf"}'

    Raises:
        InvalidRowError: A value is nested too deeply to be written.
    """
    if not values:
        return None
    try:
        return _encode(values)
    except (ValueError, TypeError):
        return _encode(_plain(values))
    except RecursionError:
        raise InvalidRowError("a value is nested too deeply to be stored") from None


def _encode(values: Any) -> str:
    text = _READABLE(values)
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            return _ESCAPED(values)
    return text


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
