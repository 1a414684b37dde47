"""Traces that exporters send over HTTP become files that a source of traces reads."""

import errno
import gzip
import json
import socket
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from google.rpc.status_pb2 import Status
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace.export import SpanExportResult

from deployments.trace_receiver import receiver, trace_files
from deployments.trace_receiver.trace_files import JSON, PROTOBUF
from tasks.runtime.atomic_files import append_whole
from tests.deployments.trace_receiver.serving import serve_receiver
from tests.full_disk import fill, full_after, small_disk
from tests.tasks.sources.traces.builders import Recorder, otlp, otlp_json, read_traces
from tests.waiting import wait_until

IN_JSON = {"Content-Type": JSON}
IN_PROTOBUF = {"Content-Type": PROTOBUF}
GZIP = {**IN_JSON, "Content-Encoding": "gzip"}


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


BAD_SPAN = b'{"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": "0af7"}]}]}]}'


def message_of(replied: httpx.Response) -> str:
    """Return the message of the `google.rpc.Status` in a refusal."""
    if replied.headers["Content-Type"] == PROTOBUF:
        return str(Status.FromString(replied.content).message)
    return str(replied.json()["message"]) if replied.headers["Content-Type"] == JSON else replied.text


@pytest.mark.parametrize(
    ("headers", "content", "refusal"),
    [
        ({"Content-Type": "text/plain"}, b"x", "415 got text/plain, wanted application/json or"),
        ({}, b"x", "415 got a body without Content-Type"),
        ({}, b"", "415 got an empty body"),
        ({**IN_JSON, "Content-Encoding": "br"}, b"x", "415 got the encoding br"),
        (GZIP, b"xyz", "400 the message cannot be decompressed"),
        (GZIP, gzip.compress(b"x", mtime=0)[:-4], "400 the message cannot be decompressed: it is cut off"),
        (IN_JSON, b"x" * 2000, "413 a body may have 1,000 bytes at most"),
        (GZIP, gzip.compress(b"x" * 2000, mtime=0), "413 a message has more than"),
        ({**GZIP, "Content-Encoding": "deflate"}, zlib.compress(b"x" * 2000), "413 a message has more than"),
        (IN_JSON, b"", "400 the message is not JSON"),
        (IN_JSON, b"{'resourceSpans': []}", "400 the message is not JSON"),
        (IN_JSON, b'{"resourceSpans": [', "400 the message is not JSON"),
        (IN_JSON, b'{"resourceSpans": []}\n{"resourceSpans": []}', "400 the message is not JSON: Extra data"),
        (IN_JSON, b'{"resourceSpans": [NaN]}', "400 the message is not JSON: NaN is no number"),
        (IN_JSON, '{"resourceSpans": []}'.encode("utf-16"), "400 the message is not JSON"),
        (IN_JSON, b"[" * 900, "400 the message is not JSON"),
        (IN_JSON, b"[]", "400 got the list [], wanted an ExportTraceServiceRequest"),
        (IN_JSON, b'{"resourceLogs": []}', "400 the message has no resourceSpans"),
        (IN_JSON, b'{"resourceSpans": {}}', "400 the OTLP message is damaged"),
        (IN_JSON, BAD_SPAN, "400 a span has no trace id or no span id"),
        (IN_PROTOBUF, b"hello", "400 the message is not an ExportTraceServiceRequest in protobuf"),
        (IN_PROTOBUF, b'{"resourceSpans": []}', "400 the message is not an ExportTraceServiceRequest in protobuf"),
        (IN_PROTOBUF, b"\x98\x06\x01", "400 the message has no resource_spans"),
    ],
)
def test_what_is_refused(
    headers: dict[str, str], content: bytes, refusal: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(receiver, "MAX_MESSAGE", 1000)
    with serve_receiver(tmp_path / "traces") as url:
        replied = httpx.post(url, content=content, headers=headers)
    assert f"{replied.status_code} {message_of(replied)}".startswith(refusal)
    assert not (tmp_path / "traces").exists()


@pytest.mark.parametrize("form", [IN_JSON, IN_PROTOBUF])
def test_a_refusal_is_in_the_encoding_of_the_request(form: dict[str, str], url: str) -> None:
    replied = httpx.post(url, content=b"x" * 300, headers=form)
    assert (replied.status_code, replied.headers["Content-Type"]) == (400, form["Content-Type"])
    assert message_of(replied).startswith("the message ")


def test_a_long_reason_is_a_status_in_protobuf() -> None:
    reason = "no room " * 5000
    assert Status.FromString(receiver._rpc_status(reason)).message == reason


@pytest.mark.parametrize(("form", "content"), [(IN_JSON, b"{}"), (IN_PROTOBUF, b"")])
def test_nothing_to_keep_is_fine(form: dict[str, str], content: bytes, url: str, folder: Path) -> None:
    assert httpx.post(url, content=content, headers=form).status_code == 200
    assert not folder.exists()


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example:4318"}, 421),
        ({"Origin": "http://evil.example"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
    ],
)
def test_what_web_pages_send_is_refused(headers: dict[str, str], status: int, url: str, folder: Path) -> None:
    replied = httpx.post(url, json=otlp_json(record("Why?").spans), headers=headers)
    assert replied.status_code == status
    assert not folder.exists()
    assert "default-src 'none'" in replied.headers["Content-Security-Policy"]


def test_other_names_of_the_receiver_can_be_given(folder: Path) -> None:
    with serve_receiver(folder, names=["receiver:4318"]) as url:
        for host, status in (("receiver:4318", 200), ("other:4318", 421)):
            replied = httpx.post(url, json=otlp_json(record("Why?").spans), headers={"Host": host})
            assert replied.status_code == status


def post(url: str, form: dict[str, str], question: str, padding: int = 0) -> httpx.Response:
    """Send one trace, with a long answer if padding is given."""
    spans = record(question + " " * padding).spans
    content = json.dumps(otlp_json(spans)).encode() if form is IN_JSON else otlp(spans).SerializeToString()
    return httpx.post(url, content=content, headers=form)


def questions_in(folder: Path) -> list[str]:
    """Return the questions that a run reads."""
    return sorted(row["user_input"].strip() for row in read_traces(folder)[1])


@pytest.mark.parametrize("form", [IN_JSON, IN_PROTOBUF])
def test_after_a_full_disk_all_that_was_answered_is_read(form: dict[str, str], url: str, folder: Path) -> None:
    assert post(url, form, "Before?").status_code == 200
    [file] = folder.iterdir()
    size = file.stat().st_size
    with full_after(size + 500):
        replied = post(url, form, "Meanwhile?", padding=2000)
    assert (replied.status_code, int(replied.headers["Retry-After"])) == (503, receiver.RETRY_SECONDS)
    assert message_of(replied) == "the message cannot be written: File too large"
    assert file.stat().st_size == size
    for number in range(20):
        assert post(url, form, f"After {number}?").status_code == 200
    assert questions_in(folder) == sorted(["Before?", *(f"After {number}?" for number in range(20))])


@pytest.mark.parametrize("form", [IN_JSON, IN_PROTOBUF])
def test_a_disk_that_is_really_full(form: dict[str, str], tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 64 * 1024) as disk, serve_receiver(disk / "traces") as url:
        assert post(url, form, "Before?").status_code == 200
        filling = fill(disk)
        replied = post(url, form, "Meanwhile?", padding=20_000)
        assert (replied.status_code, message_of(replied)) == (
            503,
            "the message cannot be written: No space left on device",
        )
        filling.unlink()
        assert post(url, form, "After?").status_code == 200
        assert questions_in(disk / "traces") == ["After?", "Before?"]


def test_an_exporter_sends_again_what_a_full_disk_refused(
    url: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []

    def full_once(path: Path, content: bytes) -> None:
        calls.append(path)
        if len(calls) == 1:
            raise OSError(errno.ENOSPC, "No space left on device")
        append_whole(path, content)

    monkeypatch.setattr(trace_files, "append_whole", full_once)
    monkeypatch.setattr(receiver, "RETRY_SECONDS", 0)
    exporter = OTLPSpanExporter(url)
    assert exporter.export(record("Why?").spans) is SpanExportResult.SUCCESS
    exporter.shutdown()  # type: ignore[no-untyped-call]
    assert (len(calls), questions_in(folder)) == (2, ["Why?"])


@pytest.mark.parametrize("form", [IN_JSON, IN_PROTOBUF])
def test_what_cannot_be_cut_off_is_followed_by_another_file(
    form: dict[str, str], url: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert post(url, form, "Before?").status_code == 200

    def leave_part(path: Path, content: bytes) -> None:
        append_whole(path, content[: len(content) // 2])
        monkeypatch.undo()
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(trace_files, "append_whole", leave_part)
    assert post(url, form, "Meanwhile?").status_code == 503
    assert post(url, form, "After?").status_code == 200
    assert len(list(folder.iterdir())) == 2
    assert questions_in(folder) == ["After?", "Before?"]


@pytest.mark.parametrize("form", [IN_JSON, IN_PROTOBUF])
def test_a_file_that_a_crash_cut_off_is_left_alone(form: dict[str, str], folder: Path) -> None:
    with serve_receiver(folder) as url:
        post(url, form, "First?")
        post(url, form, "Second?")
    [file] = folder.iterdir()
    torn = file.read_bytes()[:-7]
    file.write_bytes(torn)
    with serve_receiver(folder) as url:
        assert post(url, form, "Third?").status_code == 200
    assert file.read_bytes() == torn
    assert questions_in(folder) == ["First?", "Third?"]


def test_the_files_have_a_maximum_size(tmp_path: Path) -> None:
    with serve_receiver(tmp_path, max_bytes=3000) as url:
        replies = [post(url, IN_PROTOBUF, "Why?", padding=1000) for _ in range(4)]
    assert [reply.status_code for reply in replies] == [200, 200, 503, 503]
    assert message_of(replies[-1]) == "the files have reached their maximum size of 3,000 bytes"
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) < 3000


def test_messages_that_are_being_received_have_a_maximum_size(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(receiver, "MAX_IN_FLIGHT", 150_000)
    with open_requests(url, 2, b"x" * 70_000):
        wait_until(lambda: post(url, IN_JSON, "Why?", padding=30_000).status_code == 503)
    wait_until(lambda: post(url, IN_JSON, "Why?", padding=30_000).status_code == 200)


@contextmanager
def open_requests(url: str, count: int, begun: bytes) -> Iterator[None]:
    """Send the beginning of some requests while the context is entered, then hang up."""
    parts = urlsplit(url)
    head = f"POST {parts.path} HTTP/1.1\r\nHost: {parts.netloc}\r\nContent-Type: {JSON}\r\n"
    with ExitStack() as stack:
        for _ in range(count):
            client = stack.enter_context(socket.create_connection((str(parts.hostname), int(parts.port or 0))))
            client.sendall(f"{head}Content-Length: {len(begun) + 1000}\r\n\r\n".encode() + begun)
        yield


def test_clients_that_hang_up_leave_no_traceback(
    url: str, folder: Path, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    with open_requests(url, 50, b"{"):
        pass
    wait_until(lambda: post(url, IN_JSON, "Why?").status_code == 200)
    assert capfd.readouterr() == ("", "")
    assert caplog.records == []
    assert questions_in(folder)
