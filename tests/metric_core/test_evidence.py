"""Evidence gives metrics what the stages found, in order, and says why something is missing."""

from dataclasses import replace

import pytest

from metric_core import reasons
from metric_core.evidence import (
    ALL_CONTEXTS,
    BY_EARLIER_ANSWERS,
    SOURCES,
    Evidence,
    MissingProductError,
    premise_text,
    products_of,
)
from metric_core.records import Rating, Sample, Score, Side, VerdictKind
from metric_core.stages import Product

SAMPLE = Sample(row_id="1", response="", retrieved_contexts=("a", "b"))
CLAIMS = {Side.RESPONSE: {"r1": "one", "r0": "two"}, Side.CONTEXT_SENTENCE: {"s0": "three"}}


def test_supports_come_in_the_order_of_the_claims() -> None:
    support = VerdictKind.SUPPORT
    evidence = Evidence(
        SAMPLE, claims=CLAIMS, verdicts={(support, "r0", ALL_CONTEXTS): 0.25, (support, "r1", ALL_CONTEXTS): 1}
    )
    assert evidence.supports(Side.RESPONSE, ALL_CONTEXTS, Product.RESPONSE_CLAIMS_BY_CONTEXTS) == [1, 0.25]


def test_supports_in_a_conversation_are_those_by_all_sources() -> None:
    turn = replace(SAMPLE, tool_results=("c",))
    verdicts = {(VerdictKind.SUPPORT, "r1", SOURCES): 1.0, (VerdictKind.SUPPORT, "r0", BY_EARLIER_ANSWERS): 1.0}
    evidence = Evidence(turn, claims=CLAIMS, verdicts=verdicts)
    assert evidence.supports(Side.RESPONSE, ALL_CONTEXTS, Product.RESPONSE_CLAIMS_BY_CONTEXTS) == [1.0, None]
    assert premise_text(turn, SOURCES) == "a\nb\nc"
    assert products_of(VerdictKind.SUPPORT, "response:0", SOURCES) == (Product.RESPONSE_CLAIMS_BY_CONTEXTS,)
    assert products_of(VerdictKind.SUPPORT, "response:0", BY_EARLIER_ANSWERS) == ()


def test_a_verdict_that_is_not_there_is_none() -> None:
    verdicts = {
        (VerdictKind.SUPPORT, "r1", "context:1"): 1.0,
        (VerdictKind.USEFULNESS_FOR_REFERENCE, "", "context:0"): 0.5,
        (VerdictKind.RELEVANCE, "s0", "user_input"): 1.0,
    }
    evidence = Evidence(SAMPLE, claims=CLAIMS, verdicts=verdicts)
    assert evidence.context_supports(Side.RESPONSE, Product.CLAIMS_BY_EACH_CONTEXT) == [[None, None], [1.0, None]]
    assert evidence.usefulness(VerdictKind.USEFULNESS_FOR_REFERENCE) == [0.5, None]
    assert evidence.usefulness(VerdictKind.USEFULNESS_FOR_RESPONSE) == [None, None]
    assert evidence.relevance() == [1.0]


def test_an_empty_column_is_there_and_a_missing_one_is_not() -> None:
    evidence = Evidence(SAMPLE)
    assert evidence.column("response") == ""
    with pytest.raises(MissingProductError) as missing:
        evidence.column("reference")
    assert missing.value.outcome == Score.undefined("no reference")


@pytest.mark.parametrize(
    ("gap", "product", "premise"),
    [
        (Product.RESPONSE_CLAIMS_BY_CONTEXTS, Product.RESPONSE_CLAIMS_BY_CONTEXTS, ALL_CONTEXTS),
        (Product.RESPONSE_CLAIMS, Product.RESPONSE_CLAIMS_BY_CONTEXTS, ALL_CONTEXTS),
        (Product.REFERENCE_CLAIMS, Product.CLAIMS_BY_EACH_CONTEXT, "context:0"),
    ],
)
def test_a_gap_in_what_a_product_is_made_from_is_a_gap(gap: Product, product: Product, premise: str) -> None:
    outcome = Score.failed("the reply was cut off")
    evidence = Evidence(SAMPLE, gaps={gap: outcome})
    with pytest.raises(MissingProductError) as missing:
        evidence.supports(Side.RESPONSE, premise, product)
    assert missing.value.outcome == outcome


def test_a_gap_elsewhere_does_not_matter() -> None:
    evidence = Evidence(SAMPLE, claims=CLAIMS, gaps={Product.REFERENCE_CLAIMS: Score.failed("cut off")})
    assert evidence.claim_ids(Side.RESPONSE, Product.RESPONSE_CLAIMS) == ("r1", "r0")


def test_a_judge_that_cannot_rate_makes_the_cell_undefined() -> None:
    unable = Rating("aspect", None, reasons.NEEDS_LANGUAGE_MODEL, unable=True)
    with pytest.raises(MissingProductError) as missing:
        Evidence(SAMPLE, ratings={"m": [unable]}).ratings_of("m")
    assert missing.value.outcome == Score.undefined(reasons.NEEDS_LANGUAGE_MODEL)
    mixed = [unable, Rating("aspect", "1")]
    assert Evidence(SAMPLE, ratings={"m": mixed}).ratings_of("m") == mixed
    assert Evidence(SAMPLE).ratings_of("m") == ()


@pytest.mark.parametrize(
    ("side", "premise", "product"),
    [
        (Side.REFERENCE, ALL_CONTEXTS, Product.RESPONSE_CLAIMS_BY_CONTEXTS),
        (Side.RESPONSE, "reference", Product.RESPONSE_CLAIMS_BY_CONTEXTS),
        (Side.RESPONSE, ALL_CONTEXTS, Product.CLAIMS_BY_EACH_CONTEXT),
    ],
)
def test_verdicts_that_a_product_does_not_hold_are_an_error(side: Side, premise: str, product: Product) -> None:
    with pytest.raises(ValueError, match="does not hold verdicts on the"):
        Evidence(SAMPLE, claims=CLAIMS).supports(side, premise, product)


def test_claims_and_entities_that_a_product_does_not_hold_are_an_error() -> None:
    with pytest.raises(ValueError, match="'response claims' does not hold the claims of the reference"):
        Evidence(SAMPLE).claim_ids(Side.REFERENCE, Product.RESPONSE_CLAIMS)
    with pytest.raises(ValueError, match="'context entities' does not hold the entities of the reference"):
        Evidence(SAMPLE).entity_set(Side.REFERENCE, Product.CONTEXT_ENTITIES)
