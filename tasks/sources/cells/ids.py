"""Convert ids to texts, and check that texts can be stored."""

import math
from typing import Any

from tasks.runtime.wording import describe_value
from tasks.sources.readers.bad_rows import InvalidRowError


def as_id(value: Any, place: str = "got", wanted: str = "an id (a text or a whole number)") -> str:
    """Return an id as text; whole numbers stored as floating-point numbers are accepted."""
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, float) and math.isfinite(value) and value.is_integer():
        return str(int(value))
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise InvalidRowError(f"{place} {describe_value(value)}, wanted {wanted}")


def storable(text: str) -> str:
    """Return a text if it can be stored as UTF-8.

    Raises:
        InvalidRowError: It has half of a surrogate pair.
    """
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise InvalidRowError(
                f"character {error.start + 1} of a text is half of a surrogate pair ({text[error.start]!r}), "
                "wanted a text that can be stored as UTF-8"
            ) from None
    return text
