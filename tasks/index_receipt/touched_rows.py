"""Find the rows of a question set or of a run whose scores a rebuilt index must be expected to move."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

from metric_core.columns import (
    EVIDENCE_SPANS,
    POINT_EVIDENCE,
    RELEVANCE_JUDGMENTS,
    RETRIEVED_CONTEXTS,
)
from metric_core.evidence_spans import EvidenceSpan, SpanState
from tasks.index_receipt.chunk_marks import digest, text_digest
from tasks.index_receipt.index_changes import IndexChanges, names_of
from tasks.sources.anchoring.span_places import SpanPlaces

COLUMNS = ("row_id", RETRIEVED_CONTEXTS, RELEVANCE_JUDGMENTS, EVIDENCE_SPANS, POINT_EVIDENCE)
"""Columns of the samples that are read."""


@dataclass(frozen=True, slots=True)
class TouchedRows:
    """The rows that a rebuilt index touches.

    Args:
        rows: Row -> what of it is gone or edited, or stands in another place.
        of: Number of rows.
    """

    rows: Mapping[str, tuple[str, ...]]
    of: int

    @property
    def sentence(self) -> str:
        """The number of rows whose scores must be expected to move, and why."""
        if not self.rows:
            return f"none of the {self.of:,} rows is touched: scores that move have another cause"
        counts = Counter(reason for reasons in self.rows.values() for reason in reasons)
        reasons = ", ".join(f"{reason} ({count:,})" for reason, count in counts.most_common())
        return f"the scores of {len(self.rows):,} of {self.of:,} rows must be expected to move: {reasons}"


@dataclass(frozen=True)
class _Texts:
    """The chunks of the old index, by their texts and ids, and what became of them."""

    changes: IndexChanges

    @cached_property
    def _counts(self) -> tuple[tuple[np.ndarray, np.ndarray], ...]:
        each = (self.changes.old, self.changes.new)
        return tuple(np.unique(receipt.chunks["text"], return_counts=True) for receipt in each)

    @cached_property
    def _ids(self) -> tuple[tuple[np.ndarray, np.ndarray], ...]:
        found = []
        for receipt in (self.changes.old, self.changes.new):
            order = np.argsort(receipt.chunks["id"], kind="stable")
            found.append((receipt.chunks["id"][order], receipt.chunks["text"][order]))
        return tuple(found)

    def of_text(self, text: str) -> str:
        """Return what became of a retrieved passage; empty if nothing did."""
        before, now = (_look_up(*counts, text_digest(text)) for counts in self._counts)
        if before and not now:
            return "a retrieved passage is gone or edited"
        return "a retrieved passage is in the index more often" if before and now > before else ""

    def of_id(self, name: str) -> str:
        """Return what became of a judged passage; empty if nothing did."""
        before, now = (_look_up(*texts, digest(name.encode("utf-8", "surrogatepass"))) for texts in self._ids)
        return "a judged passage is gone or edited" if before and before != now else ""

    @cached_property
    def documents(self) -> frozenset[str]:
        """The documents whose text is gone or edited."""
        edited = self.changes.both[self.changes.edited | self.changes.unordered]
        return frozenset(names_of(self.changes.old.names, self.changes.lost)) | {
            self.changes.new.names[each] for each in edited
        }

    @cached_property
    def same(self) -> frozenset[str]:
        """The documents whose text is the same."""
        return frozenset(self.changes.new.names[each] for each in self.changes.both[self.changes.same])


def _look_up(keys: np.ndarray, values: np.ndarray, key: int) -> int:
    """Return the value of a key among sorted ones; 0 if it is not there."""
    place = int(np.searchsorted(keys, np.uint64(key)))
    return int(values[place]) if place < len(keys) and int(keys[place]) == key else 0


def evidence_places(tables: Iterable[pa.Table]) -> SpanPlaces:
    """Return the places of the evidence of samples, which have to read the chunks of the new index."""
    spans = {span: None for row in _rows(tables) for _, span in _spans(row)}
    return SpanPlaces(spans, is_complete=True)


def find_touched(
    changes: IndexChanges,
    tables: Iterable[pa.Table],
    places: SpanPlaces | None,
    *,
    has_other_vectors: bool = False,
) -> TouchedRows:
    """Return the rows whose scores must be expected to move.

    Args:
        tables: Tables of samples.
        places: Places of their evidence in the chunks of the new index; None if only its receipt is known, so that
            evidence counts as touched if its document is gone or edited.
        has_other_vectors: True if another model embeds the chunks, so that any row may retrieve others.
    """
    texts = _Texts(changes)
    found: dict[str, tuple[str, ...]] = {}
    count = 0
    for row in _rows(tables):
        count += 1
        reasons = [*map(texts.of_text, row[RETRIEVED_CONTEXTS] or ())]
        reasons += [texts.of_id(each["id"]) for each in row[RELEVANCE_JUDGMENTS] or ()]
        reasons += [f"{what} is gone or edited" for what, span in _spans(row) if _is_touched(span, texts, places)]
        reasons += ["vectors are of another model"] if has_other_vectors else []
        if named := tuple(dict.fromkeys(filter(None, reasons))):
            found[row["row_id"]] = named
    return TouchedRows(found, count)


def _rows(tables: Iterable[pa.Table]) -> Iterator[dict[str, Any]]:
    for table in tables:
        there = [name for name in COLUMNS if name in table.column_names]
        yield from ({**dict.fromkeys(COLUMNS), **row} for row in table.select(there).to_pylist())


def _spans(row: Mapping[str, Any]) -> Iterator[tuple[str, EvidenceSpan]]:
    yield from (("its evidence", EvidenceSpan.from_json(each)) for each in row[EVIDENCE_SPANS] or ())
    of_points: Sequence[Any] = row[POINT_EVIDENCE] or ()
    every = chain.from_iterable(each or () for each in of_points)
    yield from (("the evidence of a key point", EvidenceSpan.from_json(each)) for each in every)


def _is_touched(span: EvidenceSpan, texts: _Texts, places: SpanPlaces | None) -> bool:
    """Return whether evidence is gone or edited. Where its document has not changed, it was not there before either."""
    if places is None:
        return span.document in texts.documents
    return places.place(span).state is not SpanState.CARRIED and span.document not in texts.same
