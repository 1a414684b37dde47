"""Declare which verdicts each product requests, and how a verdict is asked for.

Verdicts that several metrics read belong to a product, which requests them once, whichever metrics read it. Verdicts
that only one metric reads are requested by its function `Metric.verdicts`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import NamedTuple, TypeAlias

from metric_core import columns
from metric_core.declarations.metric import MetricRequest
from metric_core.evidence import (
    ALL_CONTEXTS,
    BY_EARLIER_ANSWERS,
    BY_REFERENCE,
    BY_USER_INPUT,
    ON_SOURCES,
    SUPPORTS,
    Evidence,
    context_premise,
    joint_premise,
    premise_text,
)
from metric_core.prompts.judge_questions import (
    JudgeQuestion,
    ask_key_point,
    ask_relevant_sentences,
    ask_usefulness_for_reference,
    ask_usefulness_for_response,
    ask_verdict,
)
from metric_core.question_kinds import QuestionKind
from metric_core.records import Side, VerdictKey, VerdictKind, VerdictRequest
from metric_core.stages import PRODUCTS, Product

EMPTY_PREMISE = "empty premise"
EMPTY_TARGET = "nothing to be useful for"


class RequestedVerdict(NamedTuple):
    """A verdict that a product or a metric requests for a row.

    Args:
        key: Kind, claim and premise; no claim for usefulness, and for the sentences of a row, which one reply judges.
            Requests of several products and metrics with the same key are one.
        asks: Kind of the question. One about a key point has three answers and therefore gives two verdicts: whether
            there is support, and whether there is any.
        own: Request of a metric that it comes from; None for that of a product.
    """

    key: VerdictKey
    asks: QuestionKind = QuestionKind.VERDICT
    own: VerdictRequest | None = None


Requests: TypeAlias = Callable[[Evidence], Sequence[RequestedVerdict]]
"""A function from the evidence of a row to the verdicts that are requested for it."""


def _nothing(_: Evidence) -> Sequence[RequestedVerdict]:
    return ()


@dataclass(frozen=True, slots=True)
class Requester:
    """The requests of a product or a metric for a row.

    Args:
        first: Verdicts that it requests in any case.
        then: Verdicts that it requests by those which are known; called whenever some have become known. None if there
            are none.
    """

    first: Requests = _nothing
    then: Requests | None = None


def requester_of(metric: MetricRequest) -> Requester:
    """Return what a metric requests beside the verdicts of its products."""

    def request(evidence: Evidence) -> Sequence[RequestedVerdict]:
        return [
            RequestedVerdict(
                (own.kind, *own.key), QuestionKind.KEY_POINT if own.has_levels else QuestionKind.VERDICT, own
            )
            for own in metric.verdict_requests(evidence)
        ]

    return Requester(request, request if metric.metric.follows_up else None)


class QuestionWriter:
    """A writer of the questions about one row, which joins the text of each premise once."""

    def __init__(self, evidence: Evidence) -> None:
        self._sample = evidence.sample
        self._sentences = evidence.claims.get(Side.CONTEXT_SENTENCE, {})
        self._claims = {name: text for claims in evidence.claims.values() for name, text in claims.items()}
        self._premise = cache(partial(premise_text, evidence.sample))

    def write(self, verdict: RequestedVerdict) -> JudgeQuestion | str:
        """Return the question that gives a verdict; the reason if it is no without a question."""
        (_, claim_id, name), asks, own = verdict
        if asks is QuestionKind.RELEVANT_SENTENCES:
            return ask_relevant_sentences(list(self._sentences.values()), self._sample.user_input or "")
        premise = self._premise(name) if own is None or own.premise_text is None else own.premise_text
        if not premise.strip():
            return EMPTY_PREMISE
        if asks in _USEFULNESS:
            column, ask = _USEFULNESS[asks]
            target = getattr(self._sample, column) or ""
            return ask(premise, self._sample.user_input or "", target) if target.strip() else EMPTY_TARGET
        claim = self._claims[claim_id] if own is None or own.statement is None else own.statement
        return ask_key_point(claim, premise) if asks is QuestionKind.KEY_POINT else ask_verdict(claim, premise)


_USEFULNESS = {
    QuestionKind.USEFULNESS_FOR_REFERENCE: (columns.REFERENCE, ask_usefulness_for_reference),
    QuestionKind.USEFULNESS_FOR_RESPONSE: (columns.RESPONSE, ask_usefulness_for_response),
}
"""Kind of question -> what a passage is useful for, and the function that asks."""


def _by_premise(product: Product) -> Requests:
    """Return the requests of a product of `SUPPORTS`: all claims of a side by one premise."""
    side, asks = SUPPORTS[product][0], PRODUCTS[product].asks or QuestionKind.VERDICT

    def request(evidence: Evidence) -> Sequence[RequestedVerdict]:
        premise = joint_premise(evidence.sample, product)
        return [
            RequestedVerdict((VerdictKind.SUPPORT, claim, premise), asks) for claim in evidence.claims.get(side, ())
        ]

    return request


def _elsewhere(product: Product, premise: str, column: str) -> Requests:
    """Return the requests for evidence on what the premise of a product does not support: by another premise.

    A claim without support may at least have been said before, and a fact that the response leaves out may be in the
    contexts. No metric counts this as support.

    Args:
        column: Column of the sample that the other premise is made of.
    """
    by_premise = _by_premise(product)

    def request(evidence: Evidence) -> Sequence[RequestedVerdict]:
        if not getattr(evidence.sample, column):
            return ()
        unsupported = (each.key for each in by_premise(evidence) if evidence.verdicts.get(each.key) == 0)
        return [RequestedVerdict((kind, claim, premise)) for kind, claim, _ in unsupported]

    return request


def _by_each_context(side: Side) -> Requests:
    def request(evidence: Evidence) -> Sequence[RequestedVerdict]:
        claims = evidence.claims.get(side, ())
        return [
            RequestedVerdict((VerdictKind.SUPPORT, claim, context))
            for context in map(context_premise, range(len(evidence.sample.retrieved_contexts or ())))
            for claim in claims
        ]

    return request


def _read_by_noise(evidence: Evidence) -> Sequence[RequestedVerdict]:
    """Return the verdicts by single contexts that noise sensitivity reads, if verdicts are yes or no.

    It reads those on response claims that the reference does not support, and whether a context is relevant only where
    it supports such a claim. A reference without claims needs none.
    """
    contexts = [context_premise(i) for i in range(len(evidence.sample.retrieved_contexts or ()))]
    claims, verdicts = evidence.claims, evidence.verdicts
    reference = claims.get(Side.REFERENCE, ())
    if not reference:
        return ()
    support = VerdictKind.SUPPORT
    wrong = [claim for claim in claims.get(Side.RESPONSE, ()) if verdicts.get((support, claim, BY_REFERENCE)) == 0]
    supporting = [context for context in contexts if any(verdicts.get((support, each, context)) == 1 for each in wrong)]
    return [
        *(RequestedVerdict((support, claim, context)) for context in contexts for claim in wrong),
        *(RequestedVerdict((support, claim, context)) for context in supporting for claim in reference),
    ]


def _usefulness(kind: VerdictKind, asks: QuestionKind) -> Requests:
    def request(evidence: Evidence) -> Sequence[RequestedVerdict]:
        contexts = range(len(evidence.sample.retrieved_contexts or ()))
        return [RequestedVerdict((kind, "", context_premise(i)), asks) for i in contexts]

    return request


def _relevance(evidence: Evidence) -> Sequence[RequestedVerdict]:
    if not evidence.claims.get(Side.CONTEXT_SENTENCE):
        return ()
    return [RequestedVerdict((VerdictKind.RELEVANCE, "", BY_USER_INPUT), QuestionKind.RELEVANT_SENTENCES)]


_THEN = {
    ON_SOURCES: _elsewhere(ON_SOURCES, BY_EARLIER_ANSWERS, columns.EARLIER_ANSWERS),
    Product.KEY_POINTS_BY_RESPONSE: _elsewhere(
        Product.KEY_POINTS_BY_RESPONSE, ALL_CONTEXTS, columns.RETRIEVED_CONTEXTS
    ),
}

REQUESTERS: Mapping[Product, Requester] = {
    **{product: Requester(_by_premise(product), _THEN.get(product)) for product in SUPPORTS},
    Product.CLAIMS_BY_EACH_CONTEXT: Requester(then=_read_by_noise),
    Product.RESPONSE_CLAIMS_BY_EACH_CONTEXT: Requester(_by_each_context(Side.RESPONSE)),
    Product.REFERENCE_CLAIMS_BY_EACH_CONTEXT: Requester(_by_each_context(Side.REFERENCE)),
    Product.USEFULNESS_FOR_REFERENCE: Requester(
        _usefulness(VerdictKind.USEFULNESS_FOR_REFERENCE, QuestionKind.USEFULNESS_FOR_REFERENCE)
    ),
    Product.USEFULNESS_FOR_RESPONSE: Requester(
        _usefulness(VerdictKind.USEFULNESS_FOR_RESPONSE, QuestionKind.USEFULNESS_FOR_RESPONSE)
    ),
    Product.SENTENCE_RELEVANCE: Requester(_relevance),
}
"""Product -> the verdicts that it requests, for products that are verdicts."""
