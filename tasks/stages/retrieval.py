"""Fetch the contexts of a question set from the index, before the stage `samples`.

The rows are written to a file beside the stage tables, which is then evaluated like any other source. Each run
refetches the contexts, because it evaluates the index as it is now. The last fetch is stored for dry runs, under a
digest of the user questions and of the options of the retriever.
"""

import hashlib
import json
import posixpath
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from prefect import Task
from prefect.cache_policies import NO_CACHE
from pydantic import BaseModel, ValidationError

from metric_core import columns as c
from metric_core.errors import SourceError
from metric_core.schemas import SAMPLES
from tasks.options.narrow import narrow
from tasks.options.option import implementation_fields
from tasks.options.retriever_options import RetrieverOptions
from tasks.options.source_options import DataOptions
from tasks.record.run_record import BadRowNote, RetrievalRecord
from tasks.rows.table_files import SOURCES, atomic_fs_write, filesystem, touch
from tasks.sources import SourceOptions, read_samples
from tasks.sources.in_memory import save_rows
from tasks.sources.readers.bad_rows import MOST_DETAILS
from tasks.sources.redaction import Redaction
from tasks.sources.retrievers.fetcher import FetchedContexts, Fetcher
from tasks.stages.samples import SamplesResult, note_bad_row

_SHOWN = 5
_ROWS_AT_ONCE = 1000
_OPTIONAL = frozenset(SAMPLES.optional)


class RetrievalSettings(DataOptions):
    """Settings of the step that fetches contexts."""

    only_options = False

    retriever: RetrieverOptions


class Retrieval(BaseModel, frozen=True, extra="forbid"):
    """The result of fetching contexts.

    Args:
        source: File with the rows to evaluate.
        questions: Location of the question set.
        rows_read: Number of rows in the question set.
        bad_rows: Rows that were left out; a long list is cut.
        bad_row_count: Total number of rows that were left out.
        without_passages: Number of rows for which the index found nothing; they are evaluated.
        fetched: Time of the fetch.
        seconds: Duration of the fetch.
    """

    source: str
    questions: str
    index: str
    rows_read: int
    bad_rows: tuple[BadRowNote, ...]
    bad_row_count: int
    without_passages: int
    fetched: datetime
    seconds: float

    def to_record(self) -> RetrievalRecord:
        """Return what the record of the run says of it, without the bad rows, which have a separate entry."""
        return RetrievalRecord.model_validate(self.model_dump(mode="json", exclude={"bad_rows", "source"}))

    def add_to(self, read: SamplesResult) -> SamplesResult:
        """Return the result of reading the rows, with the bad rows of the question set added."""
        return replace(
            read,
            rows_read=self.rows_read,
            bad_rows=(*self.bad_rows, *read.bad_rows),
            bad_row_count=self.bad_row_count + read.bad_row_count,
        )


@dataclass(frozen=True, slots=True)
class UnfetchedContexts:
    """The size of a fetch that has not been done.

    Args:
        rows: Number of user questions to fetch contexts for.
        bad_row_count: Number of bad rows in the question set.
    """

    index: str
    rows: int
    bad_row_count: int


class _Questions:
    """The rows of a question set, and the name of the record of their fetched contexts."""

    def __init__(self, settings: RetrievalSettings, index: str) -> None:
        # An empty user question cannot be sent to an index, even if the metrics accept empty texts.
        options = narrow(settings, SourceOptions, batch_rows=_ROWS_AT_ONCE, empty_text="bad")
        self.reader = read_samples(settings.source or "", options, {"retriever": (c.USER_INPUT,)})
        retriever = settings.retriever.model_dump(mode="json", exclude=implementation_fields(RetrieverOptions))
        self._digest = hashlib.sha256(json.dumps([index, retriever], sort_keys=True).encode())

    def batches(self) -> Iterator[list[dict[str, Any]]]:
        """Yield the rows in batches."""
        for table in self.reader:
            batch = table.to_pylist()
            known = [
                {name: row[name] for name in row if row[name] is not None or name not in _OPTIONAL} for row in batch
            ]
            self._digest.update(json.dumps(known).encode())
            yield batch

    @property
    def record(self) -> str:
        """The name of the record; final once all rows have been read."""
        return f"{self._digest.hexdigest()[:16]}.fetched.json"


def fetch_contexts(settings: RetrievalSettings, tables: str) -> Retrieval:
    """Fetch the contexts of a question set.

    Args:
        tables: Root of the table store, beside which the rows are written.

    Raises:
        SourceError: The question set cannot be read, or the index fails for a row and bad rows stop the run.
        AssayError: The index cannot be used at all.
    """
    with Fetcher(settings.retriever) as fetcher:
        return _fetch_contexts(fetcher, settings, tables)


