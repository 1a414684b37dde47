"""Short descriptions of JSON schemas for prompts; the model server enforces the schema itself."""

import json
from collections.abc import Mapping
from typing import Any


def outline(schema: Mapping[str, Any]) -> str:
    """Return a short description of the JSON that matches a schema.

    >>> outline({"type": "object", "properties": {"claims": {"type": "array", "items": {"type": "string"}}}})
    '{"claims": [string, ...]}'
    >>> outline({"type": "integer", "minimum": 0, "maximum": 10})
    'integer 0..10'
    >>> outline({"enum": ["pass", "fail"]})
    '"pass" | "fail"'
    """
    if "enum" in schema:
        return " | ".join(json.dumps(value, ensure_ascii=False) for value in schema["enum"])
    kind = schema.get("type")
    if kind == "object" and "properties" in schema:
        members = [f"{json.dumps(name)}: {outline(member)}" for name, member in schema["properties"].items()]
        return "{" + ", ".join(members) + "}"
    if kind == "array" and "items" in schema:
        return f"[{outline(schema['items'])}, ...]"
    if kind in ("integer", "number") and ("minimum" in schema or "maximum" in schema):
        return f"{kind} {schema.get('minimum', '')}..{schema.get('maximum', '')}"
    return kind if isinstance(kind, str) else json.dumps(schema, ensure_ascii=False)
