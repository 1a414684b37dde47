"""Write files atomically: readers find the whole file or none.

Content goes into a temporary file beside the target, which is then renamed. `tasks.tables.table_files` does the same
for stores behind fsspec URLs.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from metric_core.errors import AssayError

_SUFFIX = ".tmp"


def temporary_name(name: str) -> str:
    """Return the name of the temporary file for a file.

    >>> temporary_name("run.json")
    '.run.json.tmp'
    """
    return f".{name}{_SUFFIX}"


def is_temporary(name: str) -> bool:
    """Return whether a name is that of a temporary file, which a killed writer leaves behind.

    >>> is_temporary(".run.json.tmp"), is_temporary("run.json")
    (True, False)
    """
    return name.startswith(".") and name.endswith(_SUFFIX)


@contextmanager
def atomic_file(path: Path) -> Iterator[Path]:
    """Yield a path to write to; it replaces `path` when the block ends and is deleted if the block fails.

    Args:
        path: Target file, in an existing folder. Two writers must not write it at the same time.
    """
    temporary = path.with_name(temporary_name(path.name))
    try:
        yield temporary
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def atomic_write(path: Path, text: str, errors: str = "strict") -> None:
    r"""Write a text file in UTF-8, with `\n` at the ends of its lines.

    Args:
        path: Target file, in an existing folder. Two writers must not write it at the same time.
        text: Content of the file.
        errors: Treatment of characters that UTF-8 cannot encode, as in `str.encode`.
    """
    with atomic_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8", errors=errors, newline="\n")


@contextmanager
def translate_write_errors(what: str, error_class: type[AssayError] = AssayError, advice: str = "") -> Iterator[None]:
    """Raise the errors of a block that writes files as errors that name what was being written.

    Args:
        what: Description of the file or folder, with its path.
        error_class: Class of the error to raise.
        advice: Sentences that follow the cause.

    Raises:
        AssayError: The block raised an OSError.
    """
    try:
        yield
    except OSError as error:
        message = f"{what} cannot be written: {error.strerror or error}"
        raise error_class(f"{message}. {advice}" if advice else message) from error


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write a JSON file whole or not at all.

    Args:
        path: Target file.
        content: JSON object; values that JSON lacks are written as their `str`.

    Raises:
        ValueError: The content holds NaN or an infinity.
    """
    text = json.dumps(content, ensure_ascii=False, indent=2, allow_nan=False, default=str) + "\n"
    # The note about a row that was left out because its text is not UTF-8 must be writable.
    atomic_write(path, text, errors="backslashreplace")
