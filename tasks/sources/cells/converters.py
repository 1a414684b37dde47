"""Convert values of a source to values of a sample: one converter per column type, which refuses invalid values."""

import json
import math
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, TypeAlias

from metric_core.columns import ColumnType
from metric_core.records import finite_number
from tasks.runtime.wording import describe_value
from tasks.sources.cells.evidence_values import as_evidence_spans
from tasks.sources.cells.ids import as_id, storable
from tasks.sources.cells.judgment_values import as_judgments
from tasks.sources.cells.key_point_values import as_key_points
from tasks.sources.cells.messages import count_messages
from tasks.sources.readers.bad_rows import InvalidRowError

_CONVERSATION_HINT = "--column-map NAME=messages reads the column NAME as conversations"

Converter: TypeAlias = Callable[[Any], Any]
"""A function from a value that is not null to the value in the samples table. Raises InvalidRowError."""


def as_text(value: Any) -> str:
    """Return the value if it is a text that can be stored as UTF-8.

    >>> as_text(5)
    Traceback (most recent call last):
        ...
    tasks.sources.readers.bad_rows.InvalidRowError: got the number 5, wanted a text
    """
    if messages := count_messages(value):
        raise InvalidRowError(f"got a conversation of {messages} messages, wanted a text", hint=_CONVERSATION_HINT)
    if not isinstance(value, str):
        raise InvalidRowError(f"got {describe_value(value)}, wanted a text")
    return storable(value)


def as_texts(value: Any) -> list[str]:
    """Return a list of texts, which may be empty.

    >>> as_texts([])
    []
    >>> as_texts(["a", None])
    Traceback (most recent call last):
        ...
    tasks.sources.readers.bad_rows.InvalidRowError: item 2 is null, wanted a list of texts
    """
    for number, item in enumerate(_items(value, 'a list of texts, as ["one", "two"]'), start=1):
        if not isinstance(item, str):
            raise InvalidRowError(f"item {number} is {describe_value(item)}, wanted a list of texts")
        storable(item)
    return list(value)


def as_ids(value: Any) -> list[str]:
    """Return a list of ids as text, from texts or whole numbers.

    >>> as_ids(["a", 7, 8.0])
    ['a', '7', '8']
    """
    return [
        as_id(item, f"item {number} is", "a list of ids (texts or whole numbers)")
        for number, item in enumerate(_items(value, "a list of ids (texts or whole numbers)"), start=1)
    ]


def as_rubrics(value: Any) -> list[dict[str, str]]:
    """Return a mapping of text to text in the form of the samples table, in the order of the mapping.

    Arrow formats have every key of the whole table in every row, so keys without a value are left out. Arrow maps
    (pairs) and the form of the samples table (key and description) are accepted too.

    >>> as_rubrics({"score1_description": "wrong", "score2_description": None})
    [{'key': 'score1_description', 'description': 'wrong'}]
    """
    pairs = _pairs(value)
    rubrics: dict[str, str] = {}
    for key, description in pairs:
        if description is None:
            continue
        if not isinstance(key, str) or not isinstance(description, str):
            wrong = description if isinstance(key, str) else key
            raise InvalidRowError(f"{describe_value(wrong)} in the rubrics, wanted a mapping of text to text")
        if key in rubrics:
            raise InvalidRowError(f"the key {key!r} twice, wanted a mapping of text to text")
        rubrics[storable(key)] = storable(description)
    return [{"key": key, "description": description} for key, description in rubrics.items()]


def as_joined_text(value: Any) -> str:
    r"""Return a text, or a list of texts joined by newlines: older data sets allow several reference answers.

    >>> as_joined_text(["Paris.", "It is Paris."])
    'Paris.\nIt is Paris.'
    """
    if isinstance(value, str):
        return storable(value)
    if not isinstance(value, list | tuple):
        raise InvalidRowError(f"got {describe_value(value)}, wanted a text or a list of texts")
    return "\n".join(as_texts(value))


def as_numbers(value: Any) -> list[float | None]:
    """Return a list of numbers; None for a missing one.

    >>> as_numbers([0.5, 2, None, float("nan")])
    [0.5, 2.0, None, None]
    >>> as_numbers([0.5, "high"])
    Traceback (most recent call last):
        ...
    tasks.sources.readers.bad_rows.InvalidRowError: item 2 is the text 'high', wanted a list of finite numbers
    """
    return [_as_number(item, number) for number, item in enumerate(_items(value, "a list of finite numbers"), start=1)]


def as_results(value: Any) -> list[str]:
    """Return the results of tools as texts; results of other types as JSON.

    >>> as_results(["12 C", {"rain": False}])
    ['12 C', '{"rain": false}']
    """
    return [
        storable(item if isinstance(item, str) else json.dumps(item, ensure_ascii=False, default=str))
        for item in _items(value, "a list of results of tools")
    ]


def _as_number(item: Any, number: int) -> float | None:
    if item is None or (isinstance(item, float) and math.isnan(item)):
        return None
    found = finite_number(item) if isinstance(item, int | float | Decimal) else None
    if found is None:
        raise InvalidRowError(f"item {number} is {describe_value(item)}, wanted a list of finite numbers")
    return found


CONVERTERS: dict[ColumnType, Converter] = {
    ColumnType.TEXT: as_text,
    ColumnType.TEXTS: as_texts,
    ColumnType.IDS: as_ids,
    ColumnType.RUBRICS: as_rubrics,
    ColumnType.NUMBERS: as_numbers,
    ColumnType.JUDGMENTS: as_judgments,
    ColumnType.KEY_POINTS: as_key_points,
    ColumnType.EVIDENCE_SPANS: as_evidence_spans,
}


def _items(value: Any, wanted: str) -> list[Any] | tuple[Any, ...]:
    if not isinstance(value, list | tuple):
        raise InvalidRowError(f"got {describe_value(value)}, wanted {wanted}")
    return value


def _pairs(value: Any) -> list[tuple[Any, Any]]:
    if isinstance(value, Mapping):
        return list(value.items())
    if isinstance(value, list) and all(isinstance(item, tuple) and len(item) == 2 for item in value):
        return value
    if isinstance(value, list) and all(
        isinstance(item, dict) and set(item) == {"key", "description"} for item in value
    ):
        return [(item["key"], item["description"]) for item in value]
    raise InvalidRowError(f"got {describe_value(value)}, wanted a mapping of text to text")
