"""Read traces from files of several forms as the rows of one source."""

import json
import re
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from functools import cached_property
from typing import Any

from metric_core.errors import SourceError
from tasks.options.source_options import SourceOptions
from tasks.options.trace_options import TraceSettings
from tasks.runtime.wording import quote_names
from tasks.sources.readers.arrow_files import ArrowFileSource
from tasks.sources.readers.bad_rows import InvalidRowError
from tasks.sources.readers.delimited import DelimitedSource
from tasks.sources.readers.formats import Opener
from tasks.sources.readers.installed_reader import InstalledReader
from tasks.sources.readers.json_document import open_json
from tasks.sources.readers.json_lines import JsonLinesSource
from tasks.sources.readers.parquet import ParquetSource
from tasks.sources.readers.protocol import RawRow, RowSource, Unreadable
from tasks.sources.readers.source_files import DataFile, refuse_utf16
from tasks.sources.traces.assembly import FAILED, Trace, assemble
from tasks.sources.traces.protobuf import ZSTD_MARK, decode_messages
from tasks.sources.traces.record_forms import Spans, records_of
from tasks.sources.traces.selection import select

_TABLES: dict[str, Opener] = {
    ".csv": DelimitedSource,
    ".tsv": DelimitedSource,
    ".parquet": ParquetSource,
    ".arrow": ArrowFileSource,
    ".feather": ArrowFileSource,
}
TRACE_EXTENSIONS = (".jsonl", ".ndjson", ".json", *_TABLES, ".pb", ".binpb", ".bin", ".otlp", ".proto")
"""Extensions of the files that are read of a folder. A single file may have any name."""

_FIRST_BYTES = 4096
_SIZE_BYTES = 4
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_CONTROL = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f]")
"""Bytes that JSON does not have, and that all messages in protobuf have as the tags of their fields."""
_BATCH_ROWS = 100


class TraceSource(RowSource):
    """The traces in files, as rows in the order of their starts. Traces that cannot be read are unreadable rows.

    All spans are held in memory, because those of a trace may be in several files.

    Args:
        files: Files in order, at least one.
        name: Name of the source in messages.
        root: Common prefix of the names of the files, left out in the places of records.
        warnings: Warnings about the files as a whole.
    """

    unit = "trace"
    skips_bad_rows = True

    def __init__(self, files: Sequence[DataFile], name: str, root: str, warnings: Sequence[str] = ()) -> None:
        super().__init__(name)
        self._files = files
        self._root = root
        self._file_warnings = tuple(warnings)
        self._settings = TraceSettings()

    def configure(self, options: SourceOptions) -> None:
        """Take the options of reading, and which traces to select."""
        self._settings = options.traces or TraceSettings()

    @property
    def warnings(self) -> tuple[str, ...]:
        """Sentences about what was left out, and why."""
        return (*self._file_warnings, *self._read[1])

    def rows(self, batch_rows: int) -> Generator[RawRow, None, None]:  # noqa: ARG002 - traces are read as a whole
        """Yield the rows of the traces, and those that cannot be read."""
        yield from self._read[0]

    @cached_property
    def _read(self) -> tuple[list[RawRow], list[str]]:
        spans, damaged = self._spans()
        traces = [assemble(trace_id, found) for trace_id, found in spans.traces.items()]
        traces.sort(key=lambda trace: (trace.start, trace.trace_id))
        chosen, notes = select(traces, self._settings)
        if notes and not any(trace.rows for trace in chosen):
            raise SourceError(f"{self.name}: none of {len(traces):,} traces is selected: {'; '.join(notes)}")
        chosen.sort(key=lambda trace: (trace.start, trace.trace_id))
        contents: list[tuple[Any, str]] = []
        for trace in chosen:
            parts = [*trace.rows, *map(Unreadable, trace.problems)]
            contents += [(part, f"trace {trace.trace_id}") for part in parts]
        rows = [RawRow(number, part, place) for number, (part, place) in enumerate([*contents, *damaged], start=1)]
        return rows, [*_count_problems(damaged, chosen, spans.scores), *notes]

    def _spans(self) -> tuple[Spans, list[tuple[Unreadable, str]]]:
        """Return the spans of all files, and the records that cannot be read with their places."""
        spans = Spans()
        damaged: list[tuple[Unreadable, str]] = []
        for file in self._files:
            name = file.name.removeprefix(self._root)
            for record, place in self._records(file):
                problem = record if isinstance(record, Unreadable) else spans.add(record)
                if problem is not None:
                    damaged.append((problem, ", ".join(filter(None, (name, place)))))
        spans.finish()
        return spans, damaged

    def _records(self, file: DataFile) -> Iterator[tuple[Any, str]]:
        if file.extension in _TABLES:
            yield from self._table(_TABLES[file.extension](file))
            return
        if _has_compressed_messages(file):
            yield from self._protobuf(replace(file, is_compressed=False))
            return
        with file.open() as opened:
            first = opened.read(_FIRST_BYTES)
        if not first.strip():
            return
        if first.startswith(_UTF16_MARKS):
            refuse_utf16(first, file.name)
        if _CONTROL.search(first) is not None:
            yield from self._protobuf(file)
            return
        source = JsonLinesSource(file) if file.extension in (".jsonl", ".ndjson") else open_json(file)
        yield from self._table(source) if isinstance(source, JsonLinesSource) else self._document(file)

    def _table(self, source: RowSource) -> Iterator[tuple[Any, str]]:
        with closing(source.rows(_BATCH_ROWS)) as rows:
            for row in rows:
                yield row.content, row.detail or source.where(row.number)

    def _document(self, file: DataFile) -> Iterator[tuple[Any, str]]:
        with file.open() as opened:
            content = opened.read()
        try:
            document = json.loads(content)
        except (ValueError, RecursionError) as error:
            yield Unreadable(f"invalid JSON: {error}"), ""
            return
        records = records_of(document)
        for number, record in enumerate(records, start=1):
            yield record, f"record {number}" if len(records) > 1 else ""

    def _protobuf(self, file: DataFile) -> Iterator[tuple[Any, str]]:
        with file.open() as opened:
            content = opened.read()
        try:
            for number, message in enumerate(decode_messages(content, file.name), start=1):
                yield message, f"message {number}"
        except InvalidRowError as invalid:
            yield Unreadable(invalid.problem), ""


