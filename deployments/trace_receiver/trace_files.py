"""Append messages of the OpenTelemetry protocol to files that a run reads."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from metric_core.errors import MissingDependencyError
from tasks.runtime.atomic_files import append_whole, create_private_folder
from tasks.sources.readers.bad_rows import InvalidRowError
from tasks.sources.traces.protobuf import check_protobuf
from tasks.sources.traces.received import check_json_message

JSON, PROTOBUF = "application/json", "application/x-protobuf"


class RejectedError(Exception):
    """A message cannot be kept."""


class NoRoomError(Exception):
    """A message cannot be kept now; the same message may be later."""


def _line(message: bytes) -> bytes:
    return message.replace(b"\r", b" ").replace(b"\n", b" ") + b"\n"  # JSON has no line breaks inside texts


def _frame(message: bytes) -> bytes:
    return len(message).to_bytes(4, "big") + message


class _Form(NamedTuple):
    """Treatment of messages of a media type.

    Args:
        check: Function that checks a message and returns whether it has anything to read.
        pack: Function that returns the bytes to append.
    """

    extension: str
    check: Callable[[bytes], bool]
    pack: Callable[[bytes], bytes]


_FORMS: Mapping[str, _Form] = {
    JSON: _Form("jsonl", check_json_message, _line),
    PROTOBUF: _Form("binpb", check_protobuf, _frame),
}
"""By media type. Messages in protobuf follow their size in four bytes, as in files of the collector."""

MEDIA_TYPES = tuple(_FORMS)


class TraceFiles:
    """The files of a receiver: one of JSON Lines, one of protobuf messages, for no other process to write.

    Files that are there are left alone, so that a message never follows one that was cut off when another receiver was
    killed: the first file is `otlp.jsonl`, that of the next receiver `otlp-2.jsonl`.

    Args:
        folder: Folder of the files; created with the first message.
        max_bytes: Maximum size of all files together.
    """

    def __init__(self, folder: Path, max_bytes: int) -> None:
        self._folder = folder
        self._max_bytes = max_bytes
        self._written = 0
        self._files: dict[str, Path] = {}

    def append(self, kind: str, message: bytes) -> None:
        """Append a message whole, or leave the files as they are. Not to be called by two threads at the same time.

        Args:
            message: The message. JSON is written on one line.

        Raises:
            RejectedError: The message cannot be decoded, or has no spans.
            NoRoomError: The disk is full, the file cannot be written, or the files have their maximum size.
        """
        form = _FORMS[kind]
        try:
            if not form.check(message):
                return
        except (InvalidRowError, MissingDependencyError) as error:
            raise RejectedError(str(error)) from error
        content = form.pack(message)
        if self._written + len(content) > self._max_bytes:
            raise NoRoomError(f"the files have reached their maximum size of {self._max_bytes:,} bytes")
        try:
            self._write(kind, content)
        except OSError as error:
            raise NoRoomError(f"the message cannot be written: {error.strerror or error}") from error
        self._written += len(content)

    def _write(self, kind: str, content: bytes) -> None:
        path = self._files.get(kind)
        if path is None:
            path = self._files[kind] = self._create(_FORMS[kind].extension)
        size = path.stat().st_size if path.exists() else 0
        try:
            append_whole(path, content)
        except OSError:
            if path.exists() and path.stat().st_size > size:  # the part could not be cut off
                del self._files[kind]
            raise

    def _create(self, extension: str) -> Path:
        create_private_folder(self._folder)
        number = 1
        while True:
            path = self._folder / (f"otlp.{extension}" if number == 1 else f"otlp-{number}.{extension}")
            try:
                path.touch(exist_ok=False)
            except FileExistsError:
                number += 1
            else:
                return path
