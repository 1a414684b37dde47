"""Recognize the form of a record of traces, and read its spans."""

from collections.abc import Iterator, Mapping
from typing import Any

from tasks.runtime.wording import describe_value, quote_names
from tasks.sources.readers.bad_rows import InvalidRowError
from tasks.sources.readers.protocol import Unreadable
from tasks.sources.traces import langfuse, langsmith, otlp, span_tables
from tasks.sources.traces.attributes import Event, fill_span
from tasks.sources.traces.spans import Span

FORMS = "OTLP, OpenTelemetry's console form, or an export of Langfuse, LangSmith or Phoenix"
_LISTS = ("data", "rows", "runs", "spans", "traces", "observations", "items")
"""Keys under which documents and replies of APIs have their records."""


class Spans:
    """The spans read so far.

    Args:
        traces: Trace id -> spans in the order in which they were read.
        events: Trace id and span id -> events in log records.
        scores: Number of records that are scores of Langfuse, which are not read.
    """

    def __init__(self) -> None:
        self.traces: dict[str, list[Span]] = {}
        self.events: dict[tuple[str, str], list[Event]] = {}
        self.scores = 0

    def add(self, record: Any) -> Unreadable | None:
        """Read a record; return the problem of one that is damaged or of an unknown form, which gives no span."""
        try:
            spans = list(self._read(record))
        except InvalidRowError as invalid:
            return Unreadable(invalid.problem, invalid.hint)
        except RecursionError:
            return Unreadable("a value is nested too deeply to be read")
        for span in spans:
            self.traces.setdefault(span.trace_id, []).append(span)
        return None

    def finish(self) -> None:
        """Add what log records say about the messages of models to their spans."""
        for (trace_id, span_id), events in self.events.items():
            said = fill_span(Span(trace_id, span_id), {}, events)
            for span in self.traces.get(trace_id, ()):
                if span.span_id == span_id:
                    span.question = span.question or said.question
                    span.earlier = span.earlier or said.earlier
                    span.answer = span.answer or said.answer
                    span.prompt = span.prompt or said.prompt

    def _read(self, record: Any) -> Iterator[Span]:
        if not isinstance(record, Mapping):
            raise InvalidRowError(f"got {describe_value(record)}, wanted an object")
        if otlp.is_otlp(record):
            spans, events = otlp.read_otlp(record)
            for key, found in events.items():
                self.events.setdefault(key, []).extend(found)
            yield from spans
        elif langsmith.is_run(record):
            yield from langsmith.read_langsmith_run(record)
        elif span_tables.is_span(record):
            yield span_tables.read_span(record)
        elif langfuse.is_observation(record):
            yield langfuse.read_observation(record)
        elif langfuse.is_trace(record):
            yield from langfuse.read_trace(record)
        elif langfuse.is_score(record):
            self.scores += 1
        else:
            raise InvalidRowError(f"unknown form: an object with {quote_names(record, most=8)}, wanted {FORMS}")


def records_of(document: Any) -> list[Any]:
    """Return the records of a JSON document: the items of its list, or itself.

    >>> records_of({"data": [{"id": 1}], "meta": {}}), records_of({"resourceSpans": []})
    ([{'id': 1}], [{'resourceSpans': []}])
    """
    if isinstance(document, list):
        return document
    if isinstance(document, Mapping) and not otlp.is_otlp(document) and not langfuse.is_trace(document):
        for key in _LISTS:
            if isinstance(document.get(key), list):
                return list(document[key])
    return [document]
