"""Products request the verdicts that they hold, each once, and nothing that nobody reads."""

from dataclasses import replace

import pytest

from metric_core.declarations.requested_verdicts import (
    EMPTY_PREMISE,
    EMPTY_TARGET,
    REQUESTERS,
    QuestionWriter,
    RequestedVerdict,
    requester_of,
)
from metric_core.evidence import BY_EARLIER_ANSWERS, Evidence, products_of
from metric_core.metrics.faithfulness import FAITHFULNESS
from metric_core.prompts.judge_questions import ask_key_point, ask_verdict
from metric_core.question_kinds import QuestionKind
from metric_core.records import Sample, Side, VerdictKind, VerdictRequest
from metric_core.stages import PRODUCTS, Product, Stage

SAMPLE = Sample(
    user_input="Does it rain?",
    response="It rains, as anyone can see who looks out of the window for a moment or two.",
    reference=" ",
    retrieved_contexts=("Rain.", " "),
    earlier_answers=("It rained.",),
)
ROW = Evidence(SAMPLE, claims={side: {f"{side}:{i}": f"{side} {i}." for i in range(2)} for side in Side})
SUPPORT = VerdictKind.SUPPORT
OF_METRICS = {Product.REQUESTED_VERDICTS, Product.REQUESTED_LEVELS}


def test_every_product_of_verdicts_requests_them_except_those_of_single_metrics() -> None:
    of_stage = {product for product, spec in PRODUCTS.items() if spec.stage is Stage.VERDICTS}
    assert set(REQUESTERS) == of_stage - OF_METRICS


@pytest.mark.parametrize("product", REQUESTERS)
def test_a_product_holds_the_verdicts_that_it_requests(product: Product) -> None:
    found = REQUESTERS[product].first(ROW)
    assert len({verdict.key for verdict in found}) == len(found)
    assert all(product in products_of(*verdict.key) for verdict in found)
    assert {verdict.asks for verdict in found} <= {PRODUCTS[product].asks}


def test_claims_without_support_are_looked_for_elsewhere_if_the_row_has_anything_else() -> None:
    then = REQUESTERS[Product.RESPONSE_CLAIMS_BY_CONTEXTS].then
    assert then is not None
    known = replace(ROW, verdicts={(SUPPORT, "response:0", "contexts"): 0.0, (SUPPORT, "response:1", "contexts"): 1.0})
    assert then(known) == [RequestedVerdict((SUPPORT, "response:0", BY_EARLIER_ANSWERS))]
    assert not then(replace(known, sample=replace(SAMPLE, earlier_answers=None)))
    assert not then(replace(known, verdicts={(SUPPORT, "response:0", "contexts"): None}))


def test_noise_requests_step_by_step_what_its_formula_reads() -> None:
    then = REQUESTERS[Product.CLAIMS_BY_EACH_CONTEXT].then
    assert then is not None
    assert not then(ROW)
    by_reference = {(SUPPORT, "response:0", "reference"): 0.0, (SUPPORT, "response:1", "reference"): 1.0}
    known = replace(ROW, verdicts=by_reference)
    wrong = [RequestedVerdict((SUPPORT, "response:0", context)) for context in ("context:0", "context:1")]
    assert then(known) == wrong
    known = replace(ROW, verdicts={**by_reference, wrong[0].key: 1.0, wrong[1].key: 0.0})
    assert then(known) == [
        *wrong,
        *(RequestedVerdict((SUPPORT, claim, "context:0")) for claim in ("reference:0", "reference:1")),
    ]
    assert not then(replace(known, claims={Side.RESPONSE: ROW.claims[Side.RESPONSE]}))


def test_a_metric_requests_in_two_levels_or_three_and_follows_up_if_it_says_so() -> None:
    wanted = [
        VerdictRequest(claim="response:0", premise="context:0"),
        VerdictRequest(statement="It is wet.", premise_text="It pours.", has_levels=True),
    ]
    metric = replace(
        FAITHFULNESS,
        columns=lambda _: (),
        products=lambda _: (Product.RESPONSE_CLAIMS, *sorted(OF_METRICS)),
        verdicts=lambda _evidence, _parameters: wanted,
    )
    requester = requester_of(metric.request())
    asked = requester.first(ROW)
    assert [(verdict.key[0], verdict.asks, verdict.own) for verdict in asked] == [
        (VerdictKind.SUPPORT, QuestionKind.VERDICT, wanted[0]),
        (VerdictKind.FULL_SUPPORT, QuestionKind.KEY_POINT, wanted[1]),
    ]
    writer = QuestionWriter(ROW)
    assert [writer.write(verdict) for verdict in asked] == [
        ask_verdict("response 0.", "Rain."),
        ask_key_point("It is wet.", "It pours."),
    ]
    assert requester.then is None
    assert requester_of(replace(metric, follows_up=True).request()).then is not None


def test_what_needs_no_question_has_a_reason() -> None:
    writer = QuestionWriter(ROW)
    blank, unread = (RequestedVerdict((SUPPORT, "response:0", premise)) for premise in ("context:1", "reference"))
    useful = REQUESTERS[Product.USEFULNESS_FOR_REFERENCE].first(ROW)
    assert [writer.write(verdict) for verdict in (blank, unread, *useful)] == [
        EMPTY_PREMISE,
        EMPTY_PREMISE,
        EMPTY_TARGET,
        EMPTY_PREMISE,
    ]
