"""Read the rows of a source into tables of samples, and report all bad rows in one error."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import replace
from functools import cached_property
from itertools import islice

import pyarrow as pa

from metric_core.columns import (
    COLUMNS,
    EVIDENCE_SPANS,
    ID_COLUMNS,
    RELEVANCE_JUDGMENTS,
    RETRIEVED_CONTEXT_IDS,
    RETRIEVED_CONTEXTS,
)
from metric_core.errors import BadRowsError, SourceError
from tasks.options.source_options import SourceOptions
from tasks.record.judgments import JudgmentsRecord
from tasks.sources.carried_judgments import CarriedJudgments
from tasks.sources.cells.missing_values import MissingValues
from tasks.sources.cells.passage_objects import COMPANIONS, find_companions
from tasks.sources.column_mapping import (
    SeenColumns,
    check_known,
    check_mapped,
    check_required,
    describe_lookalikes,
    find_id_column,
    find_lookalikes,
    required_by,
    resolve_columns,
)
from tasks.sources.conversations import read_conversations
from tasks.sources.location import SourceLike, open_source
from tasks.sources.nested_columns import with_paths
from tasks.sources.qrels_file import QrelsFile
from tasks.sources.ranking_checks import RankingChecks
from tasks.sources.readers.bad_rows import SKIP_HINT, BadRow, BadRowLog, InvalidRowError
from tasks.sources.readers.protocol import RawRow, RowSource, Unreadable
from tasks.sources.readers.read_limits import BATCH_BYTES
from tasks.sources.redaction import Redaction
from tasks.sources.row_ids import RowIds
from tasks.sources.sample_rows import BatchBuilder, RowConverter, RowRules, SampleRow

_PASSAGE_ROWS = 10
"""Rows inspected for passages that are objects, which bring their ids and scores along."""
_FIRST_ROWS = 1000
"""Rows inspected for the columns of a format without a schema; more are inspected if a needed column is missing."""


def read_samples(source: SourceLike, options: SourceOptions, required: Mapping[str, tuple[str, ...]]) -> "SampleReader":
    """Open a source, and check that it has the columns that metrics need.

    Args:
        source: Path, URL, `datasets.Dataset`, or `hub:owner/name` (see `open_source`).
        options: Names of columns, and the handling of bad rows.
        required: Mapping from metric to the sample columns that it needs.

    Raises:
        SourceError: The source cannot be read, or lacks a column.
        ConfigError: A metric needs a column that samples do not have.
    """
    return SampleReader(open_source(source), options, required)


def available_columns(source: SourceLike, options: SourceOptions) -> tuple[str, ...]:
    """Return the sample columns that a source has, in the order of COLUMNS, from its schema or its first rows.

    Raises:
        SourceError: The source cannot be read or has no row.
    """
    return SampleReader(open_source(source), options, {}).columns


def all_columns(source: SourceLike, options: SourceOptions) -> tuple[str, ...]:
    """Return the sample columns that a source has, then its other columns, which metrics may need, too.

    Raises:
        SourceError: The source cannot be read or has no row.
    """
    reader = SampleReader(open_source(source), options, {})
    return (*reader.columns, *reader.other_columns)


class SampleReader:
    """The samples of a source, as tables of the samples schema with at most `batch_rows` rows each.

    Each iteration reads the source again. During and after an iteration, `bad_rows`, `rows_read` and `warnings`
    describe the rows read so far.

    Args:
        source: Opened source.
        options: Names of columns, and the handling of bad rows.
        required: Mapping from metric to the sample columns that it needs.

    Raises:
        SourceError: The source lacks a column, or has no row.
    """

    def __init__(self, source: RowSource, options: SourceOptions, required: Mapping[str, tuple[str, ...]]) -> None:
        source.configure(options)
        self._stops_at_bad_rows = options.on_bad_row == "fail" and not source.skips_bad_rows
        self._source, options = read_conversations(with_paths(source, options), options)
        self._options = options
        self._redaction = Redaction(options.redact) if options.redact is not None else None
        redact = None if self._redaction is None else self._redaction.text
        self._qrels = None
        if options.qrels is not None:
            self._qrels = QrelsFile(options.qrels, options.query_id_column, redact)
        self._carried = CarriedJudgments(options.chunks, redact)
        self._needed_by = required_by(required)
        self._first_names = self._first_columns()
        self._id_column: str | None = None
        self._start()
        if not self._first_names:
            self._raise_for_missing_columns()
        self._id_column = find_id_column(self._first_names, source.name, options)
        check_mapped(self._first_names, self._source, options)
        self._check_qrels()
        if not self._needed_by:
            check_known(self._first_names, self._resolution, self._source, options)
        brought = () if set(self._needed_by) <= self._resolution.bindings.keys() else self._brought
        check_required(self._first_names, self._resolution, self._needed_by, source.name, brought)

    @property
    def columns(self) -> tuple[str, ...]:
        """The sample columns of the source."""
        found = {*self._resolution.bindings, *self._brought}
        return tuple(column for column in COLUMNS if column in found)

    @property
    def other_columns(self) -> tuple[str, ...]:
        """The columns of the source that are no sample columns, as far as they are known."""
        read = {*self._resolution.bindings.values(), *COLUMNS}
        found = dict.fromkeys((*self._seen.names, *sorted(self._brought)))
        return tuple(name for name in found if name not in read)

    @property
    def lookalikes(self) -> dict[str, str]:
        """The source columns that look like a sample column, which no other is read as, with that column."""
        resolution = self._resolution
        bindings = {**dict.fromkeys(self._brought, ""), **resolution.bindings}
        return find_lookalikes(self._seen.names, replace(resolution, bindings=bindings), self._options)

    @property
    def rows_read(self) -> int:
        """Number of rows read so far, including bad rows."""
        return self._rows_read

    @property
    def bad_rows(self) -> list[BadRow]:
        """The first thousand bad rows; `bad_row_count` counts all."""
        return self._log.rows

    @property
    def bad_row_count(self) -> int:
        """Number of bad rows."""
        return self._log.count

    @property
    def warnings(self) -> list[str]:
        """Warnings about the data, one sentence each."""
        found = dict.fromkeys((*self._source.warnings, *self._warnings, *(self._qrels.warnings if self._qrels else ())))
        found |= dict.fromkeys(describe_lookalikes(self.lookalikes))
        return [*found, *self._rankings.sentences(), *self._missing.sentences(self._rows_read - self._log.count)]

    def __iter__(self) -> Iterator[pa.Table]:
        """Yield tables of samples.

        Raises:
            BadRowsError: There are bad rows and they must not be skipped; raised at the end.
            SourceError: No row is valid (raised at the end), or the source cannot be read further (raised at once).
        """
        if self._has_evidence(self._resolution.bindings) or self._options.chunks is not None:
            self._carried.find(lambda: (row.values for _, _, row in self._samples()))
        builder = BatchBuilder()
        for raw, row_id, row in self._samples():
            self._carried.fill(row.values, row_id)
            self._rankings.add(row.values)
            builder.add(row_id, raw.number, row)
            self._missing.add_row(row.values)
            if len(builder) == self._options.batch_rows or builder.size >= BATCH_BYTES:
                yield builder.take()
        if len(builder):
            yield builder.take()
        self._raise_for_bad_rows()

    @property
    def judgments(self) -> JudgmentsRecord | None:
        """Counts of the judgments of texts by state, for run.json; None if there are none."""
        return self._carried.entry

    def _samples(self) -> Iterator[tuple[RawRow, str, SampleRow]]:
        """Yield the rows that are valid samples with their ids, from the start."""
        self._start()
        ids = RowIds(self._id_column, self._source.where)
        converter = self._converter()
        with closing(self._source.rows(self._options.batch_rows)) as rows:
            for raw in islice(rows, self._options.limit):
                self._rows_read += 1
                if not isinstance(raw.content, Unreadable) and not raw.content.keys() <= self._seen.names.keys():
                    converter = self._bind_new_columns(raw.content, raw.number) or converter
                try:
                    row_id, row = self._sample(raw, converter, ids)
                except InvalidRowError as invalid:
                    bad = BadRow(raw.number, invalid.column, invalid.problem, self._source.unit, raw.detail)
                    self._log.add(bad, invalid.hint)
                else:
                    yield raw, row_id, row

    def _has_evidence(self, bindings: Collection[str]) -> bool:
        return EVIDENCE_SPANS in bindings or (self._qrels is not None and self._qrels.has_texts)

    @property
    def _brought(self) -> frozenset[str]:
        """The columns that rows have without a column of the source."""
        return self._companions | self._judged(self._resolution.bindings)

    def _judged(self, bindings: Collection[str]) -> frozenset[str]:
        """Return the columns that judgments bring along; passages that are known by their texts have ids, too."""
        if self._has_evidence(bindings):
            named = {RETRIEVED_CONTEXT_IDS} if RETRIEVED_CONTEXTS in bindings else set()
            return frozenset({RELEVANCE_JUDGMENTS, EVIDENCE_SPANS, *named})
        return frozenset() if self._qrels is None else frozenset({RELEVANCE_JUDGMENTS})

    def _check_qrels(self) -> None:
        if self._qrels is None:
            return
        self._qrels.check_column(self._first_names, self._source.name)
        column = self._resolution.bindings.get(RELEVANCE_JUDGMENTS)
        if column is not None:
            raise SourceError(
                f"the column {column!r} of {self._source.name} and the file {self._qrels.name} both give relevance "
                "judgments; leave out one of them"
            )

    @cached_property
    def _companions(self) -> frozenset[str]:
        """The columns that passages bring along in the first rows: their ids and scores, if they are objects."""
        bound = self._resolution.bindings
        sources = {
            column: bound[column]
            for column, brought in COMPANIONS.items()
            if column in bound and not set(brought) - {None} <= bound.keys()
        }
        if not sources:
            return frozenset()
        # A source that cannot be read raises its error when the rows are read.
        with suppress(SourceError), closing(self._source.rows(_PASSAGE_ROWS)) as rows:
            contents = [row.content for row in islice(rows, _PASSAGE_ROWS) if not isinstance(row.content, Unreadable)]
            pairs = [(column, content.get(source)) for content in contents for column, source in sources.items()]
            return frozenset(name for column, value in pairs for name in find_companions(column, value))
        return frozenset()

    def _start(self) -> None:
        self._log = BadRowLog()
        self._rankings = RankingChecks()
        self._missing = MissingValues(self._needed_by, text_cells=self._source.text_cells)
        self._rows_read = 0
        if self._qrels is not None:
            self._qrels.start()
        self._seen = SeenColumns(self._options)
        self._seen.add(self._first_names)
        self._resolution = resolve_columns(self._first_names, self._options.column_map)
        self._warnings = dict.fromkeys(self._resolution.warnings)

    def _sample(self, raw: RawRow, converter: RowConverter, ids: RowIds) -> tuple[str, SampleRow]:
        content = raw.content
        if isinstance(content, Unreadable):
            problem = content.problem if self._redaction is None else self._redaction.message(content.problem)
            raise InvalidRowError(problem, hint=content.hint)
        if self._redaction is not None:
            content = self._redaction.row(content)
        row = converter.convert(content)
        if ids.column is None:
            row_id = ids.from_content(row.values)
        else:
            row_id = ids.from_value(content.get(ids.column), raw.number)
        if self._qrels is not None:
            spans = row.values.get(EVIDENCE_SPANS) or []
            row.values.update(self._qrels.judgments(content, row_id))
            if more := [span for span in row.values.get(EVIDENCE_SPANS) or () if span not in spans]:
                row.values[EVIDENCE_SPANS] = [*spans, *more]
        return row_id, row

    def _raise_for_missing_columns(self) -> None:
        """Read all rows: since there are none, or none is usable, this raises the error that says so."""
        for _ in self:
            pass

    def _raise_for_bad_rows(self) -> None:
        if not self._rows_read:
            raise SourceError(f"{self._source.name} has no rows")
        all_bad = self._log.count == self._rows_read
        hints = [] if all_bad else [SKIP_HINT]
        if not self._first_names:
            hints = list(self._source.hints)
        message = self._log.message(self._source.name, self._rows_read, hints)
        if self._log.count and self._stops_at_bad_rows:
            raise BadRowsError(message)
        if all_bad:
            raise SourceError(message)
        if self._qrels is not None:
            self._qrels.check_met(self._source.name)

    def _first_columns(self) -> tuple[str, ...]:
        seen = SeenColumns(self._options)
        found = False
        with closing(self._source.column_sets(self._options.limit)) as column_sets:
            for count, names in enumerate(column_sets, start=1):
                if seen.add(names) or count == 1:
                    found = self._has_all(seen.names)
                if found and count >= _FIRST_ROWS:
                    break
        return tuple(seen.names)

    def _has_all(self, names: Collection[str]) -> bool:
        configured = {*self._options.column_map, self._options.id_column or None} - {None}
        found = resolve_columns(names, self._options.column_map).bindings
        return configured <= set(names) and set(self._needed_by) <= {*found, *self._judged(found)}

    def _bind_new_columns(self, raw: Mapping[str, object], number: int) -> RowConverter | None:
        """Return a converter that includes the new columns of a row; None if none of them is meaningful."""
        before = self._resolution
        new = self._seen.add(raw)
        if not new:
            return None
        self._resolution = resolve_columns(self._seen.names, self._options.column_map)
        place = f"from {self._source.where(number)} on"
        self._warn(
            f"{column!r} is read from {source!r} {place}, and from {before.bindings[column]!r} before"
            for column, source in self._resolution.bindings.items()
            if before.bindings.get(column, source) != source
        )
        if self._id_column is None and self._options.id_column is None:
            late = [name for name in new if name.casefold() in ID_COLUMNS]
            self._warn(f"the ids in {name!r}, a column {place}, are not used: earlier rows have none" for name in late)
        self._warn(self._resolution.warnings)
        return self._converter()

    def _converter(self) -> RowConverter:
        rules = RowRules(
            resolution=self._resolution,
            id_column=self._id_column,
            needed_by=self._needed_by,
            empty_text=self._options.empty_text,
            missing_texts=frozenset(self._options.missing_texts),
            text_cells=self._source.text_cells,
            fills_keys=self._source.fills_keys,
            passage_separator=self._options.passage_separator,
        )
        return RowConverter(rules, self._missing)

    def _warn(self, sentences: Iterable[str]) -> None:
        self._warnings.update(dict.fromkeys(sentences))
