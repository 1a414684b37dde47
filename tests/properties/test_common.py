"""One test per property, over every metric that has it."""

import math
from dataclasses import replace
from itertools import product
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from metric_core import reasons
from metric_core.declarations.metric import MetricRequest
from metric_core.metrics.registry import METRICS
from metric_core.records import Score, Status
from metric_core.stages import Product, closure
from tests.properties import sets
from tests.properties.sets import requests_of
from tests.properties.worlds import (
    BINARY,
    PROBABILITY,
    World,
    double_parts,
    raise_support,
    rerank,
    shuffle_world,
    with_one_more,
    worlds,
)

EVERY = requests_of(METRICS)
FAILURES = {reasons.NO_USABLE_VERDICT, reasons.NO_USABLE_RATING}
CUT_OFF = Score.failed("the reply was cut off")
EXACT = 1e-12
a_property = settings(max_examples=15, deadline=None, derandomize=True)


def same(one: Score, other: Score) -> bool:
    """Return whether values are equal up to the rounding of sums in another order."""
    if one.value is None or other.value is None:
        return one == other
    return math.isclose(one.value, other.value, abs_tol=EXACT) and one.label == other.label


def value(world: World, request: MetricRequest) -> float:
    """Return the score of a world in which there is something to measure."""
    score = world.score(request)
    assert score.value is not None, (request.key, score)
    return score.value


def test_every_metric_is_in_a_set() -> None:
    assert set().union(*sets.SETS) == set(METRICS)
    assert set(sets.PARAMETERS) | set(sets.EMPTY_SCORES) <= set(METRICS)


@given(world=worlds())
@a_property
def test_a_score_is_finite_and_within_its_bounds(world: World) -> None:
    for request in EVERY:
        score = world.score(request)
        if score.value is not None:
            low, high = request.bounds or (-math.inf, math.inf)
            assert math.isfinite(score.value), request.key
            assert low <= score.value <= high, request.key


@given(world=worlds())
@a_property
def test_a_cell_without_a_value_has_a_declared_reason(world: World) -> None:
    for request in EVERY:
        score = world.score(request)
        if score.status is Status.UNDEFINED:
            assert score.reason in request.metric.undefined, request.key
        elif score.status is Status.FAILED:
            assert score.reason in FAILURES, request.key


@given(rows=st.lists(worlds(), min_size=2, max_size=4), order=st.randoms(use_true_random=False))
@a_property
def test_rows_do_not_depend_on_each_other(rows: list[World], order: Random) -> None:
    for request in EVERY:
        alone = [row.score(request) for row in rows]
        numbers = order.sample(range(len(rows)), len(rows))
        assert {i: rows[i].score(request) for i in numbers} == dict(enumerate(alone)), request.key


def test_an_empty_row_has_no_score_but_where_documented() -> None:
    for request in EVERY:
        score = World().score(request)
        if request.metric.name in sets.EMPTY_SCORES:
            assert score == Score.scored(sets.EMPTY_SCORES[request.metric.name]), request.key
        elif dict(request.parameters).get("weights") == (1, 0):
            assert score == Score.scored(1.0), request.key
        else:
            assert score.status is not Status.SCORED, request.key


@given(world=worlds())
@a_property
def test_only_declared_products_are_read(world: World) -> None:
    for request in EVERY:
        evidence = world.evidence(request)
        unread = dict.fromkeys(set(Product) - closure(request.products), CUT_OFF)
        assert request.score(replace(evidence, gaps=unread)) == request.score(evidence), request.key


@given(world=worlds(least=1), data=st.data())
@a_property
def test_a_missing_product_decides_the_outcome(world: World, data: st.DataObject) -> None:
    for request in EVERY:
        needed = sorted(closure(request.products))
        if needed and not isinstance(request.rating_requests(world.sample), Score):
            gap = data.draw(st.sampled_from(needed))
            evidence = replace(world.evidence(request), gaps={gap: CUT_OFF})
            assert request.score(evidence) == CUT_OFF, (request.key, gap)


@given(world=worlds())
@a_property
def test_a_missing_column_is_undefined(world: World) -> None:
    for request in EVERY:
        for column in request.columns:
            world_without = replace(world, absent=frozenset({column, *request.metric.stand_ins.get(column, ())}))
            missing = Score.undefined(reasons.missing_column(column))
            assert world_without.score(request) == missing, request.key
            if request.metric.ratings is not None:
                assert request.rating_requests(world_without.sample) == missing, request.key


@given(world=worlds(), order=st.randoms(use_true_random=False))
@a_property
def test_order_does_not_matter(world: World, order: Random) -> None:
    other = shuffle_world(world, order)
    for request in requests_of(sets.UNORDERED):
        assert same(other.score(request), world.score(request)), request.key


@given(world=worlds(), order=st.randoms(use_true_random=False))
@a_property
def test_ranks_do_not_matter(world: World, order: Random) -> None:
    count = len(world.contexts)
    other = rerank(world, order.sample(range(count), count))
    for request in requests_of(sets.RANK_FREE):
        assert same(other.score(request), world.score(request)), request.key


@given(world=worlds(BINARY))
@a_property
def test_everything_twice_leaves_the_score(world: World) -> None:
    for request in requests_of(sets.REPEATABLE):
        assert same(double_parts(world).score(request), world.score(request)), request.key


@given(world=worlds(least=1))
@a_property
def test_one_more_supported_claim_never_lowers_the_score(world: World) -> None:
    for request in requests_of(sets.SHARES):
        assert value(with_one_more(world, 1.0), request) >= value(world, request) - EXACT, request.key


