"""Consoles of the command line: results on stdout, progress and messages on stderr, no color when piped."""

import json
import os
import sys
import time
from collections.abc import Iterable
from typing import IO, Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from metric_core.parsing.control_characters import escape_controls
from tasks.runtime.log_format import set_log_format

WIDE = 160
"""Width of piped output, in columns: piped tables are for other programs and need not fit a terminal."""

_SEVERITIES = {"error": "ERROR", "warning": "WARNING"}

_piped = not sys.stdout.isatty() and not os.environ.get("COLUMNS")


class _GuardedConsole(Console):
    """A console that shows control characters of texts as escapes, and writes its own colors and movements itself.

    No text is markup, and a text is one line however long it is, so that a path in it can be copied.
    """

    def print(self, *objects: Any, **options: Any) -> None:
        """Print texts, or anything else that wraps itself."""
        super().print(*objects, **{"soft_wrap": all(isinstance(each, str | Text) for each in objects), **options})

    @property
    def file(self) -> IO[str]:
        """The stream to write to, past its guard, which would show colors as escapes too."""
        stream = super().file
        unguarded: IO[str] = getattr(stream, "unguarded", stream)
        return unguarded

    @file.setter
    def file(self, new_file: IO[str]) -> None:
        self._file = new_file

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yield the segments of an object."""
        for text, style, control in super().render(renderable, options):
            yield Segment(text if control else escape_controls(text), style, control)


class Output(_GuardedConsole):
    """A console that prints JSON with only those characters that the stream can encode."""

    def print_json(self, json: str | None = None, **options: Any) -> None:
        """Print JSON, with escapes if the stream is not UTF-8."""
        super().print_json(json, **{"ensure_ascii": not self.encoding.startswith("utf"), **options})


class Messages(_GuardedConsole):
    """The console of messages on stderr: readable text, or a JSON object per line with the names of Prefect's logs."""

    is_json: bool = False

    @property
    def is_terminal(self) -> bool:
        """Whether bars and colors can be shown."""
        return not self.is_json and super().is_terminal

    def print(self, *objects: Any, **options: Any) -> None:
        """Print a message in the format of the logs."""
        if not self.is_json:
            super().print(*objects, **options)
            return
        text = " ".join(map(str, objects))
        label, colon, rest = text.partition(": ")
        severity = _SEVERITIES.get(label) if colon else None
        record = {
            "name": "assay",
            "levelname": severity or "INFO",
            "severity": severity or "INFO",
            "msg": rest if severity else text,
            "created": time.time(),
        }
        self.file.write(escape_controls(json.dumps(record)) + "\n")
        self.file.flush()


stdout = Output(markup=False, highlight=False, width=WIDE if _piped else None)
stderr = Messages(stderr=True, markup=False, highlight=False)


def use_log_format(log_format: str) -> None:
    """Set the format of messages on stderr and of Prefect's logs; call this before Prefect is imported.

    Args:
        log_format: `text` or `json`.
    """
    stderr.is_json = log_format == "json"
    set_log_format(log_format)
    os.environ["PREFECT_LOGGING_COLORS"] = "false"  # the guarded stream would show Prefect's colors as escapes
