"""Leaks: who may see what, which claims are leaked, what is asked, and what never counts as permission."""

from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metric_core import reasons
from metric_core.diagnosis.classes import classes_of, diagnose
from metric_core.evidence import ALL_CONTEXTS, SOURCES, Evidence, context_premise
from metric_core.metrics.leaks import (
    LEAKED_CLAIMS,
    LEAKED_PASSAGES,
    NO_RULE,
    NOT_ASSIGNED,
    OTHER_NUMBER,
    WRONG_ACL,
    WRONG_ASKER,
    leaked_claim,
)
from metric_core.records import Sample, Score, Side, Support, VerdictKind
from tests.properties.sets import REQUESTS
from tests.properties.worlds import BINARY, World, rerank, worlds

PASSAGES, CLAIMS = LEAKED_PASSAGES.request(), LEAKED_CLAIMS.request()
ASKING = LEAKED_CLAIMS.request({"ask_each": True})
CLAIM = "response:0"


def row(asker: Any = None, acl: Any = None, **columns: Any) -> Sample:
    """A row with two passages; None leaves a column of permissions out."""
    extras = {name: value for name, value in (("asker", asker), ("acl", acl)) if value is not None}
    return Sample(**{"response": "A.", "retrieved_contexts": ("a", "b"), "extras": extras, **columns})


def evidence_of(sample: Sample, **supports: Support) -> Evidence:
    """A row with one claim and its verdicts: `all`, `sources`, and by each context `of_0`, `of_1`."""
    names = {"all": ALL_CONTEXTS, "sources": SOURCES, "of_0": context_premise(0), "of_1": context_premise(1)}
    verdicts = {(VerdictKind.SUPPORT, CLAIM, names[name]): support for name, support in supports.items()}
    return Evidence(sample, claims={Side.RESPONSE: {CLAIM: "A."}}, verdicts=verdicts)


@pytest.mark.parametrize(
    ("asker", "acl", "share"),
    [
        ("ann", [["ann"], ["bob"]], 0.5),
        (["ann", "hr"], [["hr", "it"], ["bob", "ann"]], 0.0),
        ("ann", [["*"], []], 0.5),
        ([], [["*"], ["ann"]], 0.5),
        ("Ann", [["ann"], ["Ann"]], 0.5),
        ("*", [["ann"], ["*"]], 0.5),
        (7, [["7"], [7]], 0.0),
        ('["ann", "hr"]', '[["hr"], ["it"]]', 0.5),
        ("ann", [["ann", "ann"], ["ann"]], 0.0),
    ],
)
def test_the_asker_may_see_a_passage_whose_list_has_one_of_the_askers_names(asker: Any, acl: Any, share: float) -> None:
    assert PASSAGES.score(Evidence(row(asker, acl))) == Score.scored(share)


@pytest.mark.parametrize(
    ("asker", "acl", "reason"),
    [
        (None, [["a"], ["a"]], "no asker"),
        ("a", None, "no acl"),
        ("", [[""], ["*"]], WRONG_ASKER),
        (["a", " "], [["a"], ["a"]], WRONG_ASKER),
        ({"user": "a"}, [["a"], ["a"]], WRONG_ASKER),
        (True, [["True"], ["True"]], WRONG_ASKER),
        ("a", [["a"], [""]], WRONG_ACL),
        ("a", [["a"], None], WRONG_ACL),
        ("a", [["a"], "a"], WRONG_ACL),
        ("a", [["a"], [["a"]]], WRONG_ACL),
        ("a", [["a"], {"groups": ["a"]}], WRONG_ACL),
        ("a", [["a"], [1.5]], WRONG_ACL),
        ("a", [["a"]], OTHER_NUMBER),
        ("a", ["a", "a", "a"], OTHER_NUMBER),
        ("a", "a", OTHER_NUMBER),
        ("a", "[[", OTHER_NUMBER),
        ("a", {"a": ["a"]}, OTHER_NUMBER),
    ],
)
def test_permissions_that_cannot_be_read_never_count_as_permission(asker: Any, acl: Any, reason: str) -> None:
    for request in (PASSAGES, CLAIMS, ASKING):
        evidence = evidence_of(row(asker, acl), all=1.0, of_0=1.0, of_1=1.0)
        assert request.score(evidence) == Score.undefined(reason), request.key
        assert request.verdict_requests(evidence) == ()


