"""Stages of an evaluation, their products, and the dependencies between products.

A product is computed once per row, whichever metrics read it. `closure` plans a run: it returns the products that the
chosen metrics need, with all their dependencies.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from metric_core import columns as c
from metric_core.question_kinds import QuestionKind
from metric_core.records import Side


class Stage(StrEnum):
    """Stages of an evaluation, in the order in which they run."""

    SAMPLES = "samples"
    FOLLOW_UPS = "follow_ups"
    CLAIMS = "claims"
    ENTITIES = "entities"
    QUESTIONS = "questions"
    RATINGS = "ratings"
    VERDICTS = "verdicts"
    SIMILARITY = "similarity"
    LANGUAGES = "languages"
    EXPLANATIONS = "explanations"
    AGGREGATION = "aggregation"
    DIAGNOSIS = "diagnosis"
    REPORTING = "reporting"


JUDGED = frozenset({Stage.FOLLOW_UPS, Stage.CLAIMS, Stage.QUESTIONS, Stage.RATINGS, Stage.VERDICTS, Stage.EXPLANATIONS})
"""The stages that ask a judge; the declaration of each stage is checked against it."""

_RESULTS = frozenset({Stage.LANGUAGES, Stage.AGGREGATION, Stage.DIAGNOSIS, Stage.REPORTING})
EVIDENCE_STAGES: tuple[Stage, ...] = tuple(stage for stage in Stage if stage not in {Stage.SAMPLES, *_RESULTS})
"""The stages whose tables show how a score was computed."""


class Product(StrEnum):
    """A result of a stage for one row."""

    FOLLOW_UPS = "self-contained questions"
    RESPONSE_CLAIMS = "response claims"
    RESPONSE_SENTENCES = "response sentences"
    REFERENCE_CLAIMS = "reference claims"
    REFERENCE_CONTEXT_CLAIMS = "claims of reference contexts"
    REFERENCE_SENTENCES = "reference sentences"
    KEY_POINTS = "key points"
    CONTEXT_SENTENCES = "context sentences"
    REFERENCE_ENTITIES = "reference entities"
    CONTEXT_ENTITIES = "context entities"
    REFERENCE_ENTITIES_IN_CONTEXTS = "reference entities in contexts"
    QUESTIONS = "regenerated questions"
    RATINGS = "ratings"
    RESPONSE_CLAIMS_BY_CONTEXTS = "response claims by all contexts"
    REFERENCE_CLAIMS_BY_CONTEXTS = "reference claims by all contexts"
    REFERENCE_SENTENCES_BY_CONTEXTS = "reference sentences by all contexts"
    RESPONSE_CLAIMS_BY_REFERENCE = "response claims by reference"
    REFERENCE_CLAIMS_BY_RESPONSE = "reference claims by response"
    REFERENCE_CONTEXT_CLAIMS_BY_CONTEXTS = "claims of reference contexts by all contexts"
    KEY_POINTS_BY_RESPONSE = "key points by response"
    KEY_POINTS_BY_CONTEXTS = "key points by all contexts"
    CLAIMS_BY_EACH_CONTEXT = "claims by each context"
    RESPONSE_CLAIMS_BY_EACH_CONTEXT = "response claims by each context"
    REFERENCE_CLAIMS_BY_EACH_CONTEXT = "reference claims by each context"
    REQUESTED_VERDICTS = "requested verdicts"
    REQUESTED_LEVELS = "requested verdicts in three levels"
    USEFULNESS_FOR_REFERENCE = "usefulness of contexts for the reference"
    USEFULNESS_FOR_RESPONSE = "usefulness of contexts for the response"
    SENTENCE_RELEVANCE = "relevance of context sentences"
    QUESTION_SIMILARITY = "similarity of regenerated questions"
    ANSWER_SIMILARITY = "similarity of response and reference"
    ANSWER_SIMILARITY_BY_CROSS_ENCODER = "similarity of response and reference by a cross-encoder"


@dataclass(frozen=True, slots=True)
class ProductSpec:
    """Stage and dependencies of a product.

    Args:
        columns: Sample columns that the product is computed from.
        requires: Products that the product is computed from.
        side: Side whose claims, sentences or entities the product holds.
        asks: Kind of the judge questions that it is computed from; None if it needs none, or a metric defines them.
    """

    stage: Stage
    columns: tuple[str, ...] = ()
    requires: tuple[Product, ...] = ()
    side: Side | None = None
    asks: QuestionKind | None = None


PRODUCTS: dict[Product, ProductSpec] = {
    Product.FOLLOW_UPS: ProductSpec(Stage.FOLLOW_UPS, (c.USER_INPUT, c.EARLIER_TURNS), asks=QuestionKind.FOLLOW_UP),
    Product.RESPONSE_CLAIMS: ProductSpec(Stage.CLAIMS, (c.RESPONSE,), side=Side.RESPONSE, asks=QuestionKind.CLAIMS),
    Product.RESPONSE_SENTENCES: ProductSpec(Stage.CLAIMS, (c.RESPONSE,), side=Side.RESPONSE_SENTENCE),
    Product.REFERENCE_CLAIMS: ProductSpec(Stage.CLAIMS, (c.REFERENCE,), side=Side.REFERENCE, asks=QuestionKind.CLAIMS),
    Product.REFERENCE_CONTEXT_CLAIMS: ProductSpec(
        Stage.CLAIMS, (c.REFERENCE_CONTEXTS,), side=Side.REFERENCE_CONTEXT, asks=QuestionKind.CLAIMS
    ),
    Product.REFERENCE_SENTENCES: ProductSpec(Stage.CLAIMS, (c.REFERENCE,), side=Side.REFERENCE_SENTENCE),
    Product.KEY_POINTS: ProductSpec(Stage.CLAIMS, (c.KEY_POINTS,), side=Side.KEY_POINT, asks=QuestionKind.CLAIMS),
    Product.CONTEXT_SENTENCES: ProductSpec(Stage.CLAIMS, (c.RETRIEVED_CONTEXTS,), side=Side.CONTEXT_SENTENCE),
    Product.REFERENCE_ENTITIES: ProductSpec(Stage.ENTITIES, (c.REFERENCE,), side=Side.REFERENCE),
    Product.CONTEXT_ENTITIES: ProductSpec(Stage.ENTITIES, (c.RETRIEVED_CONTEXTS,), side=Side.CONTEXT),
    Product.REFERENCE_ENTITIES_IN_CONTEXTS: ProductSpec(
        Stage.ENTITIES, (c.RETRIEVED_CONTEXTS,), (Product.REFERENCE_ENTITIES,), side=Side.CONTEXT
    ),
    Product.QUESTIONS: ProductSpec(Stage.QUESTIONS, (c.RESPONSE,), asks=QuestionKind.QUESTIONS),
    Product.RATINGS: ProductSpec(Stage.RATINGS),
    Product.RESPONSE_CLAIMS_BY_CONTEXTS: ProductSpec(
        Stage.VERDICTS, (c.RETRIEVED_CONTEXTS,), (Product.RESPONSE_CLAIMS,), asks=QuestionKind.VERDICT
    ),
    Product.REFERENCE_CLAIMS_BY_CONTEXTS: ProductSpec(
        Stage.VERDICTS, (c.RETRIEVED_CONTEXTS,), (Product.REFERENCE_CLAIMS,), asks=QuestionKind.VERDICT
    ),
    Product.REFERENCE_SENTENCES_BY_CONTEXTS: ProductSpec(
        Stage.VERDICTS, (c.RETRIEVED_CONTEXTS,), (Product.REFERENCE_SENTENCES,), asks=QuestionKind.VERDICT
    ),
    Product.RESPONSE_CLAIMS_BY_REFERENCE: ProductSpec(
        Stage.VERDICTS, (c.REFERENCE,), (Product.RESPONSE_CLAIMS,), asks=QuestionKind.VERDICT
    ),
    Product.REFERENCE_CLAIMS_BY_RESPONSE: ProductSpec(
        Stage.VERDICTS, (c.RESPONSE,), (Product.REFERENCE_CLAIMS,), asks=QuestionKind.VERDICT
    ),
    Product.REFERENCE_CONTEXT_CLAIMS_BY_CONTEXTS: ProductSpec(
        Stage.VERDICTS, (c.RETRIEVED_CONTEXTS,), (Product.REFERENCE_CONTEXT_CLAIMS,), asks=QuestionKind.VERDICT
    ),
    Product.KEY_POINTS_BY_RESPONSE: ProductSpec(
        Stage.VERDICTS, (c.RESPONSE,), (Product.KEY_POINTS,), asks=QuestionKind.KEY_POINT
    ),
    Product.KEY_POINTS_BY_CONTEXTS: ProductSpec(
        Stage.VERDICTS, (c.RETRIEVED_CONTEXTS,), (Product.KEY_POINTS,), asks=QuestionKind.VERDICT
    ),
    Product.CLAIMS_BY_EACH_CONTEXT: ProductSpec(
        Stage.VERDICTS,
        (c.RETRIEVED_CONTEXTS,),
        (Product.RESPONSE_CLAIMS, Product.REFERENCE_CLAIMS, Product.RESPONSE_CLAIMS_BY_REFERENCE),
        asks=QuestionKind.VERDICT,
    ),
    Product.RESPONSE_CLAIMS_BY_EACH_CONTEXT: ProductSpec(
        Stage.VERDICTS, (c.RETRIEVED_CONTEXTS,), (Product.RESPONSE_CLAIMS,), asks=QuestionKind.VERDICT
    ),
    Product.REFERENCE_CLAIMS_BY_EACH_CONTEXT: ProductSpec(
        Stage.VERDICTS, (c.RETRIEVED_CONTEXTS,), (Product.REFERENCE_CLAIMS,), asks=QuestionKind.VERDICT
    ),
    Product.REQUESTED_VERDICTS: ProductSpec(Stage.VERDICTS, asks=QuestionKind.VERDICT),
    Product.REQUESTED_LEVELS: ProductSpec(Stage.VERDICTS, asks=QuestionKind.KEY_POINT),
    Product.USEFULNESS_FOR_REFERENCE: ProductSpec(
        Stage.VERDICTS, (c.USER_INPUT, c.RETRIEVED_CONTEXTS, c.REFERENCE), asks=QuestionKind.USEFULNESS_FOR_REFERENCE
    ),
    Product.USEFULNESS_FOR_RESPONSE: ProductSpec(
        Stage.VERDICTS, (c.USER_INPUT, c.RETRIEVED_CONTEXTS, c.RESPONSE), asks=QuestionKind.USEFULNESS_FOR_RESPONSE
    ),
    Product.SENTENCE_RELEVANCE: ProductSpec(
        Stage.VERDICTS, (c.USER_INPUT,), (Product.CONTEXT_SENTENCES,), asks=QuestionKind.RELEVANT_SENTENCES
    ),
    Product.QUESTION_SIMILARITY: ProductSpec(Stage.SIMILARITY, (c.USER_INPUT,), (Product.QUESTIONS,)),
    Product.ANSWER_SIMILARITY: ProductSpec(Stage.SIMILARITY, (c.RESPONSE, c.REFERENCE)),
    Product.ANSWER_SIMILARITY_BY_CROSS_ENCODER: ProductSpec(Stage.SIMILARITY, (c.RESPONSE, c.REFERENCE)),
}

PRODUCT_STAGES: tuple[Stage, ...] = tuple(
    stage for stage in Stage if stage in {spec.stage for spec in PRODUCTS.values()}
)
"""The stages whose tables scores are computed from."""

_SPLIT = frozenset({Side.RESPONSE_SENTENCE, Side.REFERENCE_SENTENCE, Side.CONTEXT_SENTENCE})
"""Sides that a text is split into without a judge."""


def closure(products: Iterable[Product]) -> frozenset[Product]:
    """Return the products with all products that they depend on.

    >>> sorted(closure([Product.QUESTION_SIMILARITY]))
    [<Product.QUESTIONS: 'regenerated questions'>, <Product.QUESTION_SIMILARITY: 'similarity of regenerated questions'>]
    """
    closed: set[Product] = set()
    waiting = list(products)
    while waiting:
        product = waiting.pop()
        if product not in closed:
            closed.add(product)
            waiting.extend(PRODUCTS[product].requires)
    return frozenset(closed)


def products_on(stage: Stage, side: Side) -> tuple[Product, ...]:
    """Return the products of a stage that hold the claims, sentences or entities of a side.

    >>> products_on(Stage.CLAIMS, Side.REFERENCE)
    (<Product.REFERENCE_CLAIMS: 'reference claims'>,)
    """
    return tuple(product for product, spec in PRODUCTS.items() if (spec.stage, spec.side) == (stage, side))


def any_judged(products: Iterable[Product]) -> bool:
    """Return whether any of the products, or of their dependencies, needs a judge.

    >>> any_judged([Product.QUESTION_SIMILARITY]), any_judged([Product.ANSWER_SIMILARITY])
    (True, False)
    >>> any_judged([Product.RESPONSE_SENTENCES])
    False
    """
    specs = [PRODUCTS[product] for product in closure(products)]
    return any(spec.stage in JUDGED and spec.side not in _SPLIT for spec in specs)
