"""Redact the texts of rows with a function of the user, before anything of a row is stored, sent or quoted."""

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from metric_core.errors import PluginError
from tasks.plugins.load_object import Group, load_object
from tasks.sources.readers.bad_rows import InvalidRowError

_TEXTS_KEPT = 2000
"""Passages occur in many rows; each is redacted once while it is among the last so many texts."""


class Redaction:
    """A function that redacts texts, applied to all texts of a row.

    Texts are redacted wherever they are: in lists, in mappings and as their keys, in ids, in columns that no metric
    reads. Numbers, dates and names of columns stay as they are.

    Args:
        name: `module:attribute` or entry point name of a function from a text to a text. It must leave texts that it
            has redacted unchanged.

    Raises:
        PluginError: The function does not exist.
    """

    def __init__(self, name: str) -> None:
        function = load_object(Group.REDACTORS, name).obj
        if not callable(function):
            raise PluginError(f"redact: {name} is {type(function).__name__}, wanted a function from a text to a text")
        self._name = name
        self._function: Callable[[str], Any] = function
        self.text = lru_cache(maxsize=_TEXTS_KEPT)(self._redact_text)

    def row(self, content: Mapping[str, object]) -> dict[str, Any]:
        """Return the content of a row with all texts redacted.

        Raises:
            InvalidRowError: The function fails for a text of the row. The error does not repeat the text.
        """
        try:
            return {column: self._value(value) for column, value in content.items()}
        except RecursionError:
            raise InvalidRowError("a value is nested too deeply to be redacted") from None

    def message(self, message: str) -> str:
        """Return a message about a row, which may quote its texts, redacted; without its details if that fails."""
        try:
            return self.text(message)
        except InvalidRowError as invalid:
            return f"a row that cannot be read ({invalid.problem} for the details)"

    def _value(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, bytes):
            return self.text(value.decode(errors="replace")).encode()
        if isinstance(value, Mapping):
            return {self._value(key): self._value(each) for key, each in value.items()}
        if isinstance(value, list | tuple):
            return [self._value(each) for each in value]
        return value

    def _redact_text(self, text: str) -> str:
        redacted = self._call(text)
        if redacted != text and self._call(redacted) != redacted:
            raise InvalidRowError(
                f"redact ({self._name}) changes a text that it has already redacted, wanted it unchanged"
            )
        return redacted

    def _call(self, text: str) -> str:
        try:
            redacted = self._function(text)
        except Exception as error:  # noqa: BLE001 its message and cause may hold the text, so neither is kept
            raise InvalidRowError(f"redact ({self._name}) raised {type(error).__name__}") from None
        if not isinstance(redacted, str):
            raise InvalidRowError(f"redact ({self._name}) returned {type(redacted).__name__}, wanted a text")
        return redacted
