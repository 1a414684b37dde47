"""Formulas over probabilities, compared with formulas over 0 and 1 and with an enumeration of all outcomes."""

import math
from itertools import product
from statistics import fmean

from hypothesis import given, settings
from hypothesis import strategies as st

from metric_core.metrics._votes import majority
from metric_core.metrics.answer_correctness import answer_correctness
from metric_core.metrics.context_precision import context_precision, relevance_average_precision
from metric_core.metrics.factual_correctness import factual_correctness
from metric_core.metrics.faithfulness import faithfulness
from metric_core.metrics.noise_sensitivity import noise_sensitivity

BITS = st.lists(st.booleans(), min_size=1, max_size=7)
BETA = st.sampled_from([0.5, 1.0, 2.0])
a_property = settings(max_examples=150, deadline=None, derandomize=True)


def close(value: float | None, expected: float) -> bool:
    return value is not None and math.isclose(value, expected, abs_tol=1e-12)


def plain_average_precision(relevant: list[bool]) -> float:
    precisions = [sum(relevant[: k + 1]) / (k + 1) for k in range(len(relevant)) if relevant[k]]
    return sum(precisions) / len(precisions) if precisions else 0.0


def plain_f(right: int, wrong: int, missed: int, beta: float) -> float:
    if right == 0:
        return 0.0
    precision, recall = right / (right + wrong), right / (right + missed)
    return (1 + beta**2) * precision * recall / (beta**2 * precision + recall)


def plain_noise(correct: list[bool], found: list[list[bool]], covers: list[list[bool]], mode: str) -> float:
    """`found[c][r]`: context c supports response claim r; `covers[c][g]`: it supports reference claim g."""
    count = 0
    for r, is_correct in enumerate(correct):
        sources = [c for c in range(len(found)) if found[c][r]]
        from_relevant = any(any(covers[c]) for c in sources)
        counts = from_relevant if mode == "relevant" else bool(sources) and not from_relevant
        count += counts and not is_correct
    return count / len(correct)


@given(supported=BITS)
@a_property
def test_faithfulness_is_the_share_of_supported_claims(supported: list[bool]) -> None:
    assert close(faithfulness(supported).value, sum(supported) / len(supported))


@given(relevant=BITS)
@a_property
def test_context_precision_is_average_precision(relevant: list[bool]) -> None:
    assert close(context_precision(relevant).value, plain_average_precision(relevant))


@given(relevance=st.lists(st.floats(0, 1, allow_subnormal=False), max_size=6))
@a_property
def test_average_precision_of_probabilities_is_its_expectation(relevance: list[float]) -> None:
    expected = math.fsum(
        plain_average_precision(list(outcome))
        * math.prod(p if relevant else 1 - p for p, relevant in zip(relevance, outcome, strict=True))
        for outcome in product([False, True], repeat=len(relevance))
    )
    assert math.isclose(relevance_average_precision(relevance), expected, abs_tol=1e-12)


@given(response=BITS, reference=BITS, beta=BETA)
@a_property
def test_factual_correctness_counts_claims(response: list[bool], reference: list[bool], beta: float) -> None:
    right, wrong, missed = sum(response), response.count(False), reference.count(False)
    precision, recall = fmean(response), fmean(reference)
    assert close(factual_correctness(response, reference, beta=beta).value, plain_f(right, wrong, missed, beta))
    assert close(factual_correctness(response, reference, "precision").value, precision)
    assert close(factual_correctness(response, reference, "recall").value, recall)
    documented = right / (right + missed) if right else 0.0
    assert close(factual_correctness(response, reference, "recall", beta, "documented").value, documented)
    both = (1 + beta**2) * precision * recall / (beta**2 * precision + recall) if precision and recall else 0.0
    assert close(factual_correctness(response, reference, "f1", beta, "reference").value, both)


@given(
    response=BITS, reference=BITS, similarity=st.floats(-1, 1), weights=st.tuples(st.integers(1, 5), st.integers(0, 5))
)
@a_property
def test_answer_correctness_is_a_weighted_mean(
    response: list[bool], reference: list[bool], similarity: float, weights: tuple[int, int]
) -> None:
    f1 = plain_f(sum(response), response.count(False), reference.count(False), 1.0)
    expected = (weights[0] * f1 + weights[1] * similarity) / sum(weights)
    assert close(answer_correctness(response, reference, similarity, weights).value, expected)


@given(data=st.data(), mode=st.sampled_from(["relevant", "irrelevant"]))
@a_property
def test_noise_sensitivity_counts_wrong_claims_by_source(data: st.DataObject, mode: str) -> None:
    contexts, claims, facts = (data.draw(st.integers(1, 4)) for _ in range(3))

    def bits(count: int) -> st.SearchStrategy[list[bool]]:
        return st.lists(st.booleans(), min_size=count, max_size=count)

    correct = data.draw(bits(claims))
    found = [data.draw(bits(claims)) for _ in range(contexts)]
    covers = [data.draw(bits(facts)) for _ in range(contexts)]
    assert close(noise_sensitivity(correct, found, covers, mode).value, plain_noise(correct, found, covers, mode))


@given(data=st.data(), mode=st.sampled_from(["relevant", "irrelevant"]))
@settings(max_examples=60, deadline=None, derandomize=True)
def test_noise_sensitivity_of_one_claim_is_its_expectation(data: st.DataObject, mode: str) -> None:
    """With one reference claim and one response claim every verdict is independent: all outcomes can be counted."""
    contexts = data.draw(st.integers(1, 3))
    p = data.draw(
        st.lists(st.floats(0, 1, allow_subnormal=False), min_size=2 * contexts + 1, max_size=2 * contexts + 1)
    )
    expected = math.fsum(
        plain_noise(
            [outcome[0]], [[a] for a in outcome[1 : contexts + 1]], [[g] for g in outcome[contexts + 1 :]], mode
        )
        * math.prod(x if happens else 1 - x for x, happens in zip(p, outcome, strict=True))
        for outcome in product([False, True], repeat=len(p))
    )
    score = noise_sensitivity([p[0]], [[a] for a in p[1 : contexts + 1]], [[g] for g in p[contexts + 1 :]], mode)
    assert close(score.value, expected)


@given(votes=st.lists(st.sampled_from(["a", "b", "c", None]), max_size=7))
@a_property
def test_failed_votes_cannot_change_a_majority(votes: list[str | None]) -> None:
    winner = majority(votes)
    if winner is not None:
        for replies in product("abc", repeat=votes.count(None)):
            rest = iter(replies)
            assert majority([next(rest) if vote is None else vote for vote in votes]) == winner
