"""Parse JSON in which every key of an object is given once; the standard parser keeps the last of equal keys."""

import json
from json.decoder import JSONObject  # type: ignore[attr-defined]
from json.scanner import py_make_scanner  # type: ignore[attr-defined]
from typing import Any

_BYTE_ORDER_MARK = "\ufeff"


class DuplicateKeyError(ValueError):
    """A key that is given twice in one object.

    Args:
        line: Line on which the object begins, from 1; None if it is not known.
    """

    def __init__(self, key: str, line: int | None = None) -> None:
        place = "" if line is None else f" in the object on line {line}"
        super().__init__(f"the key {key!r} is given twice{place}")
        self.key = key
        self.line = line


def require_unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the object of these pairs, for `object_pairs_hook`.

    Raises:
        DuplicateKeyError: A key is given twice.
    """
    content = dict(pairs)
    if len(content) < len(pairs):
        seen: set[str] = set()
        raise DuplicateKeyError(next(key for key, _ in pairs if key in seen or seen.add(key)))  # type: ignore[func-returns-value]
    return content


def parse_json(text: str | bytes) -> Any:
    r"""Return the value of a JSON document.

    >>> parse_json('{"a": 1, "b": 2}')
    {'a': 1, 'b': 2}
    >>> parse_json('[1,\n {"a": 1, "a": 2}]')
    Traceback (most recent call last):
        ...
    metric_core.parsing.strict_json.DuplicateKeyError: the key 'a' is given twice in the object on line 2

    Raises:
        DuplicateKeyError: A key is given twice; the message names the line.
        ValueError: The text is not JSON, or not UTF-8.
        RecursionError: The document is nested too deeply.
    """
    try:
        return json.loads(text, object_pairs_hook=require_unique_keys)
    except DuplicateKeyError:
        document = text if isinstance(text, str) else text.decode(json.detect_encoding(text))
        _Locator().decode(document.removeprefix(_BYTE_ORDER_MARK))
        raise


class _Locator(json.JSONDecoder):
    """The slow parser, which knows where an object begins."""

    def __init__(self) -> None:
        super().__init__(object_pairs_hook=require_unique_keys)
        self.parse_object = self._parse_object
        self.scan_once = py_make_scanner(self)

    @staticmethod
    def _parse_object(state: tuple[str, int], *options: Any) -> Any:
        try:
            return JSONObject(state, *options)
        except DuplicateKeyError as error:
            if error.line is not None:
                raise
            text, start = state
            raise DuplicateKeyError(error.key, text.count("\n", 0, start) + 1) from None