def _has_compressed_messages(file: DataFile) -> bool:
    """Return whether each message of a file is compressed separately, after its size, as the collector writes .zst."""
    if file.compression != "zstd":
        return False
    with replace(file, is_compressed=False).open() as opened:
        return opened.read(_SIZE_BYTES + len(ZSTD_MARK)).endswith(ZSTD_MARK)


def _count_problems(damaged: Sequence[tuple[Unreadable, str]], traces: Sequence[Trace], scores: int) -> Iterator[str]:
    """Yield sentences about what is not among the rows, or is read only once."""
    if damaged:
        yield f"{_count(len(damaged), 'record')} cannot be read and {'is' if len(damaged) == 1 else 'are'} left out"
    for problem, count in Counter(problem for trace in traces for problem in trace.problems[: not trace.rows]).items():
        yield f"{_count(count, 'trace')} left out: {problem}"
    if (questions := sum(len(trace.problems) for trace in traces if trace.rows)) > 0:
        yield f"{_count(questions, 'question')} of traces with other answers left out: {FAILED}"
    if (aside := sum(not trace.rows and not trace.problems for trace in traces)) > 0:
        verb = "is" if aside == 1 else "are"
        yield f"{_count(aside, 'trace')} of evaluators, prompts, indexing and the like alone {verb} not read"
    if (duplicates := sum(trace.duplicates for trace in traces)) > 0:
        yield f"{_count(duplicates, 'duplicate span')} {'is' if duplicates == 1 else 'are'} read once"
    if (clashes := sum(trace.clashes for trace in traces)) > 0:
        yield (
            f"{_count(clashes, 'span')} {'has' if clashes == 1 else 'have'} the id of another span of the trace but "
            "other content: all are read, and what is below them counts as a part of the first"
        )
    if unread := Counter(name for trace in traces for name in trace.unread_retrievers):
        names = quote_names(unread, most=3)
        yield f"{_count(unread.total(), 'retriever')} whose output has no passages that can be read: {names}"
    if (backwards := sum(trace.backwards for trace in traces)) > 0:
        yield f"{_count(backwards, 'span')} ended before {'it' if backwards == 1 else 'they'} began: without a latency"
    if scores:
        yield f"{_count(scores, 'score')} of Langfuse {'is' if scores == 1 else 'are'} not read"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


TRACES = InstalledReader(TraceSource, TRACE_EXTENSIONS)
