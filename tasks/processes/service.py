"""A server process that outlives the command that starts it: found, awaited and stopped by its folder.

The folder holds a record (where the process runs and listens), a lock, and a log with the output of the process. What
is special about one service, such as how it shows that it lives, is in its subclass.
"""

import json
import platform
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Generic, TypeVar
from urllib.parse import urlsplit

from filelock import FileLock, Timeout

from metric_core.errors import AssayError
from tasks.processes.system_processes import end_group
from tasks.runtime.atomic_files import atomic_file, create_private_folder, translate_write_errors

TAIL_LINES = 25
LINE_CHARACTERS = 400
END_BYTES = 4096
ERROR = re.compile(r"(?<![\w.`])(?:\w+\.)*[A-Z]\w*(?:Error|Exception|Interrupt): \S")
ERRORS_SHOWN = 5
SECRET_CHARACTERS = 8
"""Shortest value that is hidden; hiding shorter ones would hide ordinary text."""


@dataclass(frozen=True, slots=True)
class ServiceRecord:
    """A process that was started and left running, and leads a group with the same id.

    Args:
        host: Machine of the process; several machines may share a folder.
    """

    pid: int
    host: str

    @property
    def is_local(self) -> bool:
        """Whether the process belongs to this machine."""
        return self.host == platform.node()


Record = TypeVar("Record", bound=ServiceRecord)


