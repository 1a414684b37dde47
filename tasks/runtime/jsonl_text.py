"""Write and read JSON Lines.

Only a line feed ends a line. `str.splitlines` also breaks at characters that texts may hold, such as U+0085 and U+2028,
which are frequent in what is extracted from PDF files.
"""

import json
from collections.abc import Iterable, Mapping


def to_json_lines(rows: Iterable[Mapping[str, object]], *, allow_nan: bool = False) -> str:
    r"""Return rows as JSON Lines; halves of surrogate pairs, which UTF-8 cannot encode, are escaped.

    Args:
        allow_nan: Write NaN and infinities as Python's json module does, which JSON lacks.

    Raises:
        ValueError: A row holds NaN or an infinity.

    >>> to_json_lines([{"text": "one\u2028two"}]), to_json_lines([{"text": "\ud800"}])
    ('{"text": "one\u2028two"}\n', '{"text": "\\ud800"}\n')
    """
    text = "".join(f"{json.dumps(row, ensure_ascii=False, allow_nan=allow_nan)}\n" for row in rows)
    return text.encode(errors="backslashreplace").decode()


def split_json_lines(text: str) -> list[str]:
    r"""Return the lines of JSON Lines; the last one need not end with a line feed.

    >>> split_json_lines('{"text": "one\u2028two"}\r\n{}\n')
    ['{"text": "one\u2028two"}', '{}']
    """
    return [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")] if text else []
