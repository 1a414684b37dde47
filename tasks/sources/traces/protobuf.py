"""Decode files with protobuf messages of the OpenTelemetry protocol. Needs the extra `traces`."""

import io
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from metric_core.errors import MissingDependencyError
from tasks.sources.bad_rows import UnfitError
from tasks.sources.read_limits import BoundedStream, ReadLimits

_ZSTD = b"\x28\xb5\x2f\xfd"
_PREFIX_BYTES = 4
_MOST_VARINT_BYTES = 5


def decode_messages(content: bytes, limits: ReadLimits, name: str) -> Iterator[dict[str, Any]]:
    """Yield the messages in a file, in the form of the protocol's JSON.

    A file is one ExportTraceServiceRequest, several one after the other, or several that each follow their size: four
    bytes, as the file exporter of the collector writes (also with each message compressed), or a varint.

    Args:
        content: Content of the file.
        limits: Bounds on what is read.
        name: Name of the file in messages.

    Raises:
        UnfitError: The content is not in such a form.
        MissingDependencyError: The extra `traces` is not installed.
    """
    try:
        from google.protobuf.json_format import MessageToDict  # noqa: PLC0415
        from google.protobuf.message import DecodeError  # noqa: PLC0415
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest  # noqa: PLC0415
    except ImportError as error:
        raise MissingDependencyError(
            "opentelemetry-proto", "reading traces in protobuf", "pip install 'rag-assay[traces]'"
        ) from error
    for split in (_by_size, _by_varint, _whole):
        messages = split(content)
        if messages is None:
            continue
        try:
            requests = [ExportTraceServiceRequest.FromString(_decompress(each, limits, name)) for each in messages]
        except (DecodeError, pa.ArrowException):
            continue
        if all(request.resource_spans for request in requests):
            yield from (MessageToDict(request) for request in requests)
            return
    raise UnfitError("the file is neither JSON nor protobuf with spans of the OpenTelemetry protocol")


def _whole(content: bytes) -> list[bytes] | None:
    return [content]


def _by_size(content: bytes) -> list[bytes] | None:
    messages, place = [], 0
    while place < len(content):
        start = place + _PREFIX_BYTES
        end = start + int.from_bytes(content[place:start], "big")
        if start > len(content) or end > len(content) or end == start:
            return None
        messages.append(content[start:end])
        place = end
    return messages


def _by_varint(content: bytes) -> list[bytes] | None:
    messages, place = [], 0
    while place < len(content):
        size = 0
        for shift in range(_MOST_VARINT_BYTES):
            if place >= len(content):
                return None
            byte = content[place]
            place += 1
            size |= (byte & 0x7F) << (7 * shift)
            if not byte & 0x80:
                break
        if size == 0 or place + size > len(content):
            return None
        messages.append(content[place : place + size])
        place += size
    return messages


def _decompress(message: bytes, limits: ReadLimits, name: str) -> bytes:
    if not message.startswith(_ZSTD):
        return message
    with pa.CompressedInputStream(pa.BufferReader(message), "zstd") as stream:
        return io.BufferedReader(BoundedStream(stream, limits, len(message), name)).read()
