"""Metrics over strings, ids and entities."""

import pytest

from metric_core import reasons
from metric_core.errors import MetricParameterError
from metric_core.evidence import Evidence
from metric_core.metrics.answer_similarity import answer_similarity
from metric_core.metrics.context_entity_recall import context_entity_recall, normalize_entity
from metric_core.metrics.reference_contexts import (
    id_context_precision,
    id_context_recall,
    non_llm_context_precision,
    non_llm_context_recall,
)
from metric_core.metrics.registry import parse_request
from metric_core.metrics.string_similarity import similarity_of
from metric_core.records import Sample, Score

HALF = ("abcd", "abxy")


def test_entities_that_differ_in_writing_only_are_the_same() -> None:
    cases: list[tuple[str, str]] = [
        ("The Granary", "granary"),
        ("a granary", "GRANARY"),
        ("U.S.", "US"),
        ("Wend's", "Wend"),
        ("Wend\u2019s", "wend"),
        ("Morrows\u2019", "Morrows"),
        ("Stratford-upon-Avon", "Stratford upon Avon"),
        ("1901\u20131905", "1901-1905"),
        ("\u201cOld  Mill\u201d", "old mill,"),
        ("1,000", "1000"),
        ("May 14, 1901", "May 14 1901"),
        ("Stra\u00dfe", "STRASSE"),
        ("The A-Team", "A-Team"),
        ("Amster\u00addam", "Amsterdam"),
    ]
    for one, other in cases:
        assert normalize_entity(one) == normalize_entity(other), (one, other)


def test_entities_that_differ_stay_different() -> None:
    cases: list[tuple[str, str]] = [
        ("3.5 million", "35 million"),
        (".5 million", "5 million"),
        ("-5 degrees", "5 degrees"),
        ("1901", "1902"),
        ("Andover", "dover"),
        ("Theo Morrow", "o Morrow"),
        ("A. Morrow", "Morrow"),
        ("C#", "C"),
    ]
    for one, other in cases:
        assert normalize_entity(one) != normalize_entity(other), (one, other)


def test_entities_are_sets() -> None:
    assert context_entity_recall(["Arden", "the Arden", "Wend"], ["arden"]).value == 0.5
    assert context_entity_recall(["Arden", "the Arden", "Wend"], ["Arden"], match="exact").value == pytest.approx(1 / 3)
    assert context_entity_recall(["!", "'s"], ["Arden"]) == Score.undefined(reasons.NO_REFERENCE_ENTITIES)


def test_half_alike_is_enough_for_precision_but_not_for_recall() -> None:
    one, other = HALF
    assert similarity_of(one, other) == 0.5
    assert non_llm_context_precision([one], [other]).value == 1.0
    assert non_llm_context_recall([one], [other]).value == 0.0


def test_threshold_and_distance_are_used() -> None:
    sample = Sample(retrieved_contexts=HALF[:1], reference_contexts=HALF[1:])
    for text, expected in (
        ("non_llm_context_precision(threshold=0.6)", 0.0),
        ("non_llm_context_precision(threshold=0.6, distance=jaro)", 1.0),
        ("non_llm_context_recall(threshold=0.4)", 1.0),
    ):
        assert parse_request(text).score(Evidence(sample)).value == expected


def test_nothing_retrieved_and_nothing_to_find() -> None:
    cases: list[tuple[Score, Score]] = [
        (non_llm_context_precision([], ["a"]), Score.undefined(reasons.NO_CONTEXTS)),
        (non_llm_context_precision([], []), Score.undefined(reasons.NO_CONTEXTS)),
        (non_llm_context_precision(["a"], []), Score.undefined(reasons.NO_REFERENCE_CONTEXTS)),
        (non_llm_context_recall([], ["a"]), Score.scored(0.0)),
        (non_llm_context_recall([], []), Score.undefined(reasons.NO_REFERENCE_CONTEXTS)),
        (id_context_precision([], ["a"]), Score.undefined(reasons.NO_CONTEXTS)),
        (id_context_precision(["a"], []), Score.scored(0.0)),
        (id_context_recall([], ["a"]), Score.scored(0.0)),
        (id_context_recall(["a"], []), Score.undefined(reasons.NO_REFERENCE_CONTEXTS)),
    ]
    for score, expected in cases:
        assert score == expected, (score, expected)


def test_recall_refuses_a_threshold_that_nothing_can_exceed() -> None:
    with pytest.raises(MetricParameterError, match="threshold must be a number from 0 to less than 1, got 1"):
        parse_request("non_llm_context_recall(threshold=1)")
    assert parse_request("non_llm_context_precision(threshold=1)").parameters["threshold"] == 1


def test_precision_ranks_similar_contexts() -> None:
    assert non_llm_context_precision(["zz", "abcd"], ["abcd"]).value == 0.5


def test_a_threshold_of_zero_is_a_threshold() -> None:
    assert answer_similarity(0.4, threshold=0.0).value == 1.0
    assert answer_similarity(-0.4, threshold=0.0).value == 0.0
    assert answer_similarity(-0.4).value == -0.4