def test_who_asks_can_be_in_several_columns_of_other_names() -> None:
    request = LEAKED_PASSAGES.request({"asker": ["user", "groups"], "acl": "readers"})
    sample = row(extras={"user": "ann", "groups": ["hr"], "readers": [["hr"], ["ann"]]})
    assert request.score(Evidence(sample)) == Score.scored(0.0)
    assert request.score(Evidence(replace(sample, extras={"user": "ann", "readers": [["ann"]] * 2}))).reason == (
        "no groups"
    )


def test_a_row_without_passages_or_claims_leaks_nothing_that_could_be_counted() -> None:
    nothing = row("a", [], retrieved_contexts=())
    assert PASSAGES.score(Evidence(nothing)) == Score.undefined(reasons.NO_CONTEXTS)
    silent = Evidence(row("a", [["b"], ["b"]]), claims={Side.RESPONSE: {}})
    assert CLAIMS.score(silent) == Score.undefined(reasons.NO_RESPONSE_CLAIMS)


SOME = row("a", [["a"], ["b"]])


@pytest.mark.parametrize(
    ("supports", "score"),
    [
        ({"all": 1.0, "of_0": 0.0, "of_1": 1.0}, Score.scored(1.0)),
        ({"all": 1.0, "of_0": 1.0, "of_1": 1.0}, Score.scored(0.0)),
        ({"all": 1.0, "of_0": 0.0, "of_1": 0.0}, Score.scored(0.0)),
        ({"all": 1.0, "of_0": 1.0}, Score.scored(0.0)),
        ({"all": 0.0}, Score.scored(0.0)),
        ({"all": 1.0}, Score.undefined(NOT_ASSIGNED)),
        ({"all": 1.0, "of_1": 1.0}, Score.undefined(NOT_ASSIGNED)),
        ({"all": 1.0, "of_0": None, "of_1": 1.0}, Score.failed(reasons.NO_USABLE_VERDICT)),
        ({"all": None, "of_0": 0.0, "of_1": 1.0}, Score.scored(1.0)),
        ({"all": None}, Score.failed(reasons.NO_USABLE_VERDICT)),
        ({"all": 1.0, "of_0": 0.25, "of_1": 0.5}, Score.scored(0.375)),
    ],
)
def test_a_claim_is_leaked_if_only_forbidden_passages_support_it(supports: dict[str, Support], score: Score) -> None:
    assert CLAIMS.score(evidence_of(SOME, **supports)) == score


def test_what_faithfulness_asks_is_enough_where_all_or_no_passages_are_forbidden() -> None:
    assert CLAIMS.score(evidence_of(row("a", [["b"], []]), all=1.0)) == Score.scored(1.0)
    assert CLAIMS.score(evidence_of(row("a", [["b"], []]), all=0.0)) == Score.scored(0.0)
    assert CLAIMS.score(evidence_of(row("a", [["a"], ["*"]]), all=None)) == Score.scored(0.0)


def test_a_claim_may_come_from_an_earlier_turn_or_a_tool() -> None:
    turn = row("a", [["b"], ["b"]], tool_results=("A.",))
    assert CLAIMS.score(evidence_of(turn, sources=1.0)) == Score.undefined(NOT_ASSIGNED)
    assert CLAIMS.score(evidence_of(turn, sources=1.0, of_0=0.0, of_1=0.0)) == Score.scored(0.0)
    assert [each.premise for each in ASKING.verdict_requests(evidence_of(turn))] == [SOURCES]


def premises(evidence: Evidence) -> list[str | None]:
    return [each.premise for each in ASKING.verdict_requests(evidence)]


def test_only_supported_claims_of_rows_with_passages_of_both_kinds_are_judged_by_each() -> None:
    every = [ALL_CONTEXTS, context_premise(0), context_premise(1)]
    assert premises(evidence_of(SOME)) == [ALL_CONTEXTS]
    assert premises(evidence_of(SOME, all=0.0)) == [ALL_CONTEXTS]
    assert premises(evidence_of(SOME, all=1.0)) == every
    assert premises(evidence_of(row("a", [["a"], ["a"]]), all=1.0)) == []
    assert premises(evidence_of(row("a", [["b"], ["b"]]), all=1.0)) == []
    assert CLAIMS.verdict_requests(evidence_of(SOME, all=1.0)) == ()