@given(world=worlds(least=1))
@a_property
def test_one_more_unsupported_claim_never_raises_the_score(world: World) -> None:
    for request in requests_of(sets.SHARES):
        assert value(with_one_more(world, 0.0), request) <= value(world, request) + EXACT, request.key


@given(world=worlds(least=1), support=PROBABILITY)
@a_property
def test_more_support_never_lowers_the_score(world: World, support: float) -> None:
    for request in requests_of(sets.SHARES):
        assert value(raise_support(world, support), request) >= value(world, request) - EXACT, request.key


@given(world=worlds(least=1), support=PROBABILITY)
@a_property
def test_more_support_by_the_reference_never_raises_noise(world: World, support: float) -> None:
    first, *others = world.response_claims
    better = replace(first, by_other=max(first.by_other or 0.0, support))
    other = replace(world, response_claims=(better, *others))
    for request in requests_of({"noise_sensitivity"}):
        assert value(other, request) <= value(world, request) + EXACT, request.key


@given(world=worlds(least=2), data=st.data())
@a_property
def test_a_relevant_context_further_up_never_lowers_the_score(world: World, data: st.DataObject) -> None:
    rank = data.draw(st.integers(1, len(world.contexts) - 1))
    order = list(range(len(world.contexts)))
    order[rank - 1], order[rank] = rank, rank - 1
    for request in requests_of(sets.RANKED):
        if Product.RATINGS in request.products:
            continue  # the ratings of a world do not follow its contexts
        upper, lower = (value(rerank(world, [alone]), request) for alone in (rank - 1, rank))
        before, after = value(world, request), value(rerank(world, order), request)
        assert after >= before - EXACT if lower >= upper else after <= before + EXACT, request.key


@given(world=worlds(least=2), data=st.data())
@a_property
def test_a_passage_that_is_retrieved_again_never_raises_the_score(world: World, data: st.DataObject) -> None:
    again = data.draw(st.sampled_from(range(len(world.contexts))))
    place = data.draw(st.integers(again + 1, len(world.contexts)))
    order = list(range(len(world.contexts)))
    order.insert(place, again)
    for request in requests_of(sets.JUDGED_RANKINGS):
        if Product.RATINGS not in request.products:
            assert rerank(world, order).score(request) == world.score(request), request.key


@given(world=worlds(BINARY, least=1), data=st.data())
@a_property
def test_a_failed_verdict_gives_no_number_where_it_is_read(world: World, data: st.DataObject) -> None:
    for request in requests_of(sets.VERDICTS):
        evidence = world.evidence(request)
        which = data.draw(st.sampled_from(sorted(evidence.verdicts)))
        answers = (replace(evidence, verdicts={**evidence.verdicts, which: answer}) for answer in (None, 0.0, 1.0))
        failed, no, yes = map(request.score, answers)
        assert failed == Score.failed(reasons.NO_USABLE_VERDICT) or failed == no == yes, (request.key, which)


@given(world=worlds(least=1))
@a_property
def test_nothing_but_failed_verdicts_is_failed(world: World) -> None:
    for request in requests_of(sets.VERDICTS):
        evidence = world.evidence(request)
        failed = request.score(replace(evidence, verdicts=dict.fromkeys(evidence.verdicts)))
        if request.products != (Product.ANSWER_SIMILARITY,):
            assert failed == Score.failed(reasons.NO_USABLE_VERDICT), request.key


@given(world=worlds())
@a_property
def test_without_a_usable_rating_there_is_no_score(world: World) -> None:
    for request in requests_of(sets.RATINGS):
        known = request.rating_requests(world.sample)
        expected = known if isinstance(known, Score) else Score.failed(reasons.NO_USABLE_RATING)
        assert replace(world, picks=()).score(request) == expected, request.key


@given(world=worlds())
@a_property
def test_usable_ratings_are_scored(world: World) -> None:
    for request in requests_of(sets.RATINGS):
        assert world.score(request).status is Status.SCORED, request.key


@given(world=worlds(), failed=st.sets(st.integers(0, 4), max_size=2))
@a_property
def test_a_failed_vote_could_not_have_changed_the_majority(world: World, failed: set[int]) -> None:
    picks = tuple(None if i in failed else (pick or 0) % 2 for i, pick in enumerate(world.picks))
    for request in requests_of({"aspect_critic", "discrete_criteria"}):
        score = replace(world, picks=picks).score(request)
        for answers in product((0, 1), repeat=len(failed)):
            replies = iter(answers)
            complete = tuple(next(replies) if pick is None else pick for pick in picks)
            if score.status is Status.SCORED:
                assert replace(world, picks=complete).score(request) == score, request.key


@given(world=worlds(least=1))
@a_property
def test_a_zero_vector_is_undefined(world: World) -> None:
    asked = tuple((replace(question, text="Why?", noncommittal=False), None) for question, _ in world.questions)
    zero = replace(world, similarity=None, questions=asked)
    for request in requests_of(sets.SIMILARITIES):
        if dict(request.parameters).get("weights") != (1, 0):
            assert zero.score(request) == Score.undefined(reasons.ZERO_VECTOR), request.key


@given(world=worlds())
@a_property
def test_response_and_reference_may_change_places(world: World) -> None:
    swapped = replace(world, response=world.reference, reference=world.response)
    for request in requests_of(sets.SYMMETRIC):
        assert same(swapped.score(request), world.score(request)), request.key
