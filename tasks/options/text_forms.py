"""Parse lists and tables that are given as text: on the command line, in an environment variable or in a file."""

from collections.abc import Callable
from typing import Any

from metric_core.parsing.strict_json import parse_json


class RepeatedText(tuple[str, ...]):
    """The values of an option that was given several times, each in the form of the command line."""

    __slots__ = ()


def list_from_text(split: Callable[[str], list[Any]]) -> Callable[[Any], Any]:
    """Return a validator that turns text into a list, and adds up the values of a repeated option.

    >>> read = list_from_text(split_commas)
    >>> read("claims, verdicts"), read('["claims"]'), read(RepeatedText(("a,b", "c"))), read(["a,b"])
    (['claims', 'verdicts'], ['claims'], ['a', 'b', 'c'], ['a,b'])

    Args:
        split: Function from a text that is not JSON to its items.
    """

    def read(value: Any) -> Any:
        if isinstance(value, RepeatedText):
            return [item for text in value for item in read_text(text)]
        return read_text(value) if isinstance(value, str) else value

    def read_text(text: str) -> list[Any]:
        if not text.lstrip().startswith("["):
            return split(text)
        return list(parse_json(text))

    return read


def table_from_text(split: Callable[[str], list[tuple[str, Any]]]) -> Callable[[Any], Any]:
    """Return a validator that turns text into a table, and adds up the values of a repeated option.

    Args:
        split: Function from a text that is not JSON to pairs of key and value.
    """

    def read(value: Any) -> Any:
        if not isinstance(value, str | RepeatedText):
            return value
        table: dict[str, Any] = {}
        for text in (value,) if isinstance(value, str) else value:
            for key, item in parse_json(text).items() if text.lstrip().startswith("{") else split(text):
                if table.setdefault(key, item) != item:
                    raise ValueError(f"{key!r} is given twice, as {table[key]!r} and {item!r}; keep one of them")
        return table

    return read


def split_commas(text: str) -> list[str]:
    """Return the parts between commas that are not blank."""
    return [part.strip() for part in text.split(",") if part.strip()]
