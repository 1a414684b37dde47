"""Reads the log of a judge: its last line while it starts, what matters of it when it could not."""

import re
from collections.abc import Iterable
from pathlib import Path

TAIL_LINES = 25
LINE_CHARACTERS = 400
END_BYTES = 4096
ERROR = re.compile(r"(?<![\w.`])(?:\w+\.)*[A-Z]\w*(?:Error|Exception|Interrupt): \S")
ERRORS_SHOWN = 5
SECRET_CHARACTERS = 8
"""Shorter values are no secrets, and to strike them out would strike out much else."""


def last_line(log: Path) -> str:
    """The last line with content; empty if there is none."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - END_BYTES))
            end = file.read().decode("utf-8", "replace")
    except OSError:
        return ""
    return next((line.strip()[:LINE_CHARACTERS] for line in reversed(_lines(end)) if line.strip()), "")


def excerpt(log: Path, secrets: Iterable[str] = ()) -> str:
    """The errors named in a log, first ones first, then its end.

    A server that consists of several processes ends with the error of the first one, which only points at the
    others' errors, above.

    Args:
        log: the file.
        secrets: values that must not be shown.
    """
    text = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
    for secret in sorted((s for s in secrets if len(s) >= SECRET_CHARACTERS), key=len, reverse=True):
        text = text.replace(secret, "[hidden]")
    lines = [line.rstrip()[:LINE_CHARACTERS] for line in _lines(text) if line.strip()]
    tail = lines[-TAIL_LINES:]
    if not tail:
        return f"It has written nothing into its log {log}."
    errors = list(dict.fromkeys(line[match.start() :] for line in lines if (match := ERROR.search(line))))
    named = ["Errors in it:", *(f"  {error}" for error in errors[:ERRORS_SHOWN])] if errors else []
    return "\n".join([*named, f"The end of its log {log}:", *(f"  {line}" for line in tail)])


def _lines(text: str) -> list[str]:
    """Lines as a terminal would show them: of a progress bar, which starts its line again and again, the last state."""
    return [line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n")]
