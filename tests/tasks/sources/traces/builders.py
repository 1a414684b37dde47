"""Builds spans as the OpenTelemetry SDK makes them, and their forms as files."""

import json
from base64 import b64decode
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from google.protobuf.json_format import MessageToDict
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from tasks.sources import SampleReader, SourceOptions, read_samples

_IDS = ("traceId", "spanId", "parentSpanId")


class Recorder:
    """A provider of tracers that keeps its spans."""

    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        self.provider = TracerProvider(resource=Resource({"service.name": "prod"}))
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.tracer = self.provider.get_tracer("tests")

    @property
    def spans(self) -> Sequence[ReadableSpan]:
        return self.exporter.get_finished_spans()


def otlp(spans: Sequence[ReadableSpan]) -> ExportTraceServiceRequest:
    """Return the request that an exporter sends."""
    return encode_spans(spans)


def otlp_json(spans: Sequence[ReadableSpan]) -> dict[str, Any]:
    """Return the request in the protocol's JSON, with ids in hexadecimal digits as its specification wants."""
    request: dict[str, Any] = MessageToDict(otlp(spans))
    for group in request["resourceSpans"]:
        for scope in group["scopeSpans"]:
            for span in scope["spans"]:
                span |= {name: b64decode(span[name]).hex() for name in _IDS if name in span}
    return request


def frame(*messages: bytes) -> bytes:
    """Return messages as the collector's file exporter writes them: each after its size in four bytes."""
    return b"".join(len(message).to_bytes(4, "big") + message for message in messages)


def read_traces(path: Path | str, **traces: Any) -> tuple[SampleReader, list[dict[str, Any]]]:
    """Return the reader and the rows of a source of traces, with the other columns as an object."""
    options = SourceOptions(traces=traces or None)
    reader = read_samples(f"traces:{path}", options, {})
    rows = [row for table in reader for row in table.to_pylist()]
    for row in rows:
        row["extras"] = json.loads(row["extras"] or "{}")
    return reader, rows


def write_json_lines(path: Path, records: Sequence[Any]) -> Path:
    """Write records as JSON Lines; texts as they are."""
    path.write_text("".join((each if isinstance(each, str) else json.dumps(each)) + "\n" for each in records))
    return path
