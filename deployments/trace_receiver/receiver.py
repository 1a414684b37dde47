"""Serve an OTLP endpoint that writes what it gets to files: one of JSON Lines, one of protobuf messages."""

import zlib
from pathlib import Path
from threading import Lock

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

JSON, PROTOBUF = "application/json", "application/x-protobuf"
FILES = {JSON: "otlp.jsonl", PROTOBUF: "otlp.binpb"}
"""Media type -> file. Messages in protobuf follow their size in four bytes, as in files of the collector."""

MOST_BYTES = 64 * 1024**2
"""Maximum size of a message, decompressed."""

_ANY_HEADER = 32 + zlib.MAX_WBITS
"""Accepts what gzip and deflate mean in HTTP."""


class TraceFiles:
    """The files that messages are appended to.

    Args:
        folder: Folder of the files; created with the first message.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = Lock()

    def append(self, kind: str, message: bytes) -> None:
        """Append a message.

        Args:
            kind: Media type.
            message: The message. JSON is written on one line.
        """
        if kind == JSON:
            content = message.replace(b"\r", b" ").replace(b"\n", b" ") + b"\n"  # JSON has no line breaks inside texts
        else:
            content = len(message).to_bytes(4, "big") + message
        with self._lock:
            self._folder.mkdir(parents=True, exist_ok=True)
            with (self._folder / FILES[kind]).open("ab") as file:
                file.write(content)


def make_app(folder: Path) -> Starlette:
    """Return the application that receives traces at `/v1/traces`.

    Args:
        folder: Folder of the files.
    """
    files = TraceFiles(folder)

    async def receive(request: Request) -> Response:
        try:
            kind, message = await _read(request)
        except HTTPException as refused:
            return Response(refused.detail, refused.status_code)
        await run_in_threadpool(files.append, kind, message)
        return Response(b"{}" if kind == JSON else b"", media_type=kind)  # the protocol's reply that all is well

    return Starlette(routes=[Route("/v1/traces", receive, methods=["POST"])])


async def _read(request: Request) -> tuple[str, bytes]:
    """Return the media type and the decompressed message of a request.

    Raises:
        HTTPException: The request is refused.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in FILES:
        raise HTTPException(415, f"got {kind or 'no media type'}, wanted {JSON} or {PROTOBUF}")
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    if encoding not in ("identity", "gzip", "deflate"):
        raise HTTPException(415, f"got the encoding {encoding}, wanted gzip, deflate or none")
    message = b""
    async for part in request.stream():
        message += part
        if len(message) > MOST_BYTES:
            raise HTTPException(413, f"a message has more than {MOST_BYTES:,} bytes")
    return kind, message if encoding == "identity" else _inflate(message)


def _inflate(message: bytes) -> bytes:
    inflate = zlib.decompressobj(_ANY_HEADER)
    try:
        content = inflate.decompress(message, MOST_BYTES)
    except zlib.error as error:
        raise HTTPException(400, f"the message cannot be decompressed: {error}") from error
    if inflate.unconsumed_tail:
        raise HTTPException(413, f"a message has more than {MOST_BYTES:,} bytes")
    if not inflate.eof:
        raise HTTPException(400, "the message cannot be decompressed: it is cut off")
    return content


def serve(folder: Path, host: str, port: int) -> None:
    """Serve until the process is interrupted.

    Args:
        folder: Folder of the files.
        host: Address to listen at.
        port: Port to listen at.
    """
    uvicorn.run(make_app(folder), host=host, port=port, log_level="warning", access_log=False)
