"""Metrics over claims: what each reads, and what a failed verdict or an empty side does."""

import pytest

from metric_core import reasons
from metric_core.errors import MetricParameterError
from metric_core.evidence import ALL_CONTEXTS, Evidence
from metric_core.metrics.answer_correctness import ANSWER_CORRECTNESS, answer_correctness
from metric_core.metrics.answer_relevancy import ANSWER_RELEVANCY, answer_relevancy
from metric_core.metrics.context_precision import relevance_average_precision
from metric_core.metrics.context_recall import CONTEXT_RECALL
from metric_core.metrics.factual_correctness import FACTUAL_CORRECTNESS, factual_correctness
from metric_core.metrics.noise_sensitivity import noise_sensitivity
from metric_core.records import Question, Sample, Score, Side, Support, VerdictKind
from metric_core.stages import Product

FAILED = Score.failed(reasons.NO_USABLE_VERDICT)
RIGHT, COVERED = Product.RESPONSE_CLAIMS_BY_REFERENCE, Product.REFERENCE_CLAIMS_BY_RESPONSE


def noise(response: list[Support], found: list[list[Support]], covers: list[list[Support]]) -> Score:
    return noise_sensitivity(response, found, covers)


def test_noise_needs_no_context_verdicts_of_right_claims() -> None:
    assert noise([1, 1], [[None, None]], [[None]]) == Score.scored(0.0)


def test_noise_needs_the_relevance_only_of_contexts_with_a_wrong_claim() -> None:
    assert noise([0, 1], [[0, None], [1, None]], [[None], [1]]) == Score.scored(0.5)
    assert noise([0, 1], [[0, None], [1, None]], [[1], [None]]) == FAILED


def test_noise_needs_no_more_claims_of_a_context_that_is_relevant_for_sure() -> None:
    assert noise([0], [[1]], [[None, 1]]) == Score.scored(1.0)
    assert noise([0], [[1]], [[None, 0.9]]) == FAILED


def test_noise_reads_every_context_of_a_wrong_claim() -> None:
    assert noise([0], [[1], [None]], [[1], [1]]) == FAILED
    assert noise([None], [[1]], [[1]]) == FAILED


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (([0], [], []), reasons.NO_CONTEXTS),
        (([], [[]], [[1]]), reasons.NO_RESPONSE_CLAIMS),
        (([0], [[1]], [[]]), reasons.NO_REFERENCE_CLAIMS),
    ],
)
def test_noise_is_undefined_without_a_side(
    arguments: tuple[list[Support], list[list[Support]], list[list[Support]]], reason: str
) -> None:
    assert noise(*arguments) == Score.undefined(reason)


def test_factual_correctness_reads_what_its_mode_counts() -> None:
    cases: list[tuple[str, str | None, list[Support], list[Support], Score]] = [
        ("f1", None, [], [], Score.undefined(reasons.NO_CLAIMS)),
        ("f1", None, [], [1, None], Score.scored(0.0)),
        ("f1", None, [1, 0], [], Score.scored(2 / 3)),
        ("f1", "reference", [1, 0], [], Score.scored(2 / 3)),
        ("f1", "reference", [], [1], Score.scored(0.0)),
        ("f1", None, [1, None], [1], FAILED),
        ("f1", None, [1], [None], FAILED),
        ("precision", None, [], [1], Score.undefined(reasons.NO_RESPONSE_CLAIMS)),
        ("precision", None, [1, 0], [None], Score.scored(0.5)),
        ("recall", None, [None], [1, 0], Score.scored(0.5)),
        ("recall", None, [1], [], Score.undefined(reasons.NO_REFERENCE_CLAIMS)),
        ("recall", "documented", [0], [1], Score.scored(0.0)),
        ("recall", "documented", [1], [], Score.scored(1.0)),
        ("recall", "documented", [], [], Score.undefined(reasons.NO_CLAIMS)),
    ]
    for mode, basis, response, reference, expected in cases:
        score = factual_correctness(response, reference, mode, recall_basis=basis)
        assert (score.status, score.reason) == (expected.status, expected.reason), (mode, basis, response)
        assert score.value == pytest.approx(expected.value), (mode, basis, response)


