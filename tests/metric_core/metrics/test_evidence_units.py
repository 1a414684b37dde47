"""Spans of evidence count once: the scores do not depend on how the passages are cut, and equal those of passages."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metric_core.evidence import Evidence
from metric_core.evidence_spans import EvidenceSpan, PlacedSpan, SpanPart, SpanState, passage_grades
from metric_core.metrics.registry import parse_request
from metric_core.records import Rating, Sample, Score

METRICS = ("ndcg", "ndcg(gain=exponential)", "average_precision", "retrieval_recall", "retrieval_recall(min_grade=2)")
a_property = settings(max_examples=100, deadline=None, derandomize=True)
RANKED = st.lists(st.sampled_from("abcdefgh"), unique=True, min_size=1)
GRADES = st.dictionaries(st.sampled_from("abcdefgh"), st.integers(0, 3).map(float), min_size=1)


def whole(passage: str, grade: float) -> PlacedSpan:
    """Return a span that is one passage."""
    return PlacedSpan(EvidenceSpan(passage, grade=grade), SpanState.CARRIED, (SpanPart(passage, 0.0, 1.0, 1.0),))


def row_of(ranked: Sequence[str], spans: Sequence[PlacedSpan]) -> Sample:
    return Sample(
        retrieved_context_ids=tuple(ranked),
        relevance_judgments=passage_grades(spans),
        evidence_spans=tuple(spans),
    )


def score(metric: str, ranked: Sequence[str], spans: Sequence[PlacedSpan]) -> float | None:
    return parse_request(metric).score(Evidence(row_of(ranked, spans))).value


@given(ranked=RANKED, grades=GRADES, k=st.integers(1, 8))
@a_property
def test_passages_as_spans_have_the_scores_of_passages(ranked: list[str], grades: dict[str, float], k: int) -> None:
    plain = Sample(retrieved_context_ids=tuple(ranked), relevance_judgments=grades)
    for name in ("ndcg", "average_precision", "retrieval_recall", "reciprocal_rank", "hit_rate", "retrieval_precision"):
        request = parse_request(f"{name}(k={k})")
        spans = [whole(passage, grade) for passage, grade in grades.items()]
        found, wanted = request.score(Evidence(row_of(ranked, spans))), request.score(Evidence(plain))
        assert (found.value is None) == (wanted.value is None)
        if wanted.value is not None:
            assert found.value == pytest.approx(wanted.value, abs=1e-12)


@given(ranked=RANKED, grades=GRADES, parts=st.integers(2, 4), data=st.data())
@a_property
def test_cutting_passages_into_parts_changes_no_score(
    ranked: list[str], grades: dict[str, float], parts: int, data: st.DataObject
) -> None:
    spans = [whole(passage, grade) for passage, grade in grades.items()]
    cut = [
        replace(
            span,
            parts=tuple(
                SpanPart(f"{span.span.text}{number}", number / parts, (number + 1) / parts, 1.0)
                for number in range(parts)
            ),
        )
        for span in spans
    ]
    relevant = {name for name, grade in grades.items() if grade > 0}
    pieces = [
        piece
        for name in ranked
        for piece in (
            [f"{name}{number}" for number in data.draw(st.permutations(range(parts)))] if name in relevant else [name]
        )
    ]
    for metric in METRICS:
        before, after = score(metric, ranked, spans), score(metric, pieces, cut)
        assert after == (None if before is None else pytest.approx(before, abs=1e-9)), metric


def test_a_passage_with_two_spans_takes_two_ranks() -> None:
    both = [whole("a", 2.0), whole("b", 1.0)]
    joined = [replace(span, parts=(SpanPart("ab", 0.0, 1.0, 0.5),)) for span in both]
    for metric in METRICS:
        assert score(metric, ["x", "ab"], joined) == pytest.approx(score(metric, ["x", "a", "b"], both)), metric


def test_a_span_counts_once_in_chunks_that_overlap() -> None:
    parts = (SpanPart("a", 0.0, 0.75, 0.5), SpanPart("b", 0.25, 1.0, 0.5), SpanPart("c", 0.0, 1.0, 0.5))
    spans = [PlacedSpan(EvidenceSpan("It rains."), SpanState.CARRIED, parts), whole("d", 1.0)]
    assert score("retrieval_recall", ["a"], spans) == 0.375
    assert score("retrieval_recall", ["a", "b"], spans) == 0.5
    assert score("retrieval_recall", ["c", "a", "b"], spans) == 0.5
    assert score("average_precision", ["c", "a", "d"], spans) == pytest.approx((1 + 2 / 3) / 2)


@pytest.mark.parametrize("state", [SpanState.EDITED, SpanState.UNCERTAIN, SpanState.LOST])
def test_a_span_that_is_not_carried_does_not_count(state: SpanState) -> None:
    gone = PlacedSpan(EvidenceSpan("It pours."), state)
    assert score("retrieval_recall", ["a"], [whole("a", 1.0), gone]) == 1.0
    assert score("retrieval_recall", ["a"], [gone]) is None
    unseen = replace(gone, state=SpanState.UNSEEN)
    assert score("retrieval_recall", ["a"], [whole("a", 1.0), unseen]) == 0.5


def test_the_judge_is_asked_about_passages_whose_grade_does_not_follow() -> None:
    parts = (SpanPart("a", 0.0, 0.9, 0.4), SpanPart("b", 0.8, 1.0, 0.1))
    spans = [PlacedSpan(EvidenceSpan("It rains.", grade=2.0), SpanState.CARRIED, parts)]
    row = replace(row_of(["b", "a", "x"], spans), retrieved_contexts=("B", "A", "X"), user_input="Why?")
    request = parse_request("retrieval_recall(judgments=both)")
    asked = request.rating_requests(row)
    assert not isinstance(asked, Score)
    assert [each.template for each in asked] == ["passage:0", "passage:2"]
    ratings = {request.key: [Rating(each.template, "0") for each in asked]}
    assert request.score(Evidence(row, ratings=ratings)).value == pytest.approx(0.9)


def test_grades_of_passages_follow_from_what_they_hold() -> None:
    relevant = PlacedSpan(
        EvidenceSpan("It rains.", grade=3.0),
        SpanState.CARRIED,
        (
            SpanPart("holds it", 0.0, 1.0, 0.1),
            SpanPart("within it", 0.0, 0.25, 1.0),
            SpanPart("a little", 0.9, 1.0, 0.1),
        ),
    )
    other = PlacedSpan(
        EvidenceSpan("It is dry.", grade=0.0),
        SpanState.CARRIED,
        (SpanPart("within the other", 0.0, 0.5, 1.0), SpanPart("a little", 0.0, 0.1, 0.2)),
    )
    assert passage_grades([relevant, other]) == {"holds it": 3.0, "within it": 3.0, "within the other": 0.0}
