"""Tests of the features and their ranges."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from metric_core.words.tokens import tokenize
from tasks.models.judges.builtin.contradictions import find_contradictions
from tasks.models.judges.builtin.features import relevance_features, usefulness_features, verdict_features
from tasks.models.judges.builtin.linear_models import RELEVANCE, USEFULNESS, VERDICT, LinearModel, revision
from tasks.models.judges.builtin.premises import Premise

HANDBOOK = (
    "Full-time employees have 25 vacation days a year.",
    "Travel requests are approved by Maria Lopez.",
    "The office in Berlin is open from Monday to Friday.",
    "Visitors do not need a badge.",
)


def verdict(claim: str, *sentences: str, cosine: float = 0.5) -> dict[str, float]:
    premise = Premise(sentences)
    return verdict_features(tokenize(claim), premise, premise.match(tokenize(claim).tokens), cosine)


def conflict(claim: str, *sentences: str) -> set[str]:
    premise = Premise(sentences)
    return {
        name
        for name, value in find_contradictions(tokenize(claim), premise, premise.match(tokenize(claim).tokens)).items()
        if value
    }


def test_a_claim_that_is_a_sentence_of_the_premise_is_fully_covered() -> None:
    features = verdict(HANDBOOK[1], *HANDBOOK)
    assert (features["words_covered"], features["best_sentence"], features["best_window"]) == (1, 1, 1)
    assert all(features[name] == 0 for name in features if name.endswith(("missing", "conflict")))


def test_an_empty_premise_covers_nothing() -> None:
    features = verdict("Staff have 25 days in Berlin.")
    assert features["words_covered"] == features["best_sentence"] == features["best_window"] == 0
    assert (features["numbers_missing"], features["names_missing"]) == (1, 1)


def test_a_claim_without_words_has_all_features() -> None:
    assert set(verdict("...", *HANDBOOK)) == set(VERDICT.weights)


def test_words_spread_over_the_premise_are_not_in_one_window() -> None:
    spread = ["The badge is red.", "A.", "B.", "C.", "Lunch is free."]
    features = verdict("The badge is free.", *spread)
    assert features["words_covered"] == 1
    assert features["best_window"] == features["best_sentence"] < 1


def test_conflicts() -> None:
    cases: list[tuple[str, set[str]]] = [
        ("Full-time employees have 25 vacation days a year.", set()),
        ("Full-time employees have 30 vacation days a year.", {"number_conflict"}),
        ("Part-time employees have 25 vacation days a year.", {"opposite_conflict"}),
        ("Full-time employees have 25 vacation days a month.", {"opposite_conflict"}),
        ("Full-time employees do not have 25 vacation days a year.", {"negation_conflict"}),
        ("Travel requests are approved by Maria Lopez.", set()),
        ("Travel requests are approved by Peter Schmidt.", {"name_conflict"}),
        ("Travel requests are rejected by Maria Lopez.", {"opposite_conflict"}),
        ("The office in Madrid is open from Monday to Friday.", {"name_conflict"}),
        ("The office in Berlin is closed from Monday to Friday.", {"opposite_conflict"}),
        ("The office in Berlin is not closed from Monday to Friday.", set()),
        ("Visitors need a badge.", {"negation_conflict"}),
        ("No visitor needs a badge.", set()),
        ("Lunch costs 7 euros.", set()),
    ]
    for claim, expected in cases:
        assert conflict(claim, *HANDBOOK) == expected, (claim, expected)


def test_the_same_number_elsewhere_is_not_a_conflict() -> None:
    assert conflict("Managers have 30 vacation days.", "Staff have 25 vacation days.", "Managers have 30.") == set()


def test_match_prefers_the_rare_words() -> None:
    match = Premise(["The plan is good.", "The plan covers dental care.", "The plan ends."]).match(["plan", "dental"])
    assert match.sentence == 1


def test_usefulness_searches_for_words_that_are_not_in_the_question() -> None:
    question = tokenize("Who approves travel requests?")
    answer = [tokenize("Travel requests are approved by Maria Lopez.")]

    def features(passage: str) -> dict[str, float]:
        premise = Premise([passage])
        return usefulness_features(question, answer, premise, premise.match(question.tokens), 0.8)

    useful = features("Maria Lopez, the head of finance, signs travel requests.")
    useless = features("Travel requests are approved in writing.")
    assert useful["new_words"] == 1
    assert useless["new_words"] == 0
    assert USEFULNESS.probability(useful) > 0.5 > USEFULNESS.probability(useless)


def test_usefulness_of_an_answer_without_new_words_uses_the_question() -> None:
    question = tokenize("Is dental care covered?")
    premise = Premise(["Dental care is covered."])
    features = usefulness_features(question, [tokenize("Yes.")], premise, premise.match(question.tokens), 0.9)
    assert features["new_words"] == features["new_and_asked"] == 1


def test_relevance_uses_words_and_cosines() -> None:
    question = tokenize("How many vacation days do employees have?")
    found = relevance_features(question, Premise(HANDBOOK), [0.8, 0.1, 0.1, 0.0])
    assert [features["best_cosine"] for features in found] == [0.8] * 4
    assert found[0]["question_words"] == 1
    assert [RELEVANCE.probability(features) >= 0.5 for features in found] == [True, False, False, False]


def test_the_weights_have_the_expected_signs() -> None:
    for name in ("words_covered", "best_sentence", "best_window", "cosine"):
        assert VERDICT.weights[name] > 0
    for name in ("numbers_missing", "names_missing", *(name for name in VERDICT.weights if name.endswith("conflict"))):
        assert VERDICT.weights[name] < 0
    assert min(*USEFULNESS.weights.values(), *RELEVANCE.weights.values()) > 0


def test_extreme_logits_stay_probabilities() -> None:
    model = LinearModel(0.0, {"x": 1.0})
    assert model.probability({"x": 700.0}) == pytest.approx(1.0)
    assert model.probability({"x": -700.0}) == pytest.approx(0.0)


def test_the_revision_is_stable() -> None:
    assert revision() == revision()
    assert revision().startswith("3-")


texts = st.text(alphabet="ab AB1.,'not ", max_size=60)


@given(texts, st.lists(texts, max_size=5))
def test_features_stay_in_their_ranges(claim: str, sentences: list[str]) -> None:
    features = verdict(claim, *sentences)
    assert set(features) == set(VERDICT.weights)
    for name, value in features.items():
        assert 0 <= value <= (3 if name == "numbers_missing" else 1 + 1e-9)
    assert np.isfinite(VERDICT.probability(features))
