"""Traces that exporters send over HTTP become files that a source of traces reads."""

import gzip
import json
import zlib
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace.export import SpanExportResult

from deployments.trace_receiver import receiver
from tests.deployments.trace_receiver.serving import serve_receiver
from tests.tasks.sources.traces.builders import Recorder, otlp_json, read_traces

GZIP = {"Content-Type": receiver.JSON, "Content-Encoding": "gzip"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "traces"


@pytest.fixture
def url(folder: Path) -> Iterator[str]:
    with serve_receiver(folder) as address:
        yield address


def record(question: str) -> Recorder:
    recorder = Recorder()
    with recorder.tracer.start_as_current_span("rag") as span:
        span.set_attributes({"openinference.span.kind": "CHAIN", "input.value": question, "output.value": "So."})
    return recorder


@pytest.mark.parametrize("compression", Compression)
def test_what_the_sdk_sends_is_read(compression: Compression, url: str, folder: Path) -> None:
    exporter = OTLPSpanExporter(url, compression=compression)
    for question in ("First?", "Second?"):
        assert exporter.export(record(question).spans) is SpanExportResult.SUCCESS
    exporter.shutdown()  # type: ignore[no-untyped-call]
    assert [row["user_input"] for row in read_traces(folder)[1]] == ["First?", "Second?"]


def test_json_is_written_on_one_line(url: str, folder: Path) -> None:
    for question in ("First?", "Second?"):
        content = json.dumps(otlp_json(record(question).spans), indent=2)
        replied = httpx.post(url, content=content, headers={"Content-Type": "application/json; charset=utf-8"})
        assert (replied.status_code, replied.json()) == (200, {})
    assert len((folder / "otlp.jsonl").read_text().splitlines()) == 2
    assert [row["user_input"] for row in read_traces(folder)[1]] == ["First?", "Second?"]


@pytest.mark.parametrize(
    ("headers", "content", "refusal"),
    [
        ({"Content-Type": "text/plain"}, b"x", "415 got text/plain, wanted application/json or"),
        ({}, b"x", "415 got no media type"),
        ({"Content-Type": receiver.JSON, "Content-Encoding": "br"}, b"x", "415 got the encoding br"),
        ({"Content-Type": receiver.JSON, "Content-Encoding": "gzip"}, b"xyz", "400 the message cannot be decompressed"),
        (GZIP, gzip.compress(b"x", mtime=0)[:-4], "400 the message cannot be decompressed: it is cut off"),
        ({"Content-Type": receiver.JSON}, b"x" * 2000, "413 a message has more than 1,000 bytes"),
        (GZIP, gzip.compress(b"x" * 2000, mtime=0), "413 a message has more than"),
        ({**GZIP, "Content-Encoding": "deflate"}, zlib.compress(b"x" * 2000), "413 a message has more than"),
    ],
)
def test_what_is_refused(
    headers: dict[str, str], content: bytes, refusal: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(receiver, "MOST_BYTES", 1000)
    with serve_receiver(tmp_path / "traces") as url:
        replied = httpx.post(url, content=content, headers=headers)
    assert f"{replied.status_code} {replied.text}".startswith(refusal)
    assert not (tmp_path / "traces").exists()
