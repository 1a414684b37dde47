"""Keep rows that a run got wrong, and bring those that were kept before up to date."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa

from metric_core.errors import SourceError
from metric_core.evidence_spans import EvidenceSpan, PlacedSpan, SpanState
from metric_core.records import Sample
from tasks.kept_rows.conditions import Condition, Judged, read_conditions, read_judged
from tasks.kept_rows.kept_row import (
    Event,
    Evidence,
    Kept,
    KeptRow,
    Result,
    RowState,
    asked_columns,
    find_evidence,
    question_key,
)
from tasks.kept_rows.set_file import open_set, read_set, write_set
from tasks.rows.records import read_samples_table
from tasks.runs.finished_run import FinishedRun
from tasks.sources.anchoring.span_places import Chunk, SpanPlaces
from tasks.sources.chunk_file import digest_chunks, read_chunks
from tasks.sources.readers.bad_rows import InvalidRowError
from tasks.sources.redaction import Redaction

MOST = 100
"""Number of rows of a set that have not graduated or retired, from which on no more are kept."""
GRADUATES_AFTER = 3
"""Number of good rebuilds after which a row graduates."""
_HERE = (SpanState.CARRIED, SpanState.UNCERTAIN)
"""States of evidence that the index has, if perhaps in several places."""


@dataclass(frozen=True, slots=True)
class KeepRequest:
    """A run, and the set that takes rows of it.

    Args:
        run: Folder of the run.
        to: File of the set.
        where: Conditions of the rows that are kept; empty to bring the set up to date only.
        chunks: Address of the chunks of the index; None for those that the run names.
        redact: Redactor of the texts; None to keep them as they are.
    """

    run: Path
    to: Path
    where: Sequence[str] = ()
    chunks: str | None = None
    redact: str | None = None
    most: int = MOST
    graduates_after: int = GRADUATES_AFTER


@dataclass(slots=True)
class KeptSet:
    """The result: a set after a run.

    Args:
        new: Rows that were kept now.
        changes: Rows whose state has changed, with their state before.
        left_out: Number of rows that meet a condition and are not kept, because the set is full.
        index: Digest of the chunks of the index; None if they are not known.
    """

    rows: list[KeptRow]
    index: str | None
    new: list[KeptRow] = field(default_factory=list)
    changes: list[tuple[KeptRow, RowState]] = field(default_factory=list)
    left_out: int = 0

    @property
    def open(self) -> int:
        """The number of rows that have not graduated or retired."""
        return self.states[RowState.FAILING] + self.states[RowState.IMPROVING]

    @property
    def states(self) -> Counter[RowState]:
        """The number of rows in each state."""
        return Counter(row.kept.state for row in self.rows if row.kept is not None)


class _Index:
    """The chunks of the index, in which evidence is looked for."""

    def __init__(self, chunks: str | None, redaction: Redaction | None, spans: Iterable[EvidenceSpan]) -> None:
        self.digest: str | None = None
        self._documents: dict[str, str | None] = {}
        self._texts: set[str] = set()
        self._places: SpanPlaces | None = None
        if chunks is None:
            return
        self._places = SpanPlaces(spans)
        found = read_chunks(chunks, None if redaction is None else redaction.text)
        self._places.read(self._noting(found))
        self.digest = digest_chunks(self._texts)

    def place(self, span: EvidenceSpan) -> PlacedSpan:
        """Return evidence with its place."""
        return PlacedSpan(span, SpanState.UNSEEN) if self._places is None else self._places.place(span)

    def there(self, spans: Iterable[EvidenceSpan]) -> Collection[EvidenceSpan] | None:
        """Return those that the index has; None if its chunks are not known."""
        return None if self._places is None else {span for span in spans if self.place(span).state in _HERE}

    def find_loss(self, kept: Kept) -> str:
        """Return why the evidence of a row is gone; empty if it is not."""
        if self._places is None or not kept.evidence:
            return ""
        placed = [*map(self.place, kept.spans)]
        gone = [each for each in placed if each.state not in _HERE]
        if len(gone) < (1 if kept.needs_all else len(placed)):
            return ""
        edited = next((each.change for each in gone if each.change is not None), None)
        what = "its evidence is gone" if edited is None else f"its evidence was edited: {edited}"
        return what if len(gone) == len(placed) else f"{len(gone)} of {len(placed)} pieces of {what}"

    def describe(self, spans: Iterable[EvidenceSpan]) -> tuple[dict[str, object], ...]:
        """Return evidence with its document and the words beside it, by which it is found from now on."""
        return tuple(self._described(self.place(span)).to_json() for span in spans)

    def _described(self, placed: PlacedSpan) -> EvidenceSpan:
        documents = {self._documents[part.passage] for part in placed.parts}
        document = documents.pop() if len(documents) == 1 else None
        return placed.span if document is None else replace(placed.span, document=document)

    def _noting(self, chunks: Iterable[Chunk]) -> Iterator[Chunk]:
        for chunk in chunks:
            self._documents[chunk.id] = chunk.document
            if chunk.text.strip():
                self._texts.add(chunk.digest)
            yield chunk


def keep_rows(request: KeepRequest) -> KeptSet:
    """Bring a set up to date with a run, and keep the rows of the run that meet a condition.

    Raises:
        AssayError: Anything that the user can fix; the message says how.
    """
    run = FinishedRun(request.run)
    conditions = read_conditions(request.where, run)
    redaction = None if request.redact is None else Redaction(request.redact)
    judged = read_judged(run)
    met = {name: [each for each in conditions if each.is_met(row)] for name, row in judged.items()}
    with open_set(request.to):
        rows = read_set(request.to)
        asked = _read_asked(run, redaction, {row.key for row in rows}, {name for name, found in met.items() if found})
        evidence = {each.row_id: [*find_evidence(each)] for found in asked.values() for each in found}
        spans = {span for found in evidence.values() for each in found for span in each.spans}
        spans |= {span for row in rows if row.kept is not None for span in row.kept.spans}
        index = _Index(request.chunks or run.record.config.chunks, redaction, spans)
        update = _Update(run, request, index, judged, met, evidence)
        result = KeptSet([], index.digest)
        for row in rows:
            result.rows.append(row if row.kept is None else update.revise(row, row.kept, asked.get(row.key, ())))
            _note_change(result, row, result.rows[-1])
        there = {row.key for row in rows}
        new = [*filter(None, (update.new(found) for key, found in asked.items() if key not in there))]
        result.new = new[: max(0, request.most - result.open)]
        result.left_out = len(new) - len(result.new)
        result.rows += result.new
        write_set(request.to, result.rows)
    return result


def _note_change(result: KeptSet, before: KeptRow, now: KeptRow) -> None:
    if before.kept is not None and now.kept is not None and before.kept.state is not now.kept.state:
        result.changes.append((now, before.kept.state))


@dataclass(frozen=True, slots=True)
class _Update:
    """A change of rows by a run.

    Args:
        judged: Scores and diagnoses of its rows.
        met: Conditions that its rows meet.
        evidence: Possible evidence of its rows, the surest first.
    """

    run: FinishedRun
    request: KeepRequest
    index: _Index
    judged: Mapping[str, Judged]
    met: Mapping[str, Sequence[Condition]]
    evidence: Mapping[str, Sequence[Evidence]]

    def new(self, samples: Sequence[Sample]) -> KeptRow | None:
        """Return the row of a question that is kept; None if none of its samples meets a condition."""
        sample = next((each for each in samples if self.met[each.row_id]), None)
        if sample is None:
            return None
        conditions, row = self.met[sample.row_id], self.judged[sample.row_id]
        found = ((each.found_in(self.index.there(each.spans)), each.needs_all) for each in self.evidence[sample.row_id])
        spans, needs_all = next(((spans, needs_all) for spans, needs_all in found if spans), ((), False))
        kept = Kept(
            where=tuple(each.text for each in conditions),
            state=RowState.FAILING,
            evidence=self.index.describe(spans),
            needs_all=needs_all,
            response=sample.response,
            history=(self._event(Result.KEPT, ", ".join(dict.fromkeys(each.describe(row) for each in conditions))),),
        )
        return KeptRow(asked_columns(sample), self._with_evidence(kept))

    def revise(self, row: KeptRow, kept: Kept, samples: Sequence[Sample]) -> KeptRow:
        """Return a row of the set after the run, of which an older run changes nothing."""
        last = kept.history[-1]
        if self.run.started < last.at or self.run.run_id == last.run:
            return row
        more = [each.text for sample in samples for each in self.met[sample.row_id]]
        kept = self._with_evidence(kept.extend(where=tuple(dict.fromkeys((*kept.where, *more)))))
        if samples and kept.state is not RowState.RETIRED:
            kept = self._add(kept, *_result(kept, [self.judged[each.row_id] for each in samples]))
        return row.with_kept(kept)

    def _with_evidence(self, kept: Kept) -> Kept:
        """Return what is known of a row by its evidence in the index."""
        lost = self.index.find_loss(kept)
        is_retired = kept.state is RowState.RETIRED
        if lost:
            return kept if is_retired else self._add(kept, Result.GONE, lost)
        kept = kept.extend(evidence=self.index.describe(kept.spans))
        if is_retired and self.index.digest is not None:
            return self._add(kept, Result.BACK, "its evidence is in the index again")
        return kept

    def _add(self, kept: Kept, result: Result, why: str) -> Kept:
        return kept.add(self._event(result, why), self.request.graduates_after)

    def _event(self, result: Result, why: str) -> Event:
        return Event(run=self.run.run_id, at=self.run.started, index=self.index.digest, result=result, why=why)


def _result(kept: Kept, rows: Sequence[Judged]) -> tuple[Result, str]:
    """Return what a run says of a row that was kept, and why."""
    conditions = [*map(Condition, kept.where)]
    found = [(each, row, each.is_bad(row)) for each in conditions for row in rows]
    if bad := [each.describe(row) for each, row, is_bad in found if is_bad]:
        return Result.BAD, ", ".join(dict.fromkeys(bad))
    unknown = [each.text for each, _, is_bad in found if is_bad is None]
    return (
        (Result.UNKNOWN, f"the run does not say: {', '.join(dict.fromkeys(unknown))}") if unknown else (Result.GOOD, "")
    )


def _read_asked(
    run: FinishedRun, redaction: Redaction | None, keys: Collection[str], met: Collection[str]
) -> dict[str, list[Sample]]:
    """Return the rows of a run that a set has or that may be kept, by their questions."""
    found: dict[str, list[Sample]] = {}
    for shard in run.samples():
        for sample in read_samples_table(shard if redaction is None else _redacted(shard, redaction)):
            key = question_key(sample.earlier_turns, sample.user_input)
            if (sample.user_input or "").strip() and (key in keys or sample.row_id in met):
                found.setdefault(key, []).append(sample)
    return found


def _redacted(shard: pa.Table, redaction: Redaction) -> pa.Table:
    """Return samples with all texts redacted but their ids, by which their scores are found."""
    try:
        rows = [{**redaction.row(row), "row_id": row["row_id"]} for row in shard.to_pylist()]
    except InvalidRowError as invalid:
        raise SourceError(f"a row of the run cannot be kept: {invalid.problem}") from None
    return pa.Table.from_pylist(rows, schema=shard.schema)
