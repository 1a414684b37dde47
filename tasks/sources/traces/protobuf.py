"""Decode files with messages of the OpenTelemetry protocol. Needs the extra `traces`."""

import io
import json
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Self

import pyarrow as pa

from metric_core.errors import MissingDependencyError
from tasks.sources.readers.bad_rows import InvalidRowError
from tasks.sources.readers.protocol import Unreadable
from tasks.sources.readers.read_limits import BoundedStream, Expansion

ZSTD_MARK = b"\x28\xb5\x2f\xfd"
"""First bytes of compressed content."""
_PREFIX_BYTES = 4
_MOST_VARINT_BITS = 35
_CUT_OFF = b"\xff"
"""Invalid bytes, in the place of a message that is cut off."""


def decode_messages(content: bytes, name: str) -> Iterator[dict[str, Any] | Unreadable]:
    """Yield the messages in a file, in the form of the protocol's JSON; an unreadable one has its reason.

    A file is one ExportTraceServiceRequest, several one after the other, or several that each follow their size: four
    bytes, as the file exporter of the collector writes (also compressed, and then also JSON), or a varint.

    Args:
        name: Name of the file in messages.

    Raises:
        InvalidRowError: The content is not in such a form.
        MissingDependencyError: The extra `traces` is not installed.
    """
    packages = _Packages.load()

    def decode(message: bytes) -> Any:
        try:
            plain = _decompress(message, name)
            return json.loads(plain) if plain.startswith(b"{") else packages.to_dict(packages.parse(plain))
        except (packages.decode_error, ValueError, pa.ArrowException):
            return None

    for split in (_split_by_size, _keep_whole, _split_by_varint):
        messages = [decode(message) for message in split(content)]
        if any(message is not None and "resourceSpans" in message for message in messages):
            yield from (Unreadable("the message cannot be decoded") if each is None else each for each in messages)
            return
    raise InvalidRowError("the file is neither JSON nor protobuf with spans of the OpenTelemetry protocol")


def check_protobuf(message: bytes) -> bool:
    """Check one message, without a size before it and not compressed.

    Returns:
        True if it has anything to read.

    Raises:
        InvalidRowError: The message cannot be decoded, or has other content.
        MissingDependencyError: The extra `traces` is not installed.
    """
    packages = _Packages.load()
    try:
        request = packages.parse(message)
    except packages.decode_error as error:
        raise InvalidRowError(f"the message is not an ExportTraceServiceRequest in protobuf: {error}") from error
    if message and not request.resource_spans:
        raise InvalidRowError("the message has no resource_spans")
    return bool(message)


class _Packages(NamedTuple):
    """Functions of the packages of the extra.

    Args:
        parse: Function that parses an ExportTraceServiceRequest.
        decode_error: Error that it raises.
        to_dict: Function that returns a message in the form of the protocol's JSON.
    """

    parse: Callable[[bytes], Any]
    decode_error: type[Exception]
    to_dict: Callable[[Any], dict[str, Any]]

    @classmethod
    def load(cls) -> Self:
        """Import the packages.

        Raises:
            MissingDependencyError: The extra `traces` is not installed.
        """
        try:
            from google.protobuf.json_format import MessageToDict  # noqa: PLC0415
            from google.protobuf.message import DecodeError  # noqa: PLC0415
            from opentelemetry.proto.collector.trace.v1 import trace_service_pb2  # noqa: PLC0415
        except ImportError as error:
            raise MissingDependencyError(
                "opentelemetry-proto", "reading traces in protobuf", "pip install 'rag-assay[traces]'"
            ) from error
        return cls(trace_service_pb2.ExportTraceServiceRequest.FromString, DecodeError, MessageToDict)


def _keep_whole(content: bytes) -> list[bytes]:
    return [content]


def _split_by_size(content: bytes) -> list[bytes]:
    """Return the messages that follow their sizes in four bytes; the last one may be cut off."""
    messages, place = [], 0
    while place < len(content):
        start = place + _PREFIX_BYTES
        place = start + int.from_bytes(content[place:start], "big")
        messages.append(content[start:place] if place <= len(content) else _CUT_OFF)
    return messages


def _split_by_varint(content: bytes) -> list[bytes]:
    """Return the messages that follow their sizes as varints; the last one may be cut off."""
    messages, place = [], 0
    while place < len(content):
        size = shift = 0
        more = True
        while more and place < len(content) and shift < _MOST_VARINT_BITS:
            byte = content[place]
            more = bool(byte & 0x80)
            size |= (byte & 0x7F) << shift
            place, shift = place + 1, shift + 7
        messages.append(content[place : place + size] if place + size <= len(content) else _CUT_OFF)
        place += size
    return messages


def _decompress(message: bytes, name: str) -> bytes:
    if not message.startswith(ZSTD_MARK):
        return message
    with pa.CompressedInputStream(pa.BufferReader(message), "zstd") as stream:
        return io.BufferedReader(BoundedStream(stream, Expansion(len(message), name))).read()
