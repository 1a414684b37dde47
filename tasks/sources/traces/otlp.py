"""Read spans of the OpenTelemetry protocol, from JSON or from the fields of its protobuf messages."""

import base64
import binascii
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from tasks.sources.readers.bad_rows import InvalidRowError
from tasks.sources.traces.attributes import Event, fill_span
from tasks.sources.traces.spans import Span

_SPANS = ("resourceSpans", "resource_spans")
_LOGS = ("resourceLogs", "resource_logs")
_ERROR = ("STATUS_CODE_ERROR", 2, "2")
_REMOTE = 0x200
"""Flag of a span whose parent is in another process; 0x100 says that the flag is known."""
_VALUES = ("stringValue", "boolValue", "doubleValue")
_NANOSECONDS = 1_000_000_000
_BASE64_LENGTHS = (12, 24)
"""Lengths of the ids of spans and traces in base64."""


def is_otlp(record: Mapping[str, object]) -> bool:
    """Return whether a record is a message of the protocol with spans or log records."""
    return any(key in record for key in (*_SPANS, *_LOGS))


def read_otlp(record: Mapping[str, object]) -> tuple[list[Span], dict[tuple[str, str], list[Event]]]:
    """Return the spans of a message, and the events in its log records by trace id and span id.

    Raises:
        InvalidRowError: The message is not in the form of the protocol.
    """
    children = _children(record, _SPANS, ("scopeSpans", "scope_spans"), "spans")
    spans = [_span(span, resource) for resource, span in children]
    events: dict[tuple[str, str], list[Event]] = {}
    logs = _children(record, _LOGS, ("scopeLogs", "scope_logs"), "logRecords")
    for _, log in logs:
        key = _id(log.get("traceId")), _id(log.get("spanId"))
        attributes = _attributes(log.get("attributes"))
        body = _value(log.get("body"))
        content = {**attributes, **(body if isinstance(body, Mapping) else {"content": body})}
        events.setdefault(key, []).append(
            Event(str(log.get("eventName") or attributes.get("event.name") or ""), content)
        )
    return spans, events


def _children(
    record: Mapping[str, object], outer: tuple[str, str], inner: tuple[str, str], leaf: str
) -> Iterator[tuple[dict[str, Any], Mapping[str, Any]]]:
    for group in _objects(_either(record, outer)):
        resource = group.get("resource")
        attributes = _attributes(resource.get("attributes")) if isinstance(resource, Mapping) else {}
        scopes = _either(group, (*inner, "instrumentationLibrarySpans"))
        for scope in _objects(scopes):
            for child in _objects(_either(scope, (leaf, "log_records"))):
                yield attributes, child


def _either(fields: Mapping[str, object], names: tuple[str, ...]) -> Any:
    return next((fields[name] for name in names if name in fields), None)


def _objects(value: Any) -> list[Mapping[str, Any]]:
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(item, Mapping) for item in value):
        raise InvalidRowError("the OTLP message is damaged: wanted a list of objects")
    return value


def _span(fields: Mapping[str, object], resource: Mapping[str, object]) -> Span:
    trace_id, span_id = _id(_field(fields, "traceId")), _id(_field(fields, "spanId"))
    if not trace_id or not span_id:
        raise InvalidRowError("a span has no trace id or no span id")
    status = fields.get("status")
    flags = fields.get("flags")
    span = Span(
        trace_id,
        span_id,
        _id(_field(fields, "parentSpanId")) or None,
        str(fields.get("name") or ""),
        start=_seconds(_field(fields, "startTimeUnixNano")),
        end=_seconds(_field(fields, "endTimeUnixNano")),
        failed=isinstance(status, Mapping) and status.get("code") in _ERROR,
        parent_is_remote=isinstance(flags, int) and bool(flags & _REMOTE),
    )
    events = [
        Event(str(event.get("name") or ""), _attributes(event.get("attributes")))
        for event in _objects(fields.get("events"))
    ]
    # Those of the span take precedence over those of the resource, such as the name of the service.
    return fill_span(span, {**resource, **_attributes(fields.get("attributes"))}, events)


def _field(fields: Mapping[str, object], name: str) -> Any:
    """Return a field by its name in JSON, or in protobuf."""
    if name in fields:
        return fields[name]
    return fields.get("".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name))


def _attributes(pairs: Any) -> dict[str, Any]:
    return {str(pair["key"]): _value(pair.get("value")) for pair in _objects(pairs) if isinstance(pair.get("key"), str)}


def _value(value: Any) -> Any:
    """Return the value of an attribute, which the protocol wraps in an object that names its type."""
    if not isinstance(value, Mapping):
        return value
    for name in _VALUES:
        if name in value:
            return value[name]
    if "intValue" in value:
        try:
            return int(value["intValue"])  # 64 bits are a text in JSON
        except (TypeError, ValueError):
            raise InvalidRowError(f"an attribute is {value['intValue']!r}, wanted a whole number") from None
    if "arrayValue" in value:
        return [_value(item) for item in _objects(_inside(value["arrayValue"]))]
    if "kvlistValue" in value:
        return _attributes(_inside(value["kvlistValue"]))
    return value.get("bytesValue")


def _inside(value: Any) -> Any:
    return value.get("values") if isinstance(value, Mapping) else value


def _id(value: Any) -> str:
    """Return an id in lower-case hexadecimal digits; some writers encode it in base64, as protobuf's JSON does.

    >>> _id("5B8EFFF798038103D269B633813FC60C") == _id("W47/95gDgQPSabYzgT/GDA==")
    True
    """
    if isinstance(value, bytes):
        return value.hex()
    if not isinstance(value, str):
        return ""
    if len(value) in _BASE64_LENGTHS and value.endswith("="):
        with suppress(binascii.Error):
            return base64.b64decode(value, validate=True).hex()
    return value.lower()


def _seconds(value: Any) -> float | None:
    try:
        return int(value) / _NANOSECONDS or None
    except (TypeError, ValueError):
        return None