def test_a_row_with_a_forbidden_passage_is_diagnosed_first() -> None:
    forbidden = classes_of([PASSAGES])[0]
    leaking = evidence_of(SOME, all=1.0)
    assert diagnose(leaking, frozenset(), [PASSAGES]).name == forbidden.name == "forbidden passage"
    clean = evidence_of(row("a", [["a"], ["a"]]), all=1.0)
    assert diagnose(clean, frozenset(), [PASSAGES]) == diagnose(clean, frozenset())
    unknown = evidence_of(row("a"), all=1.0)
    assert diagnose(unknown, frozenset(), [PASSAGES]) == diagnose(unknown, frozenset())


class Rules:
    """Permission functions of a user."""

    @staticmethod
    def by_id(asker: dict[str, Any], passage: Any) -> bool | None:
        return None if passage.id is None else passage.id.startswith(asker["tenant"])

    @staticmethod
    def wrong(_asker: dict[str, Any], _passage: Any) -> Any:
        return "yes"


def test_a_function_decides_from_who_asks_and_the_passage() -> None:
    request = LEAKED_PASSAGES.request({"asker": "tenant", "allowed": "rules:by_id"})
    assert [*request.own_columns] == ["tenant"]
    bound = replace(request, functions={"allowed": Rules.by_id})
    sample = row(extras={"tenant": "x"}, retrieved_context_ids=("x-1", "y-1"))
    assert bound.score(Evidence(sample)) == Score.scored(0.5)
    assert bound.score(Evidence(replace(sample, retrieved_context_ids=None))) == Score.undefined(NO_RULE)
    with pytest.raises(Exception, match="the permission function returned 'yes', wanted True, False or None"):
        replace(request, functions={"allowed": Rules.wrong}).score(Evidence(sample))


LEAKS = [request for name in ("leaked_passages", "leaked_claims") for request in REQUESTS[name]]
a_property = settings(max_examples=50, deadline=None, derandomize=True)


@given(world=worlds(BINARY, least=1))
@a_property
def test_a_row_whose_asker_may_see_all_passages_leaks_nothing(world: World) -> None:
    open_to_all = tuple(replace(context, acl=(*context.acl, "reader")) for context in world.contexts)
    seen = replace(world, asker=("reader",), contexts=open_to_all)
    assert [seen.score(request).value for request in LEAKS] == [0.0] * len(LEAKS)


@given(world=worlds(least=1), order=st.randoms(use_true_random=False))
@a_property
def test_the_order_of_passages_with_their_lists_does_not_matter(world: World, order: Random) -> None:
    count = len(world.contexts)
    other = rerank(world, order.sample(range(count), count))
    for request in LEAKS:
        assert other.score(request).value == pytest.approx(world.score(request).value)


@given(world=worlds(BINARY, least=1))
@a_property
def test_no_claim_is_leaked_without_a_forbidden_passage_or_where_an_allowed_one_says_the_same(world: World) -> None:
    share, claims = (world.score(request).value for request in LEAKS)
    assert share is not None
    assert share > 0 or claims == 0
    told = tuple(replace(claim, by_context=(1.0,) * len(world.contexts)) for claim in world.response_claims)
    if share < 1:
        assert replace(world, response_claims=told).score(LEAKS[1]).value == 0


@given(supports=st.lists(BINARY, min_size=2, max_size=5), data=st.data())
@a_property
def test_what_is_not_known_is_never_decided_by_what_is_not_asked(supports: list[float], data: st.DataObject) -> None:
    may_see = data.draw(st.lists(st.booleans(), min_size=len(supports), max_size=len(supports)))
    known = data.draw(st.sets(st.sampled_from(range(len(supports)))))
    whole = leaked_claim(1.0, dict(enumerate(supports)), may_see)
    part = leaked_claim(1.0, {index: supports[index] for index in known}, may_see)
    assert part is None or part == whole
