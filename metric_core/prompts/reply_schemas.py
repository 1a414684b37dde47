"""Build the JSON schemas of the replies to judge questions."""

from collections.abc import Mapping
from typing import Any

from metric_core.records import Importance


def object_schema(properties: Mapping[str, object]) -> dict[str, Any]:
    """Return the schema of an object that has exactly these properties.

    >>> object_schema({"score": {"type": "integer"}})["required"]
    ['score']
    """
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


CLAIMS_SCHEMA = object_schema({"claims": {"type": "array", "items": {"type": "string"}}})
"""The schema of claims without a limit of their number."""

_CHARACTERS_PER_CLAIM = 4
_FEWEST_CLAIMS = 8


def claims_schema(text: str) -> dict[str, Any]:
    """Return the schema of the claims of a text, with more room than any text needs: a claim per four characters.

    The limit is a power of two, so that a server compiles few schemas.

    >>> claims_schema("It rains.")["properties"]["claims"]["maxItems"]
    16
    """
    most = _round_up(_FEWEST_CLAIMS + len(text) // _CHARACTERS_PER_CLAIM)
    return object_schema({"claims": {"type": "array", "items": {"type": "string"}, "maxItems": most}})


def relevant_sentences_schema(count: int) -> dict[str, Any]:
    """Return the schema of the numbers of relevant sentences among `count`; the list has room for more."""
    return object_schema(
        {"relevant": {"type": "array", "items": {"type": "integer"}, "maxItems": _round_up(count + 1)}}
    )


MOST_KEY_POINTS = 30
"""Maximum number of key points that are written for a row, as in the TREC 2024 RAG Track."""

KEY_POINTS_SCHEMA = object_schema(
    {
        "key_points": {
            "type": "array",
            "items": object_schema({"text": {"type": "string"}, "importance": {"enum": [*map(str, Importance)]}}),
            "maxItems": MOST_KEY_POINTS,
        }
    }
)


def _round_up(number: int) -> int:
    """Return the smallest power of two that is not smaller."""
    return 1 << (number - 1).bit_length()


EXPLANATION_SCHEMA = object_schema({"explanation": {"type": "string"}})


def questions_schema(count: int) -> dict[str, Any]:
    """Return the schema of a reply with `count` regenerated questions."""
    item = object_schema({"question": {"type": "string"}, "noncommittal": {"type": "boolean"}})
    return object_schema({"questions": {"type": "array", "items": item, "minItems": count, "maxItems": count}})