@pytest.mark.parametrize(
    ("parameters", "products"),
    [
        ({}, {RIGHT, COVERED}),
        ({"mode": "precision"}, {RIGHT}),
        ({"mode": "recall"}, {COVERED}),
        ({"mode": "recall", "recall_basis": "documented"}, {RIGHT, COVERED}),
    ],
)
def test_factual_correctness_asks_only_for_what_it_reads(parameters: dict[str, str], products: set[Product]) -> None:
    assert set(FACTUAL_CORRECTNESS.request(parameters).products) == products


def test_answer_correctness_does_not_read_a_part_without_weight() -> None:
    assert answer_correctness([1], [1], None, weights=(1, 0)) == Score.scored(1.0)
    assert answer_correctness([None], [None], -0.5, weights=(0, 2)) == Score.scored(-0.5)
    assert ANSWER_CORRECTNESS.request({"weights": [0, 1]}).products == (Product.ANSWER_SIMILARITY,)
    assert ANSWER_CORRECTNESS.request({"weights": [0, 1]}).bounds == (-1.0, 1.0)
    assert set(ANSWER_CORRECTNESS.request({"weights": [1, 0]}).products) == {RIGHT, COVERED}


def test_a_failed_verdict_outweighs_a_zero_vector() -> None:
    assert answer_correctness([None], [1], None) == FAILED
    assert answer_correctness([1], [1], None) == Score.undefined(reasons.ZERO_VECTOR)


def test_probabilities_give_expected_counts() -> None:
    assert factual_correctness([0.5, 0.5], [0.5]).value == pytest.approx(1 / (1 + 0.5 * (1 + 0.5)))


def test_evasive_questions_are_zero_only_if_all_are() -> None:
    plain, evasive = Question("What?"), Question("What?", noncommittal=True)
    assert answer_relevancy([plain, evasive], [0.5, 0.7]).value == pytest.approx(0.6)
    assert answer_relevancy([evasive, evasive], [0.5, None]) == Score.scored(0.0)
    assert answer_relevancy([evasive, Question(" ")], [0.5, 0.5]) == Score.scored(0.0)


def test_answer_relevancy_reads_as_many_questions_as_it_says() -> None:
    sample = Sample(user_input="What?", response="That.")
    evidence = Evidence(sample, questions=[Question("What?")] * 3, question_similarities=[1.0, 0.5, 0.0])
    for strictness, expected in ((1, 1.0), (2, 0.75), (3, 0.5)):
        assert ANSWER_RELEVANCY.request({"strictness": strictness}).score(evidence).value == expected


def test_weights_too_large_to_add_are_refused() -> None:
    with pytest.raises(MetricParameterError, match="weights must be two numbers"):
        ANSWER_CORRECTNESS.request({"weights": [1e308, 1e308]})


def test_average_precision_of_many_ranks_is_quick_and_bounded() -> None:
    assert relevance_average_precision([1.0] * 60) == pytest.approx(1.0)
    assert 0.5 < relevance_average_precision([0.5] * 60) < 0.6


def test_context_recall_over_the_claims_of_reference_contexts() -> None:
    request = CONTEXT_RECALL.request({"of": "reference_contexts"})
    assert request.columns == ("retrieved_contexts", "reference_contexts")
    assert request.products == (Product.REFERENCE_CONTEXT_CLAIMS_BY_CONTEXTS,)
    claims = {f"reference_context:{i}:{j}": "It rains." for i, j in ((0, 0), (0, 1), (2, 0))}
    verdicts = {(VerdictKind.SUPPORT, claim, ALL_CONTEXTS): float(i < 2) for i, claim in enumerate(claims)}
    sample = Sample(retrieved_contexts=("Rain.",), reference_contexts=("a", "b", "c"))
    found = request.score(Evidence(sample, claims={Side.REFERENCE_CONTEXT: claims}, verdicts=verdicts))
    assert found == Score.scored(2 / 3)
    assert request.score(Evidence(sample)) == Score.undefined(reasons.NO_REFERENCE_CONTEXT_CLAIMS)
    without = Sample(retrieved_contexts=("Rain.",), reference_contexts=())
    assert request.score(Evidence(without)) == Score.undefined(reasons.NO_REFERENCE_CONTEXTS)
    with pytest.raises(MetricParameterError, match="needs unit = 'claim' for of = 'reference_contexts'"):
        CONTEXT_RECALL.request({"of": "reference_contexts", "unit": "sentence"})
