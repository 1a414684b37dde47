"""Convert the spans of evidence of a row to the form of the samples table, before their places are known."""

from collections.abc import Mapping
from typing import Any

from metric_core.evidence_spans import EvidenceSpan, PlacedSpan, SpanState
from tasks.runtime.wording import describe_value
from tasks.sources.cells.ids import as_id, storable
from tasks.sources.cells.judgment_values import GRADE_KEYS, parse_grade
from tasks.sources.readers.bad_rows import InvalidRowError

DOCUMENT_KEYS = ("document", "document_id")
_WANTED = (
    'a list of texts, or of objects as {"document": "fees.md", "start": 120, "end": 147, "text": "The fee is ..."}'
)
_LAST_POSITION = 10**15
"""Greatest position of a character in a document: whatever is added to it, 64 bits hold it."""


def as_evidence_spans(value: Any) -> list[dict[str, Any]]:
    """Return spans of evidence in the form of the samples table; those without a grade have the grade 1.

    >>> [(span["text"], span["grade"]) for span in as_evidence_spans(["It rains.", {"text": "It pours.", "grade": 3}])]
    [('It rains.', 1.0), ('It pours.', 3.0)]

    Raises:
        InvalidRowError: The value is not such a list, or a text is blank.
    """
    if not isinstance(value, list | tuple):
        raise InvalidRowError(f"got {describe_value(value)}, wanted {_WANTED}")
    return [_table_form(item, number) for number, item in enumerate(value, start=1)]


def read_span(item: Mapping[str, object], what: str) -> EvidenceSpan:
    """Return the span in an object or a row of a table.

    Args:
        what: The span in messages.

    Raises:
        InvalidRowError: It has no text, or a position, grade or document of another kind.
    """
    text = item.get("text")
    if not isinstance(text, str) or not text.strip():
        raise InvalidRowError(f"the text of {what} is {describe_value(text)}, wanted one that is not blank")
    document = next((item[key] for key in DOCUMENT_KEYS if item.get(key) is not None), None)
    grade = next((item[key] for key in GRADE_KEYS if item.get(key) is not None), 1)
    return EvidenceSpan(
        storable(text),
        None if document is None else as_id(document, f"the document of {what} is"),
        as_position(item.get("start"), f"the start of {what} is"),
        as_position(item.get("end"), f"the end of {what} is"),
        parse_grade(grade),
        *(_words(item.get(side), f"the text {side} {what} is") for side in ("before", "after")),
    )


def _table_form(item: Any, number: int) -> dict[str, Any]:
    if not isinstance(item, str | Mapping):
        raise InvalidRowError(f"span {number} is {describe_value(item)}, wanted {_WANTED}")
    span = read_span({"text": item} if isinstance(item, str) else item, f"span {number}")
    return PlacedSpan(span, SpanState.UNSEEN).to_json()


def _words(value: Any, place: str) -> str:
    if value is None or isinstance(value, str):
        return storable(value or "")
    raise InvalidRowError(f"{place} {describe_value(value)}, wanted a text")


def as_position(value: Any, place: str) -> int | None:
    """Return the position of a character in a document; None if it is not known.

    Raises:
        InvalidRowError: It is not a whole number, or larger than any document and any table could hold.
    """
    if value is None or value == "":
        return None
    is_text = isinstance(value, str) and value.isdecimal() and len(value) <= len(str(_LAST_POSITION))
    if is_text or (isinstance(value, float) and value.is_integer()):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) > _LAST_POSITION:
        raise InvalidRowError(f"{place} {describe_value(value)}, wanted a whole number up to {_LAST_POSITION:,}")
    return value
