"""Read a file of relevance judgments: TREC qrels, or the table of BEIR with a header."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from metric_core.errors import SourceError
from tasks.runtime.wording import quote_names
from tasks.sources.bad_rows import UnfitError
from tasks.sources.converters import as_id
from tasks.sources.judgments.judgment_values import table_form
from tasks.sources.location import open_file
from tasks.sources.source_files import refuse_other_content, refuse_utf16

QUERY_ID_COLUMNS = ("query_id", "query-id", "qid")
"""Columns that hold the id of the query of a row, in order of precedence, unless the configuration names one."""
_TREC_FIELDS, _BEIR_FIELDS = 4, 3
_WANTED = "'QUERY 0 PASSAGE GRADE', or QUERY, PASSAGE and GRADE below a header 'query-id corpus-id score'"
_NAMED = 3


class QrelsFile:
    r"""The judgments in a file, by query.

    Args:
        address: Path or URL of a file; it may be compressed. Its lines are `QUERY 0 PASSAGE GRADE`, separated by
            white space (TREC), or `QUERY PASSAGE GRADE` below a header that begins with `query-id` (BEIR).
        query_id_column: Column of the data with the id of the query; None for `query_id` or `qid`, else the row id.
        redact: Function that redacts the ids, as those of the rows are.

    Raises:
        SourceError: The file does not exist, a line has another form, or a passage has two grades for a query.
    """

    def __init__(
        self, address: str, query_id_column: str | None = None, redact: Callable[[str], str] | None = None
    ) -> None:
        file = open_file(address)
        self.name = file.name
        self._column = query_id_column
        self._met: set[str] = set()
        self._rows_without = 0
        self._queries_of_rows: dict[str, None] = {}
        with file.open() as stream:
            first = stream.peek(4)[:4]  # type: ignore[attr-defined]
            refuse_utf16(first, self.name)
            refuse_other_content(first, self.name)
            self._queries = read_qrels(_decode(stream, self.name), self.name)
        if redact is not None:
            self._queries = _redact_ids(self._queries, redact, self.name)

    def check_column(self, names: Iterable[str], source_name: str) -> None:
        """Find the column with the ids of the queries.

        Raises:
            SourceError: The data have no column of the name that the options give.
        """
        found = list(names)
        if self._column is not None and self._column not in found:
            raise SourceError(
                f"{source_name} has no query_id_column {self._column!r}; it has: {quote_names(found)}. "
                "Without query_id_column, the judgments belong to the row ids"
            )
        if self._column is None:
            self._column = next((name for name in QUERY_ID_COLUMNS if name in found), None)

    def judgments(self, content: Mapping[str, Any], row_id: str) -> list[dict[str, Any]] | None:
        """Return the judgments for a row, in the form of the samples table; None if the file has none.

        Raises:
            UnfitError: The id of the query is neither a text nor a whole number.
        """
        query = row_id
        if self._column is not None:
            value = content.get(self._column)
            if value is None:
                self._rows_without += 1
                return None
            try:
                query = as_id(value)
            except UnfitError as unfit:
                raise UnfitError(unfit.problem, self._column) from None
        grades = self._queries.get(query)
        if grades is None:
            self._rows_without += 1
            if len(self._queries_of_rows) < _NAMED:
                self._queries_of_rows[query] = None
            return None
        self._met.add(query)
        return table_form(grades)

    def start(self) -> None:
        """Forget the rows of an earlier reading."""
        self._met, self._rows_without, self._queries_of_rows = set(), 0, {}

    def check_met(self, source_name: str) -> None:
        """Check that some row has judgments.

        Raises:
            SourceError: None has: the ids are those of other queries.
        """
        if self._met:
            return
        by = "row ids" if self._column is None else f"the column {self._column!r}"
        raise SourceError(
            f"no row of {source_name} has judgments in {self.name}: its queries are "
            f"{quote_names(list(self._queries)[:_NAMED])} and so on, {by} of the rows "
            f"{quote_names(self._queries_of_rows) or 'none'} and so on. Name the column with the ids of the queries: "
            "query_id_column, or --query-id-column"
        )

    @property
    def warnings(self) -> list[str]:
        """A sentence about rows without judgments, if there are any."""
        if not self._rows_without:
            return []
        rows = "1 row has" if self._rows_without == 1 else f"{self._rows_without:,} rows have"
        return [f"{rows} no judgments in {self.name}"]


def read_qrels(lines: Iterable[str], name: str) -> dict[str, dict[str, float]]:
    """Return the grades by query and passage.

    >>> read_qrels(["q1 0 d1 2", "q1 0 d2 0", "", "q2 0 d1 1"], "qrels.txt")
    {'q1': {'d1': 2.0, 'd2': 0.0}, 'q2': {'d1': 1.0}}

    Args:
        lines: Lines of the file.
        name: Name of the file in messages.

    Raises:
        SourceError: A line has another form, or there is none; the message names the line.
    """
    queries: dict[str, dict[str, float]] = {}
    has_header = False
    for number, line in enumerate(lines, start=1):
        fields = line.split()
        if not fields:
            continue
        if not queries and not has_header and fields[0].casefold() in QUERY_ID_COLUMNS:
            has_header = True
            continue
        if len(fields) != (_BEIR_FIELDS if has_header else _TREC_FIELDS):
            raise SourceError(f"{name}, line {number}: {len(fields)} fields, wanted {_WANTED}")
        query, passage, grade = fields[0], fields[-2], _grade(fields[-1])
        if grade is None:
            raise SourceError(f"{name}, line {number}: the grade is {fields[-1]!r}, wanted a number")
        if queries.setdefault(query, {}).setdefault(passage, grade) != grade:
            raise SourceError(f"{name}, line {number}: a second grade of {passage!r} for the query {query!r}")
    if not queries:
        raise SourceError(f"{name} has no judgments, wanted lines with {_WANTED}")
    return queries


def _grade(text: str) -> float | None:
    try:
        grade = float(text)
    except ValueError:
        return None
    return grade if math.isfinite(grade) else None


def _redact_ids(
    queries: Mapping[str, Mapping[str, float]], redact: Callable[[str], str], name: str
) -> dict[str, dict[str, float]]:
    try:
        return {
            redact(query): {redact(passage): grade for passage, grade in grades.items()}
            for query, grades in queries.items()
        }
    except UnfitError as unfit:
        raise SourceError(f"{name}: {unfit.problem}") from None


def _decode(stream: Iterable[bytes], name: str) -> Iterator[str]:
    for number, line in enumerate(stream, start=1):
        try:
            yield line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError:
            raise SourceError(f"{name}, line {number}: not UTF-8; save the file as UTF-8") from None
