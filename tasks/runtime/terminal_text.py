"""Guard terminals and logs against control characters in data: everything that the process writes passes through here.

The streams are replaced, not the calls that print: tracebacks, warnings and messages of libraries contain data, too.
"""

import logging
import sys
from collections.abc import Iterable
from typing import Any, TextIO

from metric_core.parsing.control_characters import escape_controls


class GuardedStream:
    """A text stream that shows control characters as escapes; `buffer` takes bytes as they are.

    Args:
        unguarded: Stream to write to; only text that is guarded already may be written to it directly.
    """

    def __init__(self, unguarded: TextIO) -> None:
        self.unguarded = unguarded

    def write(self, text: str) -> int:
        """Write a text and return its length."""
        self.unguarded.write(escape_controls(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write texts."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the stream."""
        return getattr(self.unguarded, name)


class _GuardedFormatter(logging.Formatter):
    """A formatter of log records that shows control characters as escapes.

    Args:
        formatter: Formatter of the text, or of an object of JSON per record.
    """

    def __init__(self, formatter: logging.Formatter) -> None:
        super().__init__()
        self._formatter = formatter

    def format(self, record: logging.LogRecord) -> str:
        """Return the text of a record, with its traceback."""
        return escape_controls(self._formatter.format(record))


def guard_streams() -> None:
    """Guard stdout and stderr; a stream that cannot encode a character writes an escape instead of failing."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if (reconfigure := getattr(stream, "reconfigure", None)) is not None:
            reconfigure(errors="backslashreplace")
        if stream is not None and not isinstance(stream, GuardedStream):
            setattr(sys, name, GuardedStream(stream))


def guard_logs() -> None:
    """Guard the handlers of a process that logs to streams which could not be guarded before the handlers were made."""
    loggers = (logging.root, *logging.root.manager.loggerDict.values())
    handlers = {handler for logger in loggers if isinstance(logger, logging.Logger) for handler in logger.handlers}
    for handler in handlers:
        if isinstance(handler, logging.StreamHandler) and not isinstance(handler.formatter, _GuardedFormatter):
            handler.setFormatter(_GuardedFormatter(handler.formatter or logging.Formatter()))
