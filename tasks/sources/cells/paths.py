"""Read values inside nested columns by a path, such as `outputs.docs[*].page_content`."""

import re
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from typing import Any, TypeAlias

from tasks.sources.cells.text_cells import parse_cell
from tasks.sources.readers.bad_rows import InvalidRowError


class _Mark(Enum):
    EVERY = "[*]"
    MISSING = "missing"


EVERY = _Mark.EVERY
MISSING = _Mark.MISSING
"""The value at a path that leads nowhere; null is a value."""


class _QuotedKey(str):
    """A key in quotes, which is never joined with the next one."""

    __slots__ = ()


Step: TypeAlias = str | int | _Mark
"""A key of a mapping, a position in a list, or EVERY item of a list."""

_KEY = r'(?:"(?P<quoted>(?:[^"\\]|\\.)+)"|(?P<key>[^."\[\]]+))'
_FIRST = re.compile(_KEY)
_NEXT = re.compile(rf"\.{_KEY}|\[(?:(?P<every>\*)|(?P<index>-?\d+))\]")
_SIMPLE_KEY = re.compile(r'[^."\[\]]+')
_DEEPEST = 8
"""Depth to which the paths of a row are listed for messages."""


def parse_path(name: str) -> tuple[Step, ...] | None:
    r"""Return the steps of a path; None for the name of a column.

    Keys are separated by dots. A key in double quotes may contain dots, quotes and brackets.

    >>> parse_path("outputs.docs[*].page_content")
    ('outputs', 'docs', <_Mark.EVERY: '[*]'>, 'page_content')
    >>> parse_path('"service.name"[-1]')
    ('service.name', -1)
    >>> parse_path("question") is parse_path("a..b") is parse_path("[0].a") is None
    True
    """
    steps: list[Step] = []
    end = 0
    while end < len(name):
        found = (_NEXT if steps else _FIRST).match(name, end)
        if found is None:
            return None
        steps.append(_step(found.groupdict()))
        end = found.end()
    return tuple(steps) if len(steps) > 1 else None


def _step(parts: Mapping[str, str | None]) -> Step:
    if parts.get("every"):
        return EVERY
    if index := parts.get("index"):
        return int(index)
    quoted = parts["quoted"]
    return parts["key"] or "" if quoted is None else _QuotedKey(re.sub(r"\\(.)", r"\1", quoted))


def read_path(value: Any, steps: Sequence[Step]) -> Any:
    """Return the value at a path; MISSING if it leads nowhere.

    A text that holds JSON, as in CSV files and in exports, is read as what it holds. A key with dots that exists takes
    precedence over the keys between the dots. `[*]` gives a list with the value in each item, null where an item has
    none; further `[*]` extend the same list.

    >>> row = {"outputs": {"docs": [{"text": "a"}, {"text": "b"}]}, "service.name": "shop"}
    >>> read_path(row, parse_path("outputs.docs[*].text")), read_path(row, parse_path("outputs.docs[-1].text"))
    (['a', 'b'], 'b')
    >>> read_path(row, ("service", "name")), read_path(row, ("outputs", "text")) is MISSING
    ('shop', True)
    """
    if not steps:
        return value
    step = steps[0]
    if isinstance(value, str):
        value = _parse(value)
    if isinstance(step, str):
        return _read_key(value, steps) if isinstance(value, Mapping) else MISSING
    if not isinstance(value, list | tuple):
        return MISSING
    if isinstance(step, int):
        return read_path(value[step], steps[1:]) if -len(value) <= step < len(value) else MISSING
    return _read_items(value, steps[1:])


def _read_key(value: Mapping[str, object], steps: Sequence[Step]) -> Any:
    is_bare = [isinstance(step, str) and not isinstance(step, _QuotedKey) for step in (*steps, EVERY)]
    for count in range(max(1, is_bare.index(False)), 0, -1):
        key = ".".join(str(step) for step in steps[:count])
        if key in value and (found := read_path(value[key], steps[count:])) is not MISSING:
            return found
    return MISSING


def _read_items(items: Sequence[Any], steps: Sequence[Step]) -> Any:
    found = [read_path(item, steps) for item in items]
    if items and all(each is MISSING for each in found):
        return MISSING
    values = [None if each is MISSING else each for each in found]
    if EVERY in steps:
        return [each for inner in values for each in (inner if isinstance(inner, list) else [inner])]
    return values


def list_paths(row: Mapping[str, object]) -> Iterator[str]:
    """Yield the paths of the values in a row, those of mappings and lists too.

    >>> list(list_paths({"inputs": {"question": "Why?"}, "docs": [{"a.b": 1}]}))
    ['inputs', 'inputs.question', 'docs', 'docs[*]', 'docs[*]."a.b"']
    """
    for key, value in row.items():
        yield from _list_paths(_quoted(key), value, _DEEPEST)


def _list_paths(path: str, value: Any, depth: int) -> Iterator[str]:
    yield path
    if isinstance(value, str):
        value = _parse(value)
    if not depth:
        return
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _list_paths(f"{path}.{_quoted(str(key))}", inner, depth - 1)
    elif isinstance(value, list | tuple) and value:
        yield from _list_paths(f"{path}[*]", value[0], depth - 1)


def _quoted(key: str) -> str:
    if _SIMPLE_KEY.fullmatch(key):
        return key
    escaped = key.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _parse(text: str) -> Any:
    try:
        return parse_cell(text)
    except InvalidRowError:
        return text
