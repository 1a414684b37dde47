"""Read a file of relevance judgments: TREC qrels, or a table with columns for the query, the passage and the grade."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any, BinaryIO, TypeAlias

from metric_core.columns import EVIDENCE_SPANS, RELEVANCE_JUDGMENTS
from metric_core.errors import SourceError
from metric_core.evidence_spans import EvidenceSpan, PlacedSpan, SpanState
from tasks.runtime.wording import quote_names
from tasks.sources.cells.evidence_values import read_span
from tasks.sources.cells.ids import as_id
from tasks.sources.cells.judgment_values import GRADE_KEYS, PASSAGE_KEYS, parse_grade, table_form
from tasks.sources.location import open_file
from tasks.sources.readers.bad_rows import BadRow, InvalidRowError
from tasks.sources.readers.delimited import DelimitedSource
from tasks.sources.readers.formats import OPENERS, find_opener
from tasks.sources.readers.protocol import RowSource, Unreadable
from tasks.sources.readers.read_limits import bounded_lines, row_problem
from tasks.sources.readers.source_files import DataFile, refuse_other_content, refuse_utf16

QUERY_ID_COLUMNS = ("query_id", "query-id", "qid")
"""Columns that hold the id of the query of a row, in order of precedence, unless the configuration names one."""
_COLUMNS = ((*QUERY_ID_COLUMNS, "q_id", "topic_id", "topic", "query"), PASSAGE_KEYS, GRADE_KEYS)
_ITERATION = re.compile(r"(?i)q?\d+")
"""Second field of a line of TREC, which is 0 or Q0 in most files, or the number of an iteration."""
_TREC_FIELDS = 4
_WANTED = (
    "lines with 'QUERY 0 PASSAGE GRADE', or a table with the columns query_id, passage_id and grade (or query-id, "
    "corpus-id and score, as BEIR has, or qid, docno and label, as PyTerrier has)"
)
_NAMED = 3
_ROWS_AT_ONCE = 1000

_TEXT = "text"
"""Column of the judged text, which the judgment is about if it is known."""

_Judgment: TypeAlias = tuple[str, Any, Any, Any, Mapping[str, Any]]
"""The place of a judgment in the file, its query, passage and grade, and the row of a table."""


@dataclass(frozen=True, slots=True)
class QueryJudgments:
    """The judgments of a query.

    Args:
        grades: Grades by the id of the passage; the file has no texts.
        spans: Judged texts with their grades.
    """

    grades: dict[str, float] = field(default_factory=dict)
    spans: list[EvidenceSpan] = field(default_factory=list)


class QrelsFile:
    r"""The judgments in a file, by query.

    Args:
        address: Path or URL of a file: a table in any format of a source, with a column for each of query, passage
            and grade, as `assay export --shape qrels` writes it; a file with any other extension, whose lines are
            `QUERY 0 PASSAGE GRADE`, separated by white space (TREC); or either of both in a .tsv file, such as the
            table of BEIR. In a table, the judged `text` may stand beside the id, with its `document`, `start`,
            `end` and the words `before` and `after` it: then the judgment is about the text.
        query_id_column: Column of the data with the id of the query; None for `query_id` or `qid`, else the row id.
        redact: Function that redacts ids and texts, as those of the rows are.

    Raises:
        SourceError: The file does not exist, a line has another form, or a passage has two grades for a query.
    """

    def __init__(
        self,
        address: str,
        query_id_column: str | None = None,
        redact: Callable[[str], str] | None = None,
    ) -> None:
        file = open_file(address)
        self.name = file.name
        self._column = query_id_column
        self._met: set[str] = set()
        self._rows_without = 0
        self._queries_of_rows: dict[str, None] = {}
        self._queries = read_qrels(file)
        if redact is not None:
            self._queries = _redact_queries(self._queries, redact, self.name)

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

    @property
    def has_texts(self) -> bool:
        """True if the file has judgments of texts."""
        return any(each.spans for each in self._queries.values())

    def judgments(self, content: Mapping[str, object], row_id: str) -> dict[str, list[dict[str, Any]] | None]:
        """Return the grades and the judged texts of a row, in the form of the samples table; None if there are none.

        Raises:
            InvalidRowError: The id of the query is neither a text nor a whole number.
        """
        query = row_id
        if self._column is not None:
            value = content.get(self._column)
            if value is None:
                self._rows_without += 1
                return {RELEVANCE_JUDGMENTS: None}
            try:
                query = as_id(value)
            except InvalidRowError as invalid:
                raise InvalidRowError(invalid.problem, self._column) from None
        found = self._queries.get(query)
        if found is None:
            self._rows_without += 1
            if len(self._queries_of_rows) < _NAMED:
                self._queries_of_rows[query] = None
            return {RELEVANCE_JUDGMENTS: None}
        self._met.add(query)
        grades = {RELEVANCE_JUDGMENTS: table_form(found.grades)}
        if not found.spans:
            return {**grades}
        return {**grades, EVIDENCE_SPANS: [PlacedSpan(span, SpanState.UNSEEN).to_json() for span in found.spans]}

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


def read_qrels(file: DataFile) -> dict[str, QueryJudgments]:
    """Return the judgments by query.

    Args:
        file: File in one of the forms that `QrelsFile` lists.

    Raises:
        SourceError: A line or row has another form, or there is none; the message names it.
    """
    is_table = file.extension in OPENERS and file.extension != ".tsv"
    rows = _table_rows(find_opener(file)(file)) if is_table else _text_rows(file)
    queries: dict[str, QueryJudgments] = {}
    for place, query_id, passage_id, given, row in rows:
        try:
            query, passage = as_id(query_id, "the id of the query is"), as_id(passage_id, "the id of the passage is")
            grade = parse_grade(given)
            judgments = queries.setdefault(query, QueryJudgments())
            if row.get(_TEXT):
                judgments.spans.append(replace(read_span(row, "the judgment"), grade=grade))
                continue
        except InvalidRowError as invalid:
            raise SourceError(f"{file.name}, {place}: {invalid.problem}") from None
        if judgments.grades.setdefault(passage, grade) != grade:
            raise SourceError(f"{file.name}, {place}: a second grade of {passage!r} for the query {query!r}")
    if not queries:
        raise SourceError(f"{file.name} has no judgments, wanted {_WANTED}")
    return queries


def _text_rows(file: DataFile) -> Iterator[_Judgment]:
    """Yield the judgments of a file without a format in its name: TREC qrels, or a table below a header with tabs."""
    with file.open() as stream:
        first = stream.peek(4)[:4]  # type: ignore[attr-defined]
        refuse_utf16(first, file.name)
        refuse_other_content(first, file.name)
        for number, line in enumerate(_decode(stream, file.name), start=1):
            if number == 1 and _find_columns(line.rstrip("\r\n").split("\t")) is not None:
                yield from _table_rows(DelimitedSource(file))
                return
            fields = line.split()
            if fields and len(fields) != _TREC_FIELDS:
                raise SourceError(f"{file.name}, line {number}: {len(fields)} fields, wanted {_WANTED}")
            if fields and _ITERATION.fullmatch(fields[1]) is None:
                raise SourceError(
                    f"{file.name}, line {number}: the second field is {fields[1]!r}, where TREC has 0 or Q0; wanted "
                    f"{_WANTED}"
                )
            if fields:
                yield f"line {number}", fields[0], fields[2], fields[3], {}


def _table_rows(source: RowSource) -> Iterator[_Judgment]:
    """Yield the judgments in the rows of a table."""
    with closing(source.rows(_ROWS_AT_ONCE)) as rows:
        for row in rows:
            place = BadRow(row.number, None, "", source.unit, row.detail).place
            if isinstance(row.content, Unreadable):
                raise SourceError(f"{source.name}, {place}: {row.content.problem}")
            columns = _find_columns(row.content)
            if columns is None:
                raise SourceError(f"{source.name}, {place}: the columns {quote_names(row.content)}, wanted {_WANTED}")
            query, passage, grade = (row.content[name] for name in columns)
            yield place, query, passage, grade, row.content


def _find_columns(names: Iterable[str]) -> tuple[str, ...] | None:
    """Return the names of the columns of the query, the passage and the grade; None unless all are there.

    >>> _find_columns(["Query-ID", "corpus-id", "iteration", "score"])
    ('Query-ID', 'corpus-id', 'score')
    """
    by_name = {name.strip().casefold(): name for name in names}
    found = [next((by_name[key] for key in keys if key in by_name), None) for keys in _COLUMNS]
    columns = tuple(name for name in found if name is not None)
    return columns if len(columns) == len(_COLUMNS) else None


def _redact_queries(
    queries: Mapping[str, QueryJudgments], redact: Callable[[str], str], name: str
) -> dict[str, QueryJudgments]:
    def redact_span(span: EvidenceSpan) -> EvidenceSpan:
        document = None if span.document is None else redact(span.document)
        before, after = redact(span.before), redact(span.after)
        return replace(span, text=redact(span.text), document=document, before=before, after=after)

    try:
        return {
            redact(query): QueryJudgments(
                {redact(passage): grade for passage, grade in found.grades.items()}, list(map(redact_span, found.spans))
            )
            for query, found in queries.items()
        }
    except InvalidRowError as invalid:
        raise SourceError(f"{name}: {invalid.problem}") from None


def _decode(stream: BinaryIO, name: str) -> Iterator[str]:
    for number, line in enumerate(bounded_lines(stream), start=1):
        if line is None:
            raise SourceError(f"{name}, line {number}: {row_problem()}")
        try:
            yield line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError:
            raise SourceError(f"{name}, line {number}: not UTF-8; save the file as UTF-8") from None
