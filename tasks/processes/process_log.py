"""Read the log of a process: the last line while the process starts, the errors and the end after it has failed."""

import re
from collections.abc import Iterable
from pathlib import Path

TAIL_LINES = 25
LINE_CHARACTERS = 400
END_BYTES = 4096
ERROR = re.compile(r"(?<![\w.`])(?:\w+\.)*[A-Z]\w*(?:Error|Exception|Interrupt): \S")
ERRORS_SHOWN = 5
SECRET_CHARACTERS = 8
"""Shortest value that is hidden; hiding shorter ones would hide ordinary text."""


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


def excerpt(log: Path, secrets: Iterable[str] = (), start: int = 0) -> str:
    """Return the errors in a log, in order, followed by the end of the log.

    The log of a server of several processes ends with the error of the main process, which only refers to the errors
    of the others above it.

    Args:
        log: Log file, which need not exist.
        secrets: Values to hide.
        start: Number of bytes of the log to skip.
    """
    text = log.read_bytes()[start:].decode("utf-8", "replace").replace("\r\n", "\n") if log.exists() else ""
    for secret in sorted((s for s in secrets if len(s) >= SECRET_CHARACTERS), key=len, reverse=True):
        text = text.replace(secret, "[hidden]")
    lines = [line.rstrip()[:LINE_CHARACTERS] for line in _lines(text) if line.strip()]
    tail = lines[-TAIL_LINES:]
    if not tail:
        return f"It has written nothing to its log {log}."
    errors = list(dict.fromkeys(line[match.start() :] for line in lines if (match := ERROR.search(line))))
    named = ["Errors in it:", *(f"  {error}" for error in errors[:ERRORS_SHOWN])] if errors else []
    return "\n".join([*named, f"The end of its log {log}:", *(f"  {line}" for line in tail)])


def _lines(text: str) -> list[str]:
    """Return the lines as a terminal shows them: a progress bar, which overwrites its line, by its last state."""
    return [line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n")]