class Service(ABC, Generic[Record]):
    """A server process with its record, lock and log.

    Args:
        path: Folder of the files.
    """

    name: ClassVar[str]
    """Name of the files."""
    title: ClassVar[str]
    """Subject of messages."""
    elsewhere: ClassVar[str]
    """Message about a record of another machine, with {host} and {file}; it follows `title` and the folder."""
    record_type: ClassVar[type[Any]]
    error_type: ClassVar[type[AssayError]] = AssayError
    stop_seconds: ClassVar[float]
    """Seconds that the process may take to end before it is killed."""
    poll_seconds: ClassVar[float]
    """Seconds between two attempts to reach a process that starts."""
    errors: re.Pattern[str] = ERROR
    """Matches what the log says about why a process ended."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.record_file = path / f"{self.name}.json"
        self.lock = path / f"{self.name}.lock"
        self.log = path / f"{self.name}.log"

    @abstractmethod
    def is_alive(self, record: Record) -> bool:
        """Return whether the process or one of its group is running; True if it cannot be known from here."""

    def clean_up(self, record: Record) -> None:
        """Remove what the process, which has ended, may have left."""

    def create(self) -> None:
        """Create the folder, accessible to the user only."""
        create_private_folder(self.path)
        self.path.chmod(0o700)

    def is_locked(self) -> bool:
        """Return whether a process holds the lock."""
        try:
            with FileLock(self.lock, timeout=0):
                return False
        except Timeout:
            return True

    def write(self, record: Record) -> None:
        """Write the record whole or not at all, readable by the user only.

        Raises:
            AssayError: The record cannot be written.
        """
        file = self.record_file
        with translate_write_errors(f"the record {file}"), atomic_file(file) as temporary:
            temporary.unlink(missing_ok=True)  # one that a killed writer left keeps its mode
            temporary.touch(mode=0o600)
            temporary.write_text(json.dumps(asdict(record), indent=2) + "\n", encoding="utf-8")

    def read(self) -> Record | None:
        """Read the record; None if there is none or it cannot be read."""
        try:
            content = json.loads(self.record_file.read_text(encoding="utf-8"))
            # JSON has no tuples, but a record must equal the one that was written.
            fields = {name: tuple(value) if isinstance(value, list) else value for name, value in content.items()}
            record: Record = self.record_type(**fields)
        except (OSError, ValueError, TypeError, AttributeError):
            return None
        return record

    def find(self) -> Record | None:
        """Read the record as `read` does, for a caller that is going to act on the process.

        Raises:
            AssayError: The process is, or may be, running on another machine.
        """
        record = self.read()
        if record is not None and not record.is_local and self.is_alive(record):
            what = self.elsewhere.format(host=record.host, file=self.record_file)
            raise self.error_type(f"{self.title} in {self.path} {what}")
        return record

    def wait_until_ready(
        self,
        is_ready: Callable[[], bool],
        find_problem: Callable[[float], str | None],
        advise: Callable[[str], str],
        secrets: Iterable[str] = (),
        log_start: int = 0,
    ) -> None:
        """Wait until the process is ready.

        Args:
            find_problem: Called between two polls with the seconds since the start; returns why the process will not
                get ready, in words that follow `title`, and None while it may.
            advise: Returns what to do about the problem, given the excerpt of the log.
            secrets: Values to hide in the excerpt.
            log_start: Number of bytes of the log that an earlier process wrote.

        Raises:
            AssayError: The process does not get ready; the message has the relevant lines of its log.
        """
        start = time.monotonic()
        while not is_ready():
            problem = find_problem(time.monotonic() - start)
            if problem is not None:
                shown = excerpt(self.log, secrets, log_start, self.errors)
                raise self.error_type(f"{self.title} {problem}. {advise(shown)}\n{shown}")
            time.sleep(self.poll_seconds)

    def stop(self) -> bool:
        """Stop the process and wait until it has ended. Another process that has received its id is left alone.

        Returns:
            Whether a process of the service was running.

        Raises:
            AssayError: The process runs on another machine, or does not end.
        """
        record = self.find()
        return record is not None and self.end(record)

    def end(self, record: Record) -> bool:
        """Stop the process of a record as `stop` does."""
        was_alive = self.is_alive(record)
        if was_alive and not end_group(record.pid, lambda: self.is_alive(record), self.stop_seconds):
            raise self.error_type(f"{self.title}, process group {record.pid}, does not end; end it manually")
        self.clean_up(record)
        if self.read() == record:
            self.record_file.unlink(missing_ok=True)
        return was_alive


def http_get(url: str, path: str, timeout: float, headers: Mapping[str, str] = MappingProxyType({})) -> bytes | None:
    """Return the body of a server's response with status 200; None for any other response or none at all.

    Args:
        url: URL of the server; its path is ignored.
        path: Path to get, with its query.
        timeout: Seconds to wait for the server.
    """
    address = urlsplit(url)
    connection = HTTPConnection(address.hostname or "", address.port, timeout=timeout)
    try:
        connection.request("GET", path, headers=dict(headers))
        response = connection.getresponse()
        return response.read() if response.status == 200 else None
    except (OSError, HTTPException):
        return None
    finally:
        connection.close()


def last_line(log: Path) -> str:
    """Return the last line with text; an empty string if there is none.

    Args:
        log: Log file, which need not exist.
    """
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - END_BYTES))
            end = file.read().decode("utf-8", "replace")
    except OSError:
        return ""
    return next((line.strip()[:LINE_CHARACTERS] for line in reversed(_lines(end)) if line.strip()), "")


def excerpt(log: Path, secrets: Iterable[str] = (), start: int = 0, reasons: re.Pattern[str] = ERROR) -> str:
    """Return the errors in a log, in order, followed by the end of the log.

    The log of a server of several processes ends with the error of the main process, which only refers to the errors
    of the others above it.

    Args:
        log: Log file, which need not exist.
        secrets: Values to hide.
        start: Number of bytes of the log to skip.
        reasons: Matches an error in a line.
    """
    text = log.read_bytes()[start:].decode("utf-8", "replace").replace("\r\n", "\n") if log.exists() else ""
    for secret in sorted((s for s in secrets if len(s) >= SECRET_CHARACTERS), key=len, reverse=True):
        text = text.replace(secret, "[hidden]")
    lines = [line.rstrip()[:LINE_CHARACTERS] for line in _lines(text) if line.strip()]
    tail = lines[-TAIL_LINES:]
    if not tail:
        return f"It has written nothing to its log {log}."
    errors = list(dict.fromkeys(line[match.start() :] for line in lines if (match := reasons.search(line))))
    named = ["Errors in it:", *(f"  {error}" for error in errors[:ERRORS_SHOWN])] if errors else []
    return "\n".join([*named, f"The end of its log {log}:", *(f"  {line}" for line in tail)])


def _lines(text: str) -> list[str]:
    """Return the lines as a terminal shows them: a progress bar, which overwrites its line, by its last state."""
    return [line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n")]
