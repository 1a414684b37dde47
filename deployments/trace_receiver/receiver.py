"""Serve an OTLP endpoint that writes what it gets to files."""

import asyncio
import json
import zlib
from collections.abc import Collection
from contextlib import AbstractContextManager
from http import HTTPStatus

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from deployments.trace_receiver.trace_files import (
    JSON,
    MEDIA_TYPES,
    PROTOBUF,
    NoRoomError,
    RejectedError,
    TraceFiles,
)
from deployments.web.http_guard import Guard
from deployments.web.http_server import HttpServer, open_server

MAX_MESSAGE = 20 * 1024**2
"""Maximum size of a message in bytes, compressed and decompressed, as by default for the OpenTelemetry Collector.

Reading one takes up to ten times as much memory.
"""

MAX_IN_FLIGHT = 256 * 1024**2
"""Maximum size in bytes of all messages that are being received."""

RETRY_SECONDS = 10
"""Seconds after which an exporter may send a message again that could not be kept."""

_ANY_HEADER = 32 + zlib.MAX_WBITS
"""Accepts what gzip and deflate mean in HTTP."""


class Receiver:
    """The handler of requests.

    Messages are decompressed, checked and written one at a time, so that small requests cannot take much memory.
    """

    def __init__(self, files: TraceFiles) -> None:
        self._files = files
        self._one = asyncio.Lock()
        self._in_flight = 0

    async def receive(self, request: Request) -> Response:
        """Handle a request: keep the message, or say why not in the form that the protocol wants."""
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        body: list[bytes] = []
        try:
            await self._keep(kind, request, body)
        except HTTPException as refused:
            return _reply(kind, refused.status_code, refused.detail)
        except ClientDisconnect:
            return Response()  # nobody reads it
        finally:
            self._in_flight -= sum(map(len, body))
        return Response(b"{}" if kind == JSON else b"", media_type=kind)  # the protocol's reply that all is well

    async def _keep(self, kind: str, request: Request, body: list[bytes]) -> None:
        """Read the body into a list of its parts, and keep the message.

        Raises:
            HTTPException: The request is refused.
            ClientDisconnect: The client hung up.
        """
        if kind not in MEDIA_TYPES:
            raise HTTPException(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"got an empty body, wanted {JSON} or {PROTOBUF}")
        encoding = request.headers.get("content-encoding", "identity").strip().lower()
        if encoding not in ("identity", "gzip", "deflate"):
            raise HTTPException(
                HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"got the encoding {encoding}, wanted gzip, deflate or none"
            )
        async for part in request.stream():
            body.append(part)
            self._in_flight += len(part)
            if self._in_flight > MAX_IN_FLIGHT:
                raise HTTPException(HTTPStatus.SERVICE_UNAVAILABLE, "too many messages are being received")
        async with self._one:
            await run_in_threadpool(self._write, kind, encoding, b"".join(body))

    def _write(self, kind: str, encoding: str, body: bytes) -> None:
        message = body if encoding == "identity" else _inflate(body)
        try:
            self._files.append(kind, message)
        except RejectedError as error:
            raise HTTPException(HTTPStatus.BAD_REQUEST, str(error)) from error
        except NoRoomError as error:
            raise HTTPException(HTTPStatus.SERVICE_UNAVAILABLE, str(error)) from error


def _reply(kind: str, status: int, reason: str) -> Response:
    """Return a refusal with a `google.rpc.Status` in the encoding of the request, as OTLP wants."""
    headers = {"Retry-After": str(RETRY_SECONDS)} if status == HTTPStatus.SERVICE_UNAVAILABLE else {}
    headers["Connection"] = "close"  # a body that was not read would be taken for the next request
    if kind == PROTOBUF:
        return Response(_rpc_status(reason), status, headers, PROTOBUF)
    return Response(json.dumps({"message": reason}), status, headers, JSON)


def _rpc_status(message: str) -> bytes:
    """Return a `google.rpc.Status` in protobuf: a text as field 2, after its tag and its size as a varint."""
    text = message.encode(errors="replace")
    size, prefix = len(text), bytearray(b"\x12")
    while size > 0x7F:
        prefix.append(size & 0x7F | 0x80)
        size >>= 7
    return bytes(prefix) + bytes([size]) + text


def _inflate(message: bytes) -> bytes:
    inflate = zlib.decompressobj(_ANY_HEADER)
    try:
        content = inflate.decompress(message, MAX_MESSAGE)
    except zlib.error as error:
        raise HTTPException(HTTPStatus.BAD_REQUEST, f"the message cannot be decompressed: {error}") from error
    if inflate.unconsumed_tail:
        raise HTTPException(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"a message has more than {MAX_MESSAGE:,} bytes")
    if not inflate.eof:
        raise HTTPException(HTTPStatus.BAD_REQUEST, "the message cannot be decompressed: it is cut off")
    return content


def open_receiver(
    files: TraceFiles, host: str, port: int, names: Collection[str] = ()
) -> AbstractContextManager[HttpServer]:
    """Return a receiver of traces at `/v1/traces`, which listens in its context; its caller calls `serve`.

    Args:
        host: Address to listen at.
        port: Port to listen at; 0 for a free one.
        names: Further names by which clients reach it.

    Raises:
        ConfigError: The address and port cannot be used.
    """

    def make_app(port: int) -> Guard:
        app = Starlette(routes=[Route("/v1/traces", Receiver(files).receive, methods=["POST"])])
        return Guard(app, host=host, port=port, names=names, media_types=MEDIA_TYPES, max_bytes=MAX_MESSAGE)

    return open_server(host, port, make_app)
