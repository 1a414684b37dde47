"""Read JSON documents: a list of rows, or an object with such a list. The whole document is read into memory."""

import json
from collections.abc import Generator, Mapping
from functools import cached_property
from typing import Any

from metric_core.columns import COLUMN_ALIASES, COLUMNS, MESSAGES
from metric_core.errors import SourceError
from metric_core.parsing.strict_json import DuplicateKeyError, require_unique_keys
from tasks.runtime.wording import describe_value, quote_names
from tasks.sources.readers.json_lines import JsonLinesSource, duplicate_key_problem, object_or_problem
from tasks.sources.readers.protocol import RawRow, RowSource
from tasks.sources.readers.read_limits import bounded_lines
from tasks.sources.readers.source_files import DataFile, refuse_other_content

_ROW_KEYS = ("data", "rows", "examples", "goldens", "testCases", "test_cases", "samples", "records", "items")
"""Keys of lists of rows, which take precedence over other lists: of pandas, LlamaIndex, DeepEval and Ragas."""
_OF_ROWS = frozenset({*COLUMNS, *COLUMN_ALIASES, MESSAGES})
"""Keys of an object that is a row itself."""
_LONGEST_FIRST_LINE = 64 * 1024**2
"""Size of a first line that is taken for a whole document."""


def open_json(file: DataFile) -> RowSource:
    """Return a source of a `.json` file: JSON Lines if its first line is a complete object and more follows.

    Several programs, `datasets` among them, write JSON Lines to files with this extension.
    """
    with file.open() as opened:
        lines = bounded_lines(opened, _LONGEST_FIRST_LINE)
        first = (next((line for line in lines if line is None or not line.isspace()), b"") or b"").lstrip()
        if first.startswith(b"{") and _is_json(first) and any(line is None or not line.isspace() for line in lines):
            return JsonLinesSource(file)
    return JsonDocumentSource(file)


class JsonDocumentSource(RowSource):
    """A JSON document. Row numbers count the items of its list."""

    def __init__(self, file: DataFile) -> None:
        super().__init__(file.name)
        self._file = file
        self._has_repeated_keys = False

    def rows(self, batch_rows: int) -> Generator[RawRow, None, None]:  # noqa: ARG002 - a document is read as a whole
        """Yield the items of the list."""
        for number, item in enumerate(self._items, start=1):
            key = _find_repeated_key(item) if self._has_repeated_keys else None
            yield RawRow(number, object_or_problem(item) if key is None else duplicate_key_problem(key))

    def _as_object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        """Return an object of the document; one that gives a key twice makes its row a bad one."""
        try:
            return require_unique_keys(pairs)
        except DuplicateKeyError as error:
            self._has_repeated_keys = True
            return _RepeatedKeys(pairs, error.key)

    @cached_property
    def _items(self) -> list[Any]:
        wanted = 'wanted a list of rows, or an object with one list of objects, or with a list under "data" or "rows"'
        with self._file.open() as handle:
            content = handle.read()
        refuse_other_content(content, self.name)
        if not content.strip():
            return []
        try:
            document = json.loads(content, object_pairs_hook=self._as_object)
        except UnicodeDecodeError as error:
            place = f"invalid {error.encoding.upper()} at byte {error.start + 1}"
            raise SourceError(f"{self.name} cannot be read: {place}; save it as UTF-8") from error
        except (ValueError, RecursionError) as error:
            raise SourceError(
                f"{self.name} is not valid JSON: {error}; {wanted}. Name JSON Lines files .jsonl"
            ) from error
        if isinstance(document, list):
            return document
        if isinstance(document, _RepeatedKeys):
            raise SourceError(f"{self.name} gives the key {document.repeated!r} twice; {wanted}")
        if not isinstance(document, dict):
            raise SourceError(f"{self.name} contains {describe_value(document)}, {wanted}")
        if (rows := _find_rows(document)) is not None:
            return rows
        got = f"an object with {quote_names(document, most=10)}"
        by_column = len(document) > 1 and all(isinstance(value, dict | list) for value in document.values())
        advice = 'Pandas writes rows with orient="records"' if by_column else "Name JSON Lines files .jsonl"
        raise SourceError(f"{self.name} contains {got}; {wanted}. {advice}")


def _find_rows(document: Mapping[str, object]) -> list[Any] | None:
    """Return the list of rows in an object: under a usual key, or the only list of objects.

    >>> _find_rows({"version": 2, "questions": [{"question": "Why?"}], "tags": ["a"]})
    [{'question': 'Why?'}]
    >>> _find_rows({"train": [{"a": 1}], "test": [{"a": 2}]}) is None
    True
    """
    lists = {key: value for key, value in document.items() if isinstance(value, list)}
    usual = [lists[key] for key in _ROW_KEYS if key in lists]
    if (filled := next((rows for rows in usual if rows), None)) is not None:
        return filled
    tables = [rows for rows in lists.values() if rows and all(isinstance(item, dict) for item in rows)]
    is_row = any(key.casefold() in _OF_ROWS for key in document)
    return tables[0] if len(tables) == 1 and not is_row else next(iter(usual), None)


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True


class _RepeatedKeys(dict[str, Any]):
    """An object that gives a key twice."""

    def __init__(self, pairs: list[tuple[str, Any]], repeated: str) -> None:
        super().__init__(pairs)
        self.repeated = repeated


def _find_repeated_key(value: Any) -> str | None:
    """Return the key that a value, or a value in it, gives twice; None if there is none."""
    if isinstance(value, _RepeatedKeys):
        return value.repeated
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return next((key for part in parts if (key := _find_repeated_key(part)) is not None), None)
