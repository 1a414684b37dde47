"""Read spans with named attributes: data frames and replies of Phoenix, and the console form of OpenTelemetry."""

from collections.abc import Iterator, Mapping
from typing import Any

from tasks.sources.readers.bad_rows import InvalidRowError
from tasks.sources.traces.attributes import TEXTS, Event, fill_span
from tasks.sources.traces.spans import Span
from tasks.sources.traces.values import as_name, as_seconds, parse_literal

_PREFIX = "attributes."
_WHOLE = TEXTS | {"metadata"}
"""Attributes whose value may be an object, and is kept as it is."""


def is_span(record: Mapping[str, Any]) -> bool:
    """Return whether a record is a span with a context and attributes."""
    return "context.trace_id" in record or (
        isinstance(record.get("context"), Mapping) and "trace_id" in record["context"]
    )


def read_span(record: Mapping[str, object]) -> Span:
    """Return a span.

    Raises:
        InvalidRowError: It has no trace id or no span id.
    """
    context = record.get("context")
    context = context if isinstance(context, Mapping) else {}
    trace_id = _id(record.get("context.trace_id") or context.get("trace_id"))
    span_id = _id(record.get("context.span_id") or context.get("span_id"))
    if trace_id is None or span_id is None:
        raise InvalidRowError("a span has no trace id or no span id")
    status = record.get("status")
    code = record.get("status_code") or (status.get("status_code") if isinstance(status, Mapping) else None)
    span = Span(
        trace_id,
        span_id,
        _id(record.get("parent_id")),
        str(record.get("name") or ""),
        start=as_seconds(record.get("start_time")),
        end=as_seconds(record.get("end_time")),
        failed=str(code).rpartition(".")[2] == "ERROR",
    )
    resource = record.get("resource")
    resource = resource.get("attributes") if isinstance(resource, Mapping) else None
    kind = record.get("span_kind")
    attributes = {
        **(dict(resource) if isinstance(resource, Mapping) else {}),
        **({"openinference.span.kind": kind} if isinstance(kind, str) else {}),
        **dict(_flatten("", parse_literal(record.get("attributes")))),
    }
    for name, value in record.items():
        if name.startswith(_PREFIX):
            attributes |= dict(_flatten(name.removeprefix(_PREFIX), _plain(name.removeprefix(_PREFIX), value)))
    return fill_span(span, attributes, _events(parse_literal(record.get("events"))))


def _plain(name: str, value: Any) -> Any:
    """Return the list or object that a cell holds as text, except of an attribute whose value is a text."""
    loaded = value if name in _WHOLE else parse_literal(value)
    return loaded if isinstance(loaded, list | Mapping) else value


def _flatten(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield nested attributes under the names of the conventions, which have dots."""
    if isinstance(value, float) and value != value:  # noqa: PLR0124 a missing value of a data frame
        return
    if isinstance(value, Mapping) and name not in _WHOLE:
        for key, inner in value.items():
            yield from _flatten(f"{name}.{key}" if name else str(key), inner)
    elif value not in (None, "") and name:  # an empty cell of CSV
        yield name, value


def _events(value: Any) -> list[Event]:
    events = [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []
    pairs = [(each.get("name"), each.get("attributes")) for each in events]
    return [Event(str(name or ""), content if isinstance(content, Mapping) else {}) for name, content in pairs]


def _id(value: Any) -> str | None:
    name = as_name(value)
    return None if name is None else name.removeprefix("0x")
