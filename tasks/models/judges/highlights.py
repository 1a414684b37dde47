"""Write and read the reply that highlights the unsupported words of a claim."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

_KEY = "unsupported"


def spans_reply(spans: Sequence[Mapping[str, Any]]) -> str:
    """Return the reply that records the unsupported parts of a claim.

    >>> spans_reply([{"start": 0, "end": 2, "text": "It", "probability": 0.9}])
    '{"unsupported": [{"start": 0, "end": 2, "text": "It", "probability": 0.9}]}'
    """
    return json.dumps({_KEY: list(spans)}, ensure_ascii=False)


def read_spans(reply: str | None) -> list[dict[str, Any]] | None:
    """Return the unsupported parts of a claim that a reply records; None for any other reply.

    >>> read_spans('{"unsupported": []}'), read_spans("yes")
    ([], None)
    """
    if reply is None or not reply.startswith(f'{{"{_KEY}": ['):
        return None
    try:
        spans = json.loads(reply)[_KEY]
    except ValueError:
        return None
    if not all(isinstance(span, dict) and isinstance(span.get("text"), str) for span in spans):
        return None
    return list(spans)
