"""Retrievals of a row: their finds, and which one of them lost a needed fact."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from metric_core.evidence_spans import EvidenceSpan, PlacedSpan, SpanPart, SpanState
from metric_core.records import KeyPoint, Sample
from tasks.hops.row_hops import Fact, Hop, describe_hops, find_facts, read_hops

PASSAGES = ("The Wren is repaired in Leipzig.", "Ana Bruns leads Leipzig.", "Lunch is free.")


def sample(**more: Any) -> Sample:
    return Sample(retrieved_contexts=PASSAGES, retrieved_context_ids=("a", "b", "c"), **more)


@pytest.mark.parametrize(
    "recorded",
    [
        None,
        "hops",
        [],
        [{"query": "When?", "passages": [0]}],
        [{"query": "When?", "passages": [0]}, {"query": "Where?"}],
        [{"passages": [0]}, 3],
    ],
)
def test_rows_without_several_retrievals_have_no_hops(recorded: Any) -> None:
    assert read_hops(sample(extras={"hops": recorded})) == []


def test_places_that_are_no_passages_do_not_count() -> None:
    [first, _] = read_hops(sample(extras={"hops": [{"query": 3, "passages": [0, 7, "x", None]}, {"passages": []}]}))
    assert first == Hop(None, (0,), dropped=1)


def hops_of(*hops: tuple[str | None, tuple[int, ...]]) -> list[Hop]:
    return [Hop(query, passages) for query, passages in hops]


BRIDGE, LAST = "The Wren is repaired in Leipzig.", "The workshop of Leipzig is led by Ana Bruns."


def facts(bridge: Sequence[int], last: Sequence[int]) -> list[Fact]:
    return [Fact(text, frozenset(found), bool(found)) for text, found in ((BRIDGE, bridge), (LAST, last))]


WHERE, WHO = "Where is the Wren repaired?", "Who leads the workshop of Leipzig?"


@pytest.mark.parametrize(
    ("bridge", "last", "first_lost"),
    [([0], [1], None), ([], [1], 1), ([0], [], 2), ([], [], 1)],
)
def test_the_first_retrieval_that_lost_a_fact_is_named(
    bridge: Sequence[int], last: Sequence[int], first_lost: int | None
) -> None:
    row = describe_hops("r", hops_of((WHERE, (0, 2)), (WHO, (1, 2))), facts(bridge, last))
    assert row.first_lost == first_lost


def test_counts_of_each_retrieval() -> None:
    row = describe_hops("r", hops_of((WHERE, (0, 2)), (WHO, (0, 1, 1, 2))), facts([0], [1]))
    first, second = row.hops
    assert (first.useful, first.new, first.repeated) == (1, (BRIDGE,), 0)
    assert (second.useful, second.new, second.repeated) == (2, (LAST,), 2)


def test_a_fact_that_a_later_retrieval_found_is_not_lost() -> None:
    row = describe_hops("r", hops_of((WHERE, (2,)), (WHERE, (0,)), (WHO, (1,))), facts([0], [1]))
    assert row.first_lost is None
    assert [hop.new for hop in row.hops] == [(), (BRIDGE,), (LAST,)]


def test_without_a_query_about_it_no_retrieval_is_blamed() -> None:
    row = describe_hops("r", hops_of((None, (0,)), (None, (2,))), facts([0], []))
    assert (row.first_lost, row.unasked) == (None, (LAST,))


def place(text: str, *parts: tuple[str, float, float], state: SpanState = SpanState.CARRIED) -> PlacedSpan:
    return PlacedSpan(EvidenceSpan(text), state, tuple(SpanPart(name, start, end, 0.5) for name, start, end in parts))


def test_facts_are_the_evidence_of_the_row() -> None:
    spans = (
        place("whole", ("a", 0.0, 1.0), ("c", 0.0, 0.5)),
        place("cut", ("b", 0.0, 0.5), ("c", 0.5, 1.0)),
        place("a part", ("a", 0.0, 0.6)),
        place("gone", state=SpanState.LOST),
        place("twice", state=SpanState.UNCERTAIN),
    )
    points = (KeyPoint("It is.", evidence=(place("of a point", ("c", 0.0, 1.0)),)),)
    found = find_facts(sample(evidence_spans=spans, key_points=points), {"reference:0": "A claim."}, {})
    assert {fact.text: sorted(fact.passages) for fact in found} == {
        "whole": [0],
        "cut": [1, 2],
        "a part": [],
        "gone": [],
        "of a point": [2],
    }


@pytest.mark.parametrize(
    ("verdicts", "passages"),
    [
        ({"contexts": 1, "context:0": 1, "context:1": 0, "context:2": 0}, [0]),
        ({"context:0": 0, "context:1": 0, "context:2": 0}, []),
        ({"contexts": 0}, []),
        ({"contexts": 1}, []),
        ({"context:0": 0}, None),
        ({}, None),
    ],
)
def test_without_evidence_the_judge_says_which_passages_support_the_reference(
    verdicts: Mapping[str, int], passages: list[int] | None
) -> None:
    asked = {("reference:0", premise): verdict for premise, verdict in verdicts.items()}
    found = find_facts(sample(), {"reference:0": BRIDGE}, asked)
    assert [sorted(fact.passages) for fact in found] == ([] if passages is None else [passages])
    assert [fact.is_found for fact in found] == [1 in verdicts.values() for _ in found]
