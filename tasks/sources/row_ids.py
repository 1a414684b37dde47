"""The ids of rows: the user's own, checked to be unique, or digests of what the rows hold."""

import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any

from metric_core.columns import RUBRICS
from tasks.sources.bad_rows import DUPLICATE_HINT, UnfitError
from tasks.sources.converters import as_id

_CANONICAL = json.JSONEncoder(sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode
_DIGITS = 16


class RowIds:
    """Gives every row of one source its id. Remembers all of them: some hundred bytes a row.

    Args:
        column: the source column that the ids come from; None: they are digests.
        where: the place of a row by its number, for messages.
    """

    def __init__(self, column: str | None, where: Callable[[int], str]) -> None:
        self.column = column
        self._where = where
        self._numbers: dict[str, int] = {}
        self._repeats: dict[str, int] = {}

    def own(self, value: Any, number: int) -> str:
        """The row's own id as text.

        Raises:
            UnfitError: no id, an empty one, or one that a row before has.
        """
        if value is None or (isinstance(value, str) and not value.strip()):
            raise UnfitError("null or empty, wanted an id (a text or a whole number)", self.column)
        try:
            row_id = as_id(value)
        except UnfitError as unfit:
            raise UnfitError(unfit.problem, self.column) from None
        first = self._numbers.setdefault(row_id, number)
        if first != number:
            raise UnfitError(f"the id {row_id!r} again, first in {self._where(first)}", self.column, DUPLICATE_HINT)
        return row_id

    def made(self, values: Mapping[str, Any]) -> str:
        """An id made from the content of a row; repeated rows get -2, -3 and so on."""
        digest = content_digest(values)
        count = self._repeats.get(digest, 0) + 1
        self._repeats[digest] = count
        return digest if count == 1 else f"{digest}-{count}"


def content_digest(values: Mapping[str, Any]) -> str:
    """Digest of the sample columns that hold something, whatever their order and their names in the source.

    >>> content_digest({"response": "Yes.", "reference": None}) == content_digest({"reference": "", "response": "Yes."})
    True
    """
    content = {column: value for column, value in values.items() if value is not None and value != ""}
    if RUBRICS in content:
        content[RUBRICS] = {rubric["key"]: rubric["description"] for rubric in content[RUBRICS]}
    return hashlib.sha256(_CANONICAL(content).encode()).hexdigest()[:_DIGITS]
