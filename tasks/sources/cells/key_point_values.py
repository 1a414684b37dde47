"""Convert the key points of a row to the form of the samples table."""

from collections.abc import Mapping
from typing import Any

from metric_core.records import Importance
from tasks.runtime.wording import describe_value
from tasks.sources.cells.evidence_values import as_evidence_spans
from tasks.sources.cells.ids import storable
from tasks.sources.readers.bad_rows import InvalidRowError

EVIDENCE = "evidence"
"""Member of a key point with the spans of the sources that state it."""
TEXT_KEYS = ("text", "key_point", "fact", "nugget")
_WANTED = 'a list of texts, or of objects as {"text": "It opens at nine.", "importance": "vital"}'


def as_key_points(value: Any) -> list[dict[str, Any]]:
    """Return key points with their evidence; those without an importance are vital.

    >>> as_key_points(["It opens at nine.", {"nugget": "It is in Delft.", "importance": "Okay"}])[1]
    {'text': 'It is in Delft.', 'importance': 'okay', 'evidence': []}

    Raises:
        InvalidRowError: The value is not such a list, a point is blank, an importance is neither vital nor okay, or its
            evidence is not a list of spans.
    """
    if not isinstance(value, list | tuple):
        raise InvalidRowError(f"got {describe_value(value)}, wanted {_WANTED}")
    return [_point(item, number) for number, item in enumerate(value, start=1)]


def _point(item: Any, number: int) -> dict[str, Any]:
    text, importance, evidence = item, None, None
    if isinstance(item, Mapping):
        text = next((item[key] for key in TEXT_KEYS if item.get(key) is not None), None)
        importance, evidence = item.get("importance"), item.get(EVIDENCE)
    if not isinstance(text, str):
        raise InvalidRowError(f"key point {number} is {describe_value(item)}, wanted {_WANTED}")
    if not text.strip():
        raise InvalidRowError(f"key point {number} is blank, wanted a text")
    return {
        "text": storable(text),
        "importance": _importance(importance, number),
        EVIDENCE: [] if evidence is None else _spans(evidence, number),
    }


def _spans(value: Any, number: int) -> list[dict[str, Any]]:
    try:
        return as_evidence_spans(value if isinstance(value, list | tuple) else [value])
    except InvalidRowError as invalid:
        raise InvalidRowError(f"the evidence of key point {number}: {invalid.problem}") from None


def _importance(value: Any, number: int) -> str:
    if value is None:
        return str(Importance.VITAL)
    name = value.strip().casefold() if isinstance(value, str) else value
    if name not in list(Importance):
        problem = f"the importance of key point {number} is {describe_value(value)}"
        raise InvalidRowError(f"{problem}, wanted {' or '.join(Importance)}")
    return str(name)
