"""Restrict evidence and samples to what a metric declares that it reads.

A product that no metric declares is not computed, and reads as empty. Without these checks, a metric that forgets a
declaration would score from nothing, without an error.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from metric_core.columns import COLUMNS, ColumnType
from metric_core.declarations.guarded import Guarded
from metric_core.declarations.own_products import OwnProduct, clash
from metric_core.declarations.score_checks import score_problem
from metric_core.errors import AssayError, MetricError, PluginError
from metric_core.evidence import Evidence, MissingProductError, product_of_usefulness, products_of
from metric_core.reasons import missing_column, wrong_type
from metric_core.records import (
    Importance,
    Place,
    Question,
    Rating,
    Sample,
    Score,
    Side,
    Status,
    Support,
    VerdictKind,
    VerdictRequest,
)
from metric_core.stages import PRODUCTS, Product, Stage, closure, products_on

K = TypeVar("K")
V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class Declarations:
    """The columns and products that a metric may read.

    Args:
        metric: Name of the metric for error messages.
        key: Name of its scores.
        columns: Sample columns that it needs or may use.
        products: Products that it reads, with the products that they are computed from.
        own_columns: Columns of the data beside those of a sample, with the types of their values.
        function: Name of a function of the metric that can read fewer products than its formula.
        own_products: Name -> product of the plugin that it reads.
        product: Name of the product of the plugin that reads, in place of the formula.
        follows_up: True for a function that may read the verdicts on its earlier requests.
    """

    metric: str
    key: str
    columns: frozenset[str]
    products: frozenset[Product]
    own_columns: Mapping[str, ColumnType] = field(default_factory=dict)
    function: str = ""
    own_products: Mapping[str, OwnProduct] = field(default_factory=dict)
    product: str = ""
    follows_up: bool = False

    def before_verdicts(self, *, follows_up: bool = False) -> "Declarations":
        """Return the declarations for the function that requests verdicts, which exist only afterwards.

        Args:
            follows_up: True if it is called again with the verdicts that it has requested.
        """
        claims = frozenset(product for product in self.products if PRODUCTS[product].stage is Stage.CLAIMS)
        return replace(self, products=claims, function="verdicts", own_products={}, follows_up=follows_up)

    def of_product(self, product: OwnProduct) -> "Declarations":
        """Return the declarations for the function of a product of the plugin."""
        return Declarations(
            self.metric,
            self.key,
            frozenset({*product.columns, *product.optional_columns}),
            closure(product.products),
            product.own_columns,
            product=product.name,
        )

    def error(self, problem: str) -> MetricError:
        """Return the error that describes a violation of the declarations."""
        reader = f"the product {self.product!r} of the metric" if self.product else "the metric"
        return MetricError(f"{reader} {self.metric} {problem}")

    def require_column(self, name: str) -> None:
        """Raise MetricError if a column is not declared."""
        if name not in self.columns:
            raise self.error(
                f"reads the column {name!r}, which it does not declare; add it to its "
                f"{'reads' if self.product else 'columns'}, or to its optional_columns if it can do without"
            )

    def require_own_column(self, name: str) -> None:
        """Raise MetricError if a column beside those of a sample is not declared."""
        if name not in self.own_columns:
            raise self.error(f"reads the column {name!r}, which it does not declare; add it to its own_columns")

    def require_product(self, product: Product) -> None:
        """Raise MetricError if a product is not declared."""
        if product not in self.products:
            if self.function:
                raise self.error(
                    f"reads the product {str(product)!r} in its function {self.function}, which can read declared "
                    "claims and sentences only"
                )
            raise self._undeclared(f"the product {str(product)!r}")

    def require_requests(self) -> None:
        """Raise MetricError if verdicts on requests are not declared, or the function that requests reads them once."""
        if self.function and not self.follows_up:
            raise self.error(
                f"reads verdicts in its function {self.function}; set follows_up=True to be called again with them"
            )
        if not self.function:
            self.require_product(Product.REQUESTED_VERDICTS)

    def require_own_product(self, name: str) -> OwnProduct:
        """Return a declared product of the plugin; raise MetricError if it is not declared."""
        if self.product:
            raise self.error(f"reads the product {name!r}; a product of a plugin cannot read another one")
        if self.function:
            raise self.error(
                f"reads the product {name!r} in its function {self.function}, which can read declared claims and "
                "sentences only"
            )
        if name not in self.own_products:
            raise self.error(f"reads the product {name!r}, which it does not declare; add it to its own_products")
        return self.own_products[name]

    def require_one_of(self, products: Collection[Product]) -> None:
        """Raise MetricError if none of the products that hold a value is declared."""
        if self.products.isdisjoint(products):
            wanted = " or ".join(repr(str(product)) for product in products)
            raise self._undeclared(f"a part of the product {wanted}")

    def _undeclared(self, what: str) -> MetricError:
        place = "reads" if self.product else "products"
        return self.error(f"reads {what}, which it does not declare; add it to its {place}")

    def require_key(self, key: str) -> None:
        """Raise MetricError if ratings are those of another metric."""
        self.require_product(Product.RATINGS)
        if key != self.key:
            raise self.error(f"reads the ratings of {key!r}; it can read only its own, by request.key")


class DeclaredSample(Sample):
    """A sample that raises MetricError when an undeclared column is read."""

    __slots__ = ("_declared", "_whole")
    _declared: Declarations
    _whole: Sample

    def __init__(self, whole: Sample, declared: Declarations) -> None:
        object.__setattr__(self, "_whole", whole)
        object.__setattr__(self, "_declared", declared)

    def __getattribute__(self, name: str) -> Any:
        """Return an attribute; columns only if they are declared."""
        if name == "row_id":
            return object.__getattribute__(self, "_whole").row_id
        if name == "extras":
            declared = object.__getattribute__(self, "_declared")
            whole = object.__getattribute__(self, "_whole").extras
            return Guarded(whole or {}, declared.require_own_column)
        if name in COLUMNS:
            object.__getattribute__(self, "_declared").require_column(name)
            return getattr(object.__getattribute__(self, "_whole"), name)
        return object.__getattribute__(self, name)


class DeclaredEvidence(Evidence):
    """Evidence that raises MetricError when an undeclared product or column is read."""

    __slots__ = ("_declared", "_whole")
    _declared: Declarations
    _whole: Evidence

    def __init__(self, whole: Evidence, declared: Declarations) -> None:
        object.__setattr__(self, "_whole", whole)
        object.__setattr__(self, "_declared", declared)

    @property
    def sample(self) -> Sample:
        """The row."""
        return DeclaredSample(self._whole.sample, self._declared)

    @property
    def claims(self) -> Mapping[Side, Mapping[str, str]]:
        """Claims of the declared sides."""
        return self._guard(self._whole.claims, lambda side: products_on(Stage.CLAIMS, side))

    @property
    def verdicts(self) -> Mapping[tuple[VerdictKind, str, str], Support]:
        """Declared verdicts."""
        return self._guard(self._whole.verdicts, lambda key: products_of(*key))

    @property
    def entities(self) -> Mapping[Side, Sequence[str]]:
        """Entities of the declared texts."""
        return self._guard(self._whole.entities, lambda side: products_on(Stage.ENTITIES, side))

    @property
    def questions(self) -> Sequence[Question] | None:
        """Regenerated questions."""
        self._declared.require_product(Product.QUESTIONS)
        return self._whole.questions

    @property
    def question_similarities(self) -> Sequence[float | None] | None:
        """Cosines of the regenerated questions."""
        self._declared.require_product(Product.QUESTION_SIMILARITY)
        return self._whole.question_similarities

    @property
    def answer_similarities(self) -> Mapping[Product, float | None]:
        """Declared similarities."""
        return self._guard(self._whole.answer_similarities, lambda product: (product,))

    @property
    def ratings(self) -> Mapping[str, Sequence[Rating]]:
        """Ratings of the metric."""
        declared = self._declared
        return Guarded(self._whole.ratings, declared.require_key)

    @property
    def gaps(self) -> Mapping[Product, Score]:
        """Gaps in the products of the row."""
        return self._whole.gaps

    @property
    def places(self) -> Mapping[str, Place]:
        """Places of the claims of the declared sides."""
        return self._guard(self._whole.places, lambda claim: products_on(Stage.CLAIMS, Side(claim.partition(":")[0])))

    @property
    def importances(self) -> Mapping[str, Importance]:
        """Importance of key points."""
        return self._guard(self._whole.importances, lambda _: products_on(Stage.CLAIMS, Side.KEY_POINT))

    @property
    def requested(self) -> Collection[VerdictRequest]:
        """Verdicts that the metric has requested."""
        return self._whole.requested

    @property
    def computed(self) -> dict[str, tuple[Any, str, Any]]:
        """Products of plugins, which are read by name."""
        raise self._declared.error("reads evidence.computed; read a product by evidence.product(name)")

    def product(self, name: str) -> Any:
        """Return a declared product of the plugin; see `Evidence.product`."""
        product = self._declared.require_own_product(name)
        computed, metric = self._whole.computed, self._declared.metric
        if name not in computed:
            computed[name] = (product, metric, _compute(product, self._whole, self._declared))
        known, other, value = computed[name]
        if known != product:
            raise PluginError(clash(product, metric, known, other))
        if isinstance(value, Score):
            raise MissingProductError(value)
        return value

    def column(self, name: str) -> Any:
        """Return a declared column; see `Evidence.column` and `Evidence.own_column`."""
        kind = self._declared.own_columns.get(name)
        if kind is not None:
            return self._whole.own_column(name, kind)
        self._declared.require_column(name)
        return self._whole.column(name)

    def claim_ids(self, side: Side, product: Product) -> Sequence[str]:
        """Return the claims of a side; see `Evidence.claim_ids`."""
        self._declared.require_product(product)
        return self._whole.claim_ids(side, product)

    def supports(
        self, side: Side, premise: str, product: Product, kind: VerdictKind = VerdictKind.SUPPORT
    ) -> list[Support]:
        """Return verdicts on the claims of a side; see `Evidence.supports`."""
        self._declared.require_product(product)
        return self._whole.supports(side, premise, product, kind)

    def requested_supports(self, *, in_levels: bool = False) -> list[Support]:
        """Return the requested verdicts; see `Evidence.requested_supports`."""
        for product in (Product.REQUESTED_VERDICTS, *((Product.REQUESTED_LEVELS,) if in_levels else ())):
            self._declared.require_product(product)
        return self._whole.requested_supports(in_levels=in_levels)

    @property
    def decisions(self) -> Mapping[tuple[VerdictKind, str, str], Support] | None:
        """Verdicts as 0 or 1, which are read by request."""
        raise self._declared.error("reads evidence.decisions; read a verdict by evidence.decision(request)")

    def decision(self, request: VerdictRequest) -> Support:
        """Return the verdict on an earlier request; see `Evidence.decision`."""
        self._declared.require_requests()
        return self._whole.decision(request)

    def context_supports(self, side: Side, product: Product) -> list[list[Support]]:
        """Return verdicts by each context; see `Evidence.context_supports`."""
        self._declared.require_product(product)
        return self._whole.context_supports(side, product)

    def usefulness(self, kind: VerdictKind) -> list[Support]:
        """Return the usefulness of the contexts; see `Evidence.usefulness`."""
        self._declared.require_product(product_of_usefulness(kind))
        return self._whole.usefulness(kind)

    def relevance(self) -> list[Support]:
        """Return the relevance of the context sentences; see `Evidence.relevance`."""
        self._declared.require_product(Product.SENTENCE_RELEVANCE)
        return self._whole.relevance()

    def entity_set(self, side: Side, product: Product) -> Sequence[str]:
        """Return the entities of a text; see `Evidence.entity_set`."""
        self._declared.require_product(product)
        return self._whole.entity_set(side, product)

    def regenerated_questions(self) -> Sequence[Question]:
        """Return the regenerated questions; see `Evidence.regenerated_questions`."""
        self._declared.require_product(Product.QUESTIONS)
        return self._whole.regenerated_questions()

    def cosines(self) -> Sequence[float | None]:
        """Return the cosines of the regenerated questions; see `Evidence.cosines`."""
        self._declared.require_product(Product.QUESTION_SIMILARITY)
        return self._whole.cosines()

    def answer_similarity(self, product: Product = Product.ANSWER_SIMILARITY) -> float | None:
        """Return the similarity of response and reference; see `Evidence.answer_similarity`."""
        self._declared.require_product(product)
        return self._whole.answer_similarity(product)

    def ratings_of(self, metric_key: str) -> Sequence[Rating]:
        """Return the ratings of the metric; see `Evidence.ratings_of`."""
        self._declared.require_key(metric_key)
        return self._whole.ratings_of(metric_key)

    def _guard(self, whole: Mapping[K, V], products: Callable[[K], Collection[Product]]) -> Mapping[K, V]:
        declared = self._declared
        return Guarded(whole, lambda key: declared.require_one_of(products(key)))


def _compute(product: OwnProduct, whole: Evidence, reader: Declarations) -> Any:
    """Return the value of a product of a plugin for a row, or the score of the metrics that read it."""
    declared = reader.of_product(product)
    evidence = DeclaredEvidence(whole, declared)
    row = f" (row {whole.sample.row_id!r})"
    try:
        for column in product.columns:
            evidence.column(column)
        value = product.compute(evidence)
    except MissingProductError as missing:
        known = {gap.reason for gap in whole.gaps.values()}
        known |= {missing_column(column) for column in (*declared.columns, *product.own_columns)}
        known |= {wrong_type(column, kind) for column, kind in product.own_columns.items()}
        if missing.outcome.reason not in known:
            problem = f"raised MissingProductError for {missing.outcome.reason!r}, which is not a recorded gap{row}"
            raise declared.error(problem) from missing
        return missing.outcome
    except AssayError:
        raise
    except Exception as error:
        raise declared.error(f"raised {type(error).__name__}: {error}{row}") from error
    if value is None:
        raise declared.error(f"returned None; wanted a value, or Score.undefined(reason){row}")
    if isinstance(value, Score):
        if value.status is Status.SCORED:
            raise declared.error(f"returned {value!r}; wanted the value itself, without a Score{row}")
        wrong = score_problem(value, None, product.undefined, product.failed)
        if wrong is not None:
            raise declared.error(f"{wrong}{row}")
    return value