def _fetch_contexts(fetcher: Fetcher, settings: RetrievalSettings, tables: str) -> Retrieval:
    start = time.monotonic()
    questions = _Questions(settings, fetcher.identity)
    rows: list[dict[str, Any]] = []
    problems: list[BadRowNote] = []
    without_passages = 0
    redaction = None if settings.redact is None else Redaction(settings.redact)
    for batch in questions.batches():
        for row, fetched in zip(batch, fetcher.fetch([row[c.USER_INPUT] for row in batch]), strict=True):
            if fetched.problem is not None:
                problem = fetched.problem if redaction is None else redaction.message(fetched.problem)
                number = int(row["row_number"])
                problems.append(BadRowNote(number=number, column=c.RETRIEVED_CONTEXTS, problem=problem))
                continue
            without_passages += not fetched.passages
            rows.append(_row(row, fetched))
    source = save_rows(rows, tables, settings.redact)
    _check(rows, problems, settings, fetcher.identity, source)
    reader = questions.reader
    bad = map(note_bad_row, reader.bad_rows)
    result = Retrieval(
        source=source,
        questions=settings.source or "",
        index=fetcher.identity,
        rows_read=reader.rows_read,
        bad_rows=tuple((*bad, *problems)[:MOST_DETAILS]),
        bad_row_count=reader.bad_row_count + len(problems),
        without_passages=without_passages,
        fetched=datetime.now(UTC).replace(microsecond=0),
        seconds=round(time.monotonic() - start, 3),
    )
    fs, folder = filesystem(posixpath.join(tables, SOURCES))
    atomic_fs_write(fs, posixpath.join(folder, questions.record), result.model_dump_json().encode())
    return result


def find_fetched_contexts(settings: RetrievalSettings, tables: str) -> Retrieval | UnfetchedContexts:
    """Return the contexts that any run fetched last for these user questions, without querying the index.

    Args:
        tables: Root of the table store.

    Returns:
        The last result; without one, the size of the fetch that a run would do.

    Raises:
        SourceError: The question set cannot be read.
        AssayError: The index or its key does not exist.
    """
    with Fetcher(settings.retriever) as fetcher:
        index = fetcher.identity
    questions = _Questions(settings, index)
    rows = sum(map(len, questions.batches()))
    fs, folder = filesystem(posixpath.join(tables, SOURCES))
    try:
        record = posixpath.join(folder, questions.record)
        result = Retrieval.model_validate_json(fs.cat_file(record))
        if fs.exists(rows_path := filesystem(result.source)[1]):
            touch(fs, record)
            touch(fs, rows_path)
            return result
    except (FileNotFoundError, ValidationError):
        pass
    return UnfetchedContexts(index=index, rows=rows, bad_row_count=questions.reader.bad_row_count)


retrieval = Task(fetch_contexts, name="retrieval", cache_policy=NO_CACHE, persist_result=False)


def _check(
    rows: Sequence[Any], problems: Sequence[BadRowNote], settings: RetrievalSettings, index: str, source: str
) -> None:
    if not problems or (rows and settings.on_bad_row == "skip"):
        return
    lines = "".join(f"\n  row {note.number}: {note.problem}" for note in problems[:_SHOWN])
    more = f"\n  and {len(problems) - _SHOWN} more" if len(problems) > _SHOWN else ""
    advice = f"; --on-bad-row skip leaves them out; the contexts of the other rows are in {source}" if rows else ""
    raise SourceError(
        f"the index {index} gave nothing usable for {len(problems)} of {len(rows) + len(problems)} rows of "
        f"{settings.source}{advice}:{lines}{more}"
    )


def _row(row: Mapping[str, Any], fetched: FetchedContexts) -> dict[str, Any]:
    """Return the row of a sample under the standard column names, without missing values."""
    replaced: dict[str, Any] = {c.RETRIEVED_CONTEXTS: [passage.text for passage in fetched.passages]}
    ids = [passage.id for passage in fetched.passages]
    replaced[c.RETRIEVED_CONTEXT_IDS] = ids if all(name is not None for name in ids) else None
    if fetched.response is not None:
        replaced[c.RESPONSE] = fetched.response
    columns = {"row_id": row["row_id"], **{name: row[name] for name in c.COLUMNS}, **replaced}
    if columns[c.RUBRICS] is not None:
        columns[c.RUBRICS] = {rubric["key"]: rubric["description"] for rubric in columns[c.RUBRICS]}
    extras = json.loads(row["extras"]) if row["extras"] else {}
    return {name: value for name, value in {**extras, **columns}.items() if value is not None}
