"""Assign ids to rows: the ids in a column, which must be unique, or digests of the rows' content."""

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from metric_core.columns import EVIDENCE_SPANS, KEY_POINTS, RELEVANCE_JUDGMENTS, RUBRICS, SESSION_ID
from tasks.sources.cells.ids import as_id
from tasks.sources.digest_table import DigestTable
from tasks.sources.readers.bad_rows import DUPLICATE_HINT, InvalidRowError

_CANONICAL = json.JSONEncoder(sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode
_DIGITS = 16
_DIGEST = re.compile(rf"[0-9a-f]{{{_DIGITS}}}(-[0-9]+)?")
_NOT_CONTENT = (SESSION_ID, RELEVANCE_JUDGMENTS, KEY_POINTS, EVIDENCE_SPANS)


class RowIds:
    """The ids of the rows of one source. A digest of each is held in memory, at 18 to 36 bytes per row.

    Args:
        column: Source column of the ids; None for digests.
        where: Function from the number of a row to its place, for messages.
    """

    def __init__(self, column: str | None, where: Callable[[int], str]) -> None:
        self.column = column
        self._where = where
        self._numbers = DigestTable()
        self._rows = 0
        self._repeats: dict[str, int] = {}

    def from_value(self, value: Any, number: int) -> str:
        """Return the id in the id column as text.

        Raises:
            InvalidRowError: The id is missing, empty, or the id of an earlier row.
        """
        if value is None or (isinstance(value, str) and not value.strip()):
            raise InvalidRowError("null or empty, wanted an id (a text or a whole number)", self.column)
        try:
            row_id = as_id(value)
        except InvalidRowError as invalid:
            raise InvalidRowError(invalid.problem, self.column) from None
        digest = hashlib.blake2b(row_id.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        first = self._numbers.setdefault(digest, number)
        if first != number:
            raise InvalidRowError(
                f"the id {row_id!r} is a duplicate, first used in {self._where(first)}", self.column, DUPLICATE_HINT
            )
        return row_id

    def from_content(self, values: Mapping[str, object]) -> str:
        """Return an id derived from the content of a row; repeated rows get -2, -3 and so on."""
        digest = sample_digest(values)
        self._rows += 1
        if self._numbers.setdefault(bytes.fromhex(digest), self._rows) == self._rows:
            return digest
        self._repeats[digest] = count = self._repeats.get(digest, 1) + 1
        return f"{digest}-{count}"


def is_digest(row_id: str) -> bool:
    """Return whether an id looks like one that was derived from the content of a row.

    >>> is_digest("9f86d081884c7d65"), is_digest("9f86d081884c7d65-2"), is_digest("q-17")
    (True, True, False)
    """
    return _DIGEST.fullmatch(row_id) is not None


def sample_digest(values: Mapping[str, object]) -> str:
    r"""Return the digest of the non-empty sample columns, independent of their order and their names in the source.

    The session, the relevance judgments and the key points are left out: they say where a row comes from, and what is
    known about it. Line ends count as the same, whichever program wrote them.

    >>> sample_digest({"response": "Yes.", "reference": None}) == sample_digest({"reference": "", "response": "Yes."})
    True
    >>> sample_digest({"response": "No,\r\nnever."}) == sample_digest({"response": "No,\nnever."})
    True
    """
    content = {
        column: _with_plain_line_ends(value)
        for column, value in values.items()
        if value is not None and value != "" and column not in _NOT_CONTENT
    }
    if RUBRICS in content:
        content[RUBRICS] = {rubric["key"]: rubric["description"] for rubric in content[RUBRICS]}
    return hashlib.sha256(_CANONICAL(content).encode()).hexdigest()[:_DIGITS]


def _with_plain_line_ends(value: Any) -> Any:
    if isinstance(value, str):
        return value.replace("\r\n", "\n").replace("\r", "\n")
    if isinstance(value, dict):
        return {key: _with_plain_line_ends(item) for key, item in value.items()}
    return [_with_plain_line_ends(item) for item in value] if isinstance(value, list) else value
