"""Hold the results of the stages for one sample, in the form that metrics read."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from metric_core import reasons
from metric_core.columns import ColumnType
from metric_core.joint_contexts import contexts_of, contexts_premise
from metric_core.records import (
    PREMISE_TEXT,
    STATEMENT,
    Importance,
    Place,
    Question,
    Rating,
    Sample,
    Score,
    Side,
    Support,
    VerdictKind,
    VerdictRequest,
    finite_number,
)
from metric_core.stages import PRODUCTS, Product, Stage, closure

ALL_CONTEXTS = "contexts"
"""Premise: all retrieved contexts, joined by newlines."""
SOURCES = "sources"
"""Premise: the retrieved contexts, those of earlier questions of the conversation, and results of tools."""
BY_EARLIER_ANSWERS = "earlier_answers"
"""Premise: the responses to earlier questions of the conversation. No product holds its verdicts."""
BY_REFERENCE = "reference"
"""Premise: the reference."""
BY_RESPONSE = "response"
"""Premise: the response."""
BY_USER_INPUT = "user_input"
"""Premise of relevance: the user question."""

SUPPORTS: dict[Product, tuple[Side, str]] = {
    Product.RESPONSE_CLAIMS_BY_CONTEXTS: (Side.RESPONSE, ALL_CONTEXTS),
    Product.REFERENCE_CLAIMS_BY_CONTEXTS: (Side.REFERENCE, ALL_CONTEXTS),
    Product.REFERENCE_SENTENCES_BY_CONTEXTS: (Side.REFERENCE_SENTENCE, ALL_CONTEXTS),
    Product.REFERENCE_CONTEXT_CLAIMS_BY_CONTEXTS: (Side.REFERENCE_CONTEXT, ALL_CONTEXTS),
    Product.RESPONSE_CLAIMS_BY_REFERENCE: (Side.RESPONSE, BY_REFERENCE),
    Product.REFERENCE_CLAIMS_BY_RESPONSE: (Side.REFERENCE, BY_RESPONSE),
    Product.KEY_POINTS_BY_RESPONSE: (Side.KEY_POINT, BY_RESPONSE),
    Product.KEY_POINTS_BY_CONTEXTS: (Side.KEY_POINT, ALL_CONTEXTS),
}
"""Products that hold the verdicts on all claims (or sentences) of a side against one premise."""

BY_EACH_CONTEXT: dict[Side, tuple[Product, ...]] = {
    Side.RESPONSE: (Product.CLAIMS_BY_EACH_CONTEXT, Product.RESPONSE_CLAIMS_BY_EACH_CONTEXT),
    Side.REFERENCE: (Product.CLAIMS_BY_EACH_CONTEXT, Product.REFERENCE_CLAIMS_BY_EACH_CONTEXT),
}
"""Products that hold verdicts on the claims of a side against single contexts."""

ON_SOURCES = Product.RESPONSE_CLAIMS_BY_CONTEXTS
"""The product whose verdicts are by all sources of a conversation; a retriever is not judged by what others found."""

_PRODUCT_OF_SUPPORT = {support: product for product, support in SUPPORTS.items()}
_PRODUCT_OF_SUPPORT[Side.RESPONSE, SOURCES] = ON_SOURCES
_PRODUCT_OF_KIND = {
    VerdictKind.USEFULNESS_FOR_REFERENCE: Product.USEFULNESS_FOR_REFERENCE,
    VerdictKind.USEFULNESS_FOR_RESPONSE: Product.USEFULNESS_FOR_RESPONSE,
    VerdictKind.RELEVANCE: Product.SENTENCE_RELEVANCE,
    VerdictKind.FULL_SUPPORT: Product.REQUESTED_LEVELS,
    VerdictKind.PARTIAL_SUPPORT: Product.KEY_POINTS_BY_RESPONSE,
}
_CLOSURES = {product: closure([product]) for product in Product}
_SIDES = {
    product: frozenset(PRODUCTS[part].side for part in parts if PRODUCTS[part].stage is Stage.CLAIMS)
    for product, parts in _CLOSURES.items()
}
"""Product -> the sides whose claims it holds, or is computed from."""


_OWN_TYPES: Mapping[ColumnType, type | tuple[type, ...]] = {
    ColumnType.TEXT: str,
    ColumnType.TEXTS: list,
    ColumnType.FLAG: bool,
    ColumnType.ANY: object,
}


def _has_type(value: Any, kind: ColumnType) -> bool:
    is_right = isinstance(value, _OWN_TYPES[kind])
    return is_right and (kind is not ColumnType.TEXTS or all(isinstance(item, str) for item in value))


def context_premise(index: int) -> str:
    """Return the name of the premise that is one retrieved context, by its index from 0.

    >>> context_premise(2)
    'context:2'
    """
    return f"context:{index}"


def has_premise(sample: Sample, premise: str) -> bool:
    """Return whether a sample has a premise, such as one of its contexts or several together.

    >>> row = Sample(retrieved_contexts=("It rains.", "It is dry."))
    >>> has_premise(row, "contexts:0,1"), has_premise(row, "contexts:1,0"), has_premise(row, "context:2")
    (True, False, False)
    """
    indices = contexts_of(premise)
    if not indices:
        return premise in premises_of(sample)
    return premise == contexts_premise(indices) and max(indices) < len(sample.retrieved_contexts or ())


def premises_of(sample: Sample) -> tuple[str, ...]:
    """Return the names of the premises that a sample has, apart from several contexts together.

    >>> premises_of(Sample(response="It rains.", retrieved_contexts=("Rain.",)))
    ('contexts', 'response', 'context:0')
    """
    whole = {
        ALL_CONTEXTS: sample.retrieved_contexts,
        SOURCES: sample.earlier_contexts or sample.tool_results,
        BY_EARLIER_ANSWERS: sample.earlier_answers,
        BY_REFERENCE: sample.reference,
        BY_RESPONSE: sample.response,
    }
    single = (context_premise(i) for i in range(len(sample.retrieved_contexts or ())))
    return (*(name for name, text in whole.items() if text is not None), *single)


def joint_premise(sample: Sample, product: Product) -> str:
    """Return the name of the premise of a product of `SUPPORTS` for a row.

    >>> joint_premise(Sample(retrieved_contexts=("It rains.",)), Product.RESPONSE_CLAIMS_BY_CONTEXTS)
    'contexts'
    >>> joint_premise(Sample(tool_results=("It rains.",)), Product.RESPONSE_CLAIMS_BY_CONTEXTS)
    'sources'
    """
    premise = SUPPORTS[product][1]
    return SOURCES if product is ON_SOURCES and (sample.earlier_contexts or sample.tool_results) else premise


def premise_text(sample: Sample, premise: str) -> str:
    r"""Return the text of a premise.

    >>> premise_text(Sample(retrieved_contexts=("It rains.", "It is dry.")), context_premise(1))
    'It is dry.'
    >>> premise_text(Sample(retrieved_contexts=("It rains.", "It is dry.", "It snows.")), contexts_premise([0, 2]))
    'It rains.\nIt snows.'
    >>> premise_text(Sample(user_input="Is it dry?", response="No."), BY_RESPONSE)
    'Is it dry? No.'
    """
    whole = {
        ALL_CONTEXTS: sample.joined_contexts,
        SOURCES: sample.joined_sources,
        BY_EARLIER_ANSWERS: "\n".join(sample.earlier_answers or ()),
        BY_REFERENCE: sample.with_question(sample.reference),
        BY_RESPONSE: sample.with_question(sample.response),
    }
    if premise in whole:
        return whole[premise] or ""
    contexts = sample.retrieved_contexts or ()
    return "\n".join(contexts[index] for index in contexts_of(premise))


def products_of(kind: VerdictKind, claim_id: str, premise: str) -> tuple[Product, ...]:
    """Return the products that a verdict belongs to.

    >>> products_of(VerdictKind.SUPPORT, "reference:0", BY_RESPONSE)
    (<Product.REFERENCE_CLAIMS_BY_RESPONSE: 'reference claims by response'>,)
    """
    origin = claim_id.partition(":")[0]
    if kind is VerdictKind.PARTIAL_SUPPORT and origin != Side.KEY_POINT:
        return (Product.REQUESTED_LEVELS,)
    if kind is not VerdictKind.SUPPORT:
        return (_PRODUCT_OF_KIND[kind],)
    if premise == BY_EARLIER_ANSWERS and origin != STATEMENT:
        return ()
    if origin == STATEMENT or premise.startswith((f"{PREMISE_TEXT}:", f"{ALL_CONTEXTS}:")):
        return (Product.REQUESTED_VERDICTS,)
    return _products_of_support(Side(origin), premise)


def product_of_usefulness(kind: VerdictKind) -> Product:
    """Return the product that holds the usefulness verdicts of a kind."""
    return _PRODUCT_OF_KIND[kind]


def _products_of_support(side: Side, premise: str) -> tuple[Product, ...]:
    whole = _PRODUCT_OF_SUPPORT.get((side, premise))
    return BY_EACH_CONTEXT.get(side, ()) if whole is None else (whole,)


class MissingProductError(Exception):
    """A missing product that a metric reads; `outcome` is the score of the metric in this case."""

    def __init__(self, outcome: Score) -> None:
        super().__init__(outcome.reason)
        self.outcome = outcome


@dataclass(frozen=True, slots=True)
class Evidence:
    """Products of one row.

    Every reading method raises MissingProductError if the product, or a product it is computed from, is missing as a
    whole. The error carries the score recorded in `gaps`.

    Args:
        sample: The row itself.
        claims: Side -> claim (or sentence) id -> text.
        verdicts: (kind, claim id, premise) -> support. The claim id of usefulness verdicts is "".
        entities: Side -> distinct entities.
        questions: Regenerated questions.
        question_similarities: Cosine of each regenerated question with the user question.
        answer_similarities: Product -> similarity of response and reference.
        ratings: Metric key -> ratings by the judge.
        gaps: Product -> undefined or failed score that says why the product is missing for this row.
        places: Claim (or sentence) id -> place in its text, for claims whose place is known.
        importances: Key point id -> importance; one without is vital.
        requested: Verdicts that the metric has requested, in its order.
        decisions: (kind, claim id, premise) -> the judge's verdict as 0 or 1, where `verdicts` has probabilities;
            None if they are the same.
        computed: Name -> product of a plugin, the metric that read it first, and its value; filled as metrics read.
    """

    sample: Sample
    claims: Mapping[Side, Mapping[str, str]] = field(default_factory=dict)
    verdicts: Mapping[tuple[VerdictKind, str, str], Support] = field(default_factory=dict)
    entities: Mapping[Side, Sequence[str]] = field(default_factory=dict)
    questions: Sequence[Question] | None = None
    question_similarities: Sequence[float | None] | None = None
    answer_similarities: Mapping[Product, float | None] = field(default_factory=dict)
    ratings: Mapping[str, Sequence[Rating]] = field(default_factory=dict)
    gaps: Mapping[Product, Score] = field(default_factory=dict)
    places: Mapping[str, Place] = field(default_factory=dict)
    requested: Collection[VerdictRequest] = ()
    decisions: Mapping[tuple[VerdictKind, str, str], Support] | None = None
    importances: Mapping[str, Importance] = field(default_factory=dict)
    computed: dict[str, tuple[Any, str, Any]] = field(default_factory=dict, compare=False, repr=False)

    def column(self, name: str) -> Any:
        """Return a column of the sample, which may be empty but not missing."""
        value = getattr(self.sample, name)
        if value is None:
            raise MissingProductError(Score.undefined(reasons.missing_column(name)))
        return value

    def own_column(self, name: str, kind: ColumnType) -> Any:
        """Return a column of the data beyond those of a sample, for plugins that declare it.

        Raises:
            MissingProductError: The row has no value, or one of another type.
        """
        value = (self.sample.extras or {}).get(name)
        if value is None:
            raise MissingProductError(Score.undefined(reasons.missing_column(name)))
        if kind is ColumnType.NUMBER:
            value = finite_number(value)  # a number in CSV is a text
        elif not _has_type(value, kind):
            value = None
        if value is None:
            raise MissingProductError(Score.undefined(reasons.wrong_type(name, kind)))
        return value

    def product(self, name: str) -> Any:
        """Return the product of a plugin that the metric declares in its own_products, computing it on the first read.

        Raises:
            MissingProductError: The product has no value for the row. Its reason becomes the score of the metric.
            LookupError: The evidence is not that of a metric, which knows how to compute the product.
        """
        if name not in self.computed:
            raise LookupError(f"the product {name!r} is computed when a metric reads it")
        return self.computed[name][2]

    def claim_ids(self, side: Side, product: Product) -> Sequence[str]:
        """Return the ids of the claims (or sentences) of a side, in order.

        Raises:
            ValueError: If the product does not hold that side.
        """
        if side not in _SIDES[product]:
            raise ValueError(f"the product {str(product)!r} does not hold the claims of the {side}")
        self._require(product)
        return tuple(self.claims.get(side, {}))

    def place(self, claim_id: str) -> Place | None:
        """Return the place of a claim or sentence in its text; None if no sentence of the text resembles the claim."""
        return self.places.get(claim_id)

    def importance(self, claim_id: str) -> Importance:
        """Return the importance of a key point."""
        return self.importances.get(claim_id, Importance.VITAL)

    def requested_supports(self, *, in_levels: bool = False) -> list[Support]:
        """Return the support of each verdict that the metric requested, in order; `in_levels`: some in three levels."""
        for product in (Product.REQUESTED_VERDICTS, *((Product.REQUESTED_LEVELS,) if in_levels else ())):
            self._require(product)
        return [request.support(self.verdicts) for request in self.requested]

    def decision(self, request: VerdictRequest) -> Support:
        """Return the judge's verdict on an earlier request of the metric: 1 or 0; None if it gave no usable one.

        The verdict is that of the judge, whether scores count probabilities or not. A metric that follows up its
        requests decides by it what it asks next.

        Raises:
            LookupError: The metric has not requested this verdict.
        """
        self._require(Product.REQUESTED_VERDICTS)
        if request not in self.requested:
            raise LookupError(f"{request!r} has not been requested")
        decisions = self.verdicts if self.decisions is None else self.decisions
        return decisions.get((request.kind, *request.key))

    def supports(
        self, side: Side, premise: str, product: Product, kind: VerdictKind = VerdictKind.SUPPORT
    ) -> list[Support]:
        """Return the support of every claim of a side by a premise, in the order of the claims.

        In a conversation, the support of response claims by all contexts is that by the contexts of earlier questions
        and the results of tools, too.

        Args:
            kind: VerdictKind.PARTIAL_SUPPORT counts partial support as support, where it is judged (key points).

        Raises:
            ValueError: If the product does not hold verdicts on that side by that premise.
        """
        if product not in _products_of_support(side, premise):
            raise ValueError(f"the product {str(product)!r} does not hold verdicts on the {side} by the {premise}")
        if premise == ALL_CONTEXTS and product is ON_SOURCES:
            premise = joint_premise(self.sample, product)
        return [self.verdicts.get((kind, claim, premise)) for claim in self.claim_ids(side, product)]

    def context_supports(self, side: Side, product: Product) -> list[list[Support]]:
        """Return the support of every claim of a side by each retrieved context: one list per context, in rank order.

        With Product.CLAIMS_BY_EACH_CONTEXT and binary verdicts, only those that `noise_sensitivity` reads are
        available: verdicts on response claims that the reference does not support, and on reference claims by contexts
        that support such a claim. All others are None. The products that name one side have all its verdicts.
        """
        contexts = self.column("retrieved_contexts")
        return [self.supports(side, context_premise(i), product) for i in range(len(contexts))]

    def usefulness(self, kind: VerdictKind) -> list[Support]:
        """Return the usefulness of every retrieved context, in rank order."""
        self._require(_PRODUCT_OF_KIND[kind])
        contexts = self.column("retrieved_contexts")
        return [self.verdicts.get((kind, "", context_premise(i))) for i in range(len(contexts))]

    def relevance(self) -> list[Support]:
        """Return the relevance of every context sentence to the user question, in the order of the sentences."""
        sentences = self.claim_ids(Side.CONTEXT_SENTENCE, Product.CONTEXT_SENTENCES)
        self._require(Product.SENTENCE_RELEVANCE)
        return [self.verdicts.get((VerdictKind.RELEVANCE, sentence, BY_USER_INPUT)) for sentence in sentences]

    def entity_set(self, side: Side, product: Product) -> Sequence[str]:
        """Return the distinct entities found in a text.

        With Product.REFERENCE_ENTITIES_IN_CONTEXTS, those of the contexts that the reference names too are there, and
        others only if another metric of the run needs them.

        Raises:
            ValueError: If the product does not hold the entities of that text.
        """
        if (PRODUCTS[product].stage, PRODUCTS[product].side) != (Stage.ENTITIES, side):
            raise ValueError(f"the product {str(product)!r} does not hold the entities of the {side}")
        self._require(product)
        return self.entities.get(side, ())

    def regenerated_questions(self) -> Sequence[Question]:
        """Return the questions regenerated from the response."""
        self._require(Product.QUESTIONS)
        return self.questions or ()

    def cosines(self) -> Sequence[float | None]:
        """Return the cosine of each regenerated question with the user question; None for a zero vector."""
        self._require(Product.QUESTION_SIMILARITY)
        return self.question_similarities or ()

    def answer_similarity(self, product: Product = Product.ANSWER_SIMILARITY) -> float | None:
        """Return the similarity of response and reference; None for a zero vector."""
        self._require(product)
        return self.answer_similarities.get(product)

    def ratings_of(self, metric_key: str) -> Sequence[Rating]:
        """Return the judge's ratings for a metric; raise MissingProductError if it can answer none of its questions."""
        self._require(Product.RATINGS)
        ratings = self.ratings.get(metric_key, ())
        if ratings and all(rating.unable for rating in ratings):
            raise MissingProductError(Score.undefined(ratings[0].reason or reasons.NEEDS_LANGUAGE_MODEL))
        return ratings

    def _require(self, product: Product) -> None:
        """Raise MissingProductError if the product, or a product it is computed from, is missing."""
        for part in self.gaps:
            if part in _CLOSURES[product]:
                raise MissingProductError(self.gaps[part])
