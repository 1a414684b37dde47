"""Say of each retrieval of an answer what it found, and which one lost what the answer needed."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from metric_core.columns import HOPS
from metric_core.diagnosis.overlap import trigrams
from metric_core.evidence_spans import SpanPart, SpanState
from metric_core.records import Sample

_NEARLY_ALL = 0.8
"""Least share of a span of evidence that is held if it is found: other texts may have the words of a part of it."""


@dataclass(frozen=True, slots=True)
class Fact:
    """A fact that the answer needs.

    Args:
        passages: Places of the retrieved passages that state it, from 0.
        is_found: True if the passages of the row state it, also if it is not known which of them.
    """

    text: str
    passages: frozenset[int]
    is_found: bool


@dataclass(frozen=True, slots=True)
class Hop:
    """A retrieval.

    Args:
        query: Its query; None if it was not recorded.
        passages: Places of what it found among the passages of the row, from 0.
        dropped: Number of passages that a reranker dropped.
        useful: Number of its passages that state a needed fact.
        new: Needed facts that no retrieval before it found.
        repeated: Number of its passages that a retrieval before it found.
        lost: Needed facts that no retrieval found, and that its query is the nearest to.
    """

    query: str | None
    passages: tuple[int, ...]
    dropped: int = 0
    useful: int = 0
    new: tuple[str, ...] = ()
    repeated: int = 0
    lost: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RowHops:
    """The retrievals of a row, in order.

    Args:
        needed: Number of needed facts of which it is known where they are; 0 if none is known.
        unasked: Needed facts that no retrieval found and that no query is about.
    """

    row_id: str
    hops: tuple[Hop, ...]
    needed: int = 0
    unasked: tuple[str, ...] = field(default=())

    @property
    def first_lost(self) -> int | None:
        """The number, from 1, of the first retrieval that lost a needed fact; None if none did."""
        return next((number for number, hop in enumerate(self.hops, start=1) if hop.lost), None)


def read_hops(sample: Sample) -> list[Hop]:
    """Return the retrievals that a row records; none unless there are several, in the form of the column.

    >>> found = read_hops(Sample(retrieved_contexts=("a", "b"), extras={"hops": [
    ...     {"query": "When?", "passages": [0]}, {"passages": [0, 1, None]}]}))
    >>> [(hop.query, hop.passages, hop.dropped) for hop in found]
    [('When?', (0,), 0), (None, (0, 1), 1)]
    """
    recorded = (sample.extras or {}).get(HOPS)
    size = len(sample.retrieved_contexts or sample.retrieved_context_ids or ())
    hops = [*filter(None, (_hop(each, size) for each in recorded))] if isinstance(recorded, list) else []
    return hops if len(hops) > 1 else []


def _hop(recorded: Any, size: int) -> Hop | None:
    places = recorded.get("passages") if isinstance(recorded, Mapping) else None
    if not isinstance(places, list):
        return None
    query = recorded.get("query")
    there = tuple(place for place in places if isinstance(place, int) and 0 <= place < size)
    return Hop(query if isinstance(query, str) else None, there, places.count(None))


def find_facts(sample: Sample, claims: Mapping[str, str], verdicts: Mapping[tuple[str, str], int]) -> list[Fact]:
    """Return the facts that an answer needs: the evidence of the row, or else the claims of its reference.

    Facts are left out of which it is not known whether the passages state them.

    Args:
        claims: Texts of the claims of the reference, or of the key points, by claim.
        verdicts: Answers of the judge on whether a passage (`context:0`), or all (`contexts`), support a claim.
    """
    of_points = (each for point in sample.key_points or () for each in point.evidence)
    spans = [each for each in (*(sample.evidence_spans or ()), *of_points) if each.span.grade > 0]
    if spans:
        ids = sample.retrieved_context_ids or ()
        known = (span for span in spans if span.state is not SpanState.UNCERTAIN)
        held = ((span.span.text, _find_holders(span.parts)) for span in known)
        placed = ((text, frozenset(place for place, name in enumerate(ids) if name in names)) for text, names in held)
        return [Fact(text, places, is_found=bool(places)) for text, places in placed]
    facts = []
    for claim, text in claims.items():
        single = {
            place: verdicts.get((claim, f"context:{place}")) for place in range(len(sample.retrieved_contexts or ()))
        }
        stated = frozenset(place for place, verdict in single.items() if verdict == 1)
        together = verdicts.get((claim, "contexts"))
        if stated or together is not None or (single and None not in single.values()):
            facts.append(Fact(text, stated, is_found=bool(stated) or together == 1))
    return facts


def _find_holders(parts: Sequence[SpanPart]) -> set[str]:
    """Return the passages that hold a span, or parts of one that the borders of chunks cut."""
    if whole := {part.passage for part in parts if part.end - part.start >= _NEARLY_ALL}:
        return whole
    end = held = 0.0
    for part in sorted(parts, key=lambda part: part.start):
        held += max(0.0, part.end - max(part.start, end))
        end = max(end, part.end)
    return {part.passage for part in parts} if held >= _NEARLY_ALL else set()


def describe_hops(row_id: str, hops: Sequence[Hop], facts: Sequence[Fact]) -> RowHops:
    """Return what each retrieval of a row found, and what it lost.

    A fact that none found is lost by the one whose query is nearest to it, by their character trigrams.
    """
    lost: dict[int | None, list[str]] = {}
    for fact in facts:
        if not fact.is_found:
            lost.setdefault(_find_nearest(fact.text, [hop.query for hop in hops]), []).append(fact.text)
    seen: set[int] = set()
    found: list[Hop] = []
    for number, hop in enumerate(hops):
        there = set(hop.passages)
        found.append(
            Hop(
                hop.query,
                hop.passages,
                hop.dropped,
                useful=len({place for place in there if any(place in fact.passages for fact in facts)}),
                new=tuple(fact.text for fact in facts if fact.passages & there and not fact.passages & seen),
                repeated=len(there & seen),
                lost=tuple(lost.get(number, ())),
            )
        )
        seen |= there
    return RowHops(row_id, tuple(found), len(facts), tuple(lost.get(None, ())))


def _find_nearest(fact: str, queries: Iterable[str | None]) -> int | None:
    """Return the place of the query that shares most with a fact, the first of equals; None if none shares anything."""
    of_fact = trigrams(fact)
    shares = []
    for query in queries:
        of_query = trigrams(query or "")
        shares.append(2 * len(of_fact & of_query) / (len(of_fact) + len(of_query)) if query else 0.0)
    best = max(shares, default=0.0)
    return shares.index(best) if best > 0 else None
