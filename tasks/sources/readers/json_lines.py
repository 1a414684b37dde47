"""Read JSON Lines files line by line. An invalid line is one bad row, not the end of the file."""

import json
from collections.abc import Generator
from typing import Any

from metric_core.parsing.strict_json import DuplicateKeyError, require_unique_keys
from tasks.runtime.wording import describe_value
from tasks.sources.readers.bad_rows import UTF8_HINT
from tasks.sources.readers.protocol import RawRow, RowSource, Unreadable
from tasks.sources.readers.read_limits import bounded_lines, row_problem
from tasks.sources.readers.source_files import DataFile, refuse_other_content, refuse_utf16

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class JsonLinesSource(RowSource):
    """A JSON Lines file. Row numbers count lines, including blank ones, as editors do."""

    unit = "line"

    def __init__(self, file: DataFile) -> None:
        super().__init__(file.name)
        self._file = file
        self._begins_as_list = False

    @property
    def hints(self) -> tuple[str, ...]:
        """Hint for a JSON document with the wrong extension, which has no usable line."""
        return ("name a file that is one JSON list .json",) if self._begins_as_list else ()

    def rows(self, batch_rows: int) -> Generator[RawRow, None, None]:  # noqa: ARG002 - lines come one by one
        """Yield the rows of the lines that are not blank."""
        with self._file.open() as file:
            for number, line in enumerate(bounded_lines(file), start=1):
                if line is None:
                    yield RawRow(number, Unreadable(row_problem()))
                    continue
                if number == 1:
                    refuse_utf16(line, self.name)
                    refuse_other_content(line, self.name)
                    line = line.removeprefix(_BYTE_ORDER_MARK)  # noqa: PLW2901
                    self._begins_as_list = line.lstrip().startswith(b"[")
                if not line.isspace() and line:
                    yield RawRow(number, parse_line(line))


def parse_line(line: bytes) -> dict[str, Any] | Unreadable:
    """Return the object on a line, or the reason why there is none.

    >>> parse_line(b'{"response": "Yes."}')
    {'response': 'Yes.'}
    >>> parse_line(b'[1, 2]').problem
    'got the list [1, 2], wanted an object'
    >>> parse_line(b'{"id": 1, "id": 2}').problem
    "the key 'id' is given twice, wanted each key once"
    """
    try:
        value = json.loads(line.rstrip().decode(), object_pairs_hook=require_unique_keys)
    except UnicodeDecodeError as error:
        return Unreadable(f"invalid UTF-8 at byte {error.start + 1} of the line", UTF8_HINT)
    except json.JSONDecodeError as error:
        return Unreadable(f"invalid JSON: {error.msg.removesuffix(' at')} at character {error.pos + 1}")
    except DuplicateKeyError as error:
        return duplicate_key_problem(error.key)
    except (ValueError, RecursionError) as error:
        return Unreadable(f"JSON that cannot be read: {error}")
    return object_or_problem(value)


def duplicate_key_problem(key: str) -> Unreadable:
    """Return the reason why an object that gives a key twice cannot be a row: either value may be meant."""
    return Unreadable(f"the key {key!r} is given twice, wanted each key once")


def object_or_problem(value: Any) -> dict[str, Any] | Unreadable:
    """Return a JSON value if it can be a row, or the reason why it cannot."""
    return value if isinstance(value, dict) else Unreadable(f"got {describe_value(value)}, wanted an object")
