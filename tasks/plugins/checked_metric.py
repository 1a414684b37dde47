"""Check the declarations of custom metrics, before a run starts.

What a formula reads and returns is checked by `MetricRequest`, for builtin metrics too.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import NoneType, UnionType
from typing import Any

from metric_core.columns import COLUMN_ALIASES, COLUMNS, OWN_TYPES, ColumnType
from metric_core.declarations.diagnosis_class import ScoreClass
from metric_core.declarations.metric import Metric, Parameter, Parameters
from metric_core.declarations.own_products import PER_METRIC, OwnProduct
from metric_core.errors import AssayError, MetricError, PluginError
from metric_core.parsing.suggestions import suggest_names
from metric_core.prompts.judge_questions import CustomKind, GenerateQuestion, RatingRequest
from metric_core.question_kinds import RATING_KINDS
from metric_core.records import Direction, Sample, Score
from metric_core.stages import Product
from tasks.plugins.load_object import LoadedObject

_FUNCTIONS = ("columns", "optional_columns", "products", "bounds", "compute")
_KINDS: Mapping[str, tuple[type | UnionType, str]] = {
    "name": (str, "a text"),
    "summary": (str, "a text"),
    "parameters": (Mapping, "a mapping of names to metric_core.declarations.metric.Parameter"),
    "undefined": (Mapping, "a mapping of reasons to when they happen"),
    "failed": (Mapping, "a mapping of reasons to when they happen"),
    "own_columns": (Mapping, "a mapping of columns to metric_core.columns.ColumnType"),
    "own_products": (tuple, "a tuple of OwnProduct"),
    "question_kinds": (tuple, "a tuple of kinds of questions"),
    "direction": (Direction, "a metric_core.records.Direction"),
    "diagnosis": (ScoreClass | NoneType, "a rag_assay.plugins.ScoreClass"),
}

_VALUES = ("score", "value")
"""The properties that may hold the rating in a JSON reply."""


def check_declarations(metric: Metric, name: str) -> None:
    """Check the types of a metric's declarations when it is loaded, before they are used.

    Raises:
        PluginError: A declaration has the wrong type.
    """
    for part in _FUNCTIONS:
        if not callable(value := getattr(metric, part)):
            raise PluginError(
                f"{name!r}: {part} is {value!r}, wanted a function; rag_assay.plugins.constant(...) creates one that "
                "returns the same for all parameters"
            )
    for part, (kind, wanted) in _KINDS.items():
        value = getattr(metric, part)
        if not isinstance(value, kind) and not (part == "own_columns" and callable(value)):
            raise PluginError(f"{name!r}: {part} is {value!r}, wanted {wanted}")
    if not callable(metric.own_columns):
        _check_own_columns(metric.own_columns, repr(name), "columns")
    _check_own_products(metric.own_products, name)
    for asked in metric.question_kinds:
        if not isinstance(asked, CustomKind) and asked not in RATING_KINDS:
            raise PluginError(f"{name!r}: the kind of question {asked!r} is unknown; create one with CustomKind")
    for key, parameter in metric.parameters.items():
        if not isinstance(parameter, Parameter):
            raise PluginError(
                f"{name!r}: the parameter {key} is {parameter!r}, wanted a metric_core.declarations.metric.Parameter"
            )


_PRODUCT_KINDS: Mapping[str, tuple[type | UnionType, str]] = {
    "name": (str, "a text"),
    "reads": (tuple, "a tuple of products and columns"),
    "optional_columns": (tuple, "a tuple of columns"),
    **{part: _KINDS[part] for part in ("own_columns", "undefined", "failed")},
}


def _check_own_products(products: Iterable[object], name: str) -> None:
    names: set[str] = set()
    for product in products:
        if not isinstance(product, OwnProduct):
            raise PluginError(f"{name!r}: own_products has {product!r}, wanted an OwnProduct")
        where = f"{name!r}: the product {product.name!r}"
        for part, (kind, wanted) in _PRODUCT_KINDS.items():
            if not isinstance(value := getattr(product, part), kind):
                raise PluginError(f"{where}: {part} is {value!r}, wanted {wanted}")
        if not callable(product.compute):
            raise PluginError(f"{where}: compute is {product.compute!r}, wanted a function of the evidence of a row")
        if not product.name.strip() or product.name in {*Product, *names}:
            raise PluginError(f"{where}: the name is empty or used by another product; choose another")
        _check_reads(product, where)
        _check_own_columns(product.own_columns, where, "reads")
        names.add(product.name)


def _check_reads(product: OwnProduct, where: str) -> None:
    for read in product.reads:
        if isinstance(read, str) and read in PER_METRIC:
            raise PluginError(f"{where} reads the product {str(read)!r}, which is different for each metric")
        if not isinstance(read, str) or read not in {*Product, *COLUMNS}:
            near = suggest_names(str(read), [*map(str, Product), *COLUMNS], most=4) or [*map(str, Product), *COLUMNS]
            raise PluginError(f"{where} reads {read!r}, wanted products or columns: {', '.join(near)}")
    for column in product.optional_columns:
        if column not in COLUMNS:
            raise PluginError(f"{where} reads the column {column!r}, wanted some of {', '.join(COLUMNS)}")


def _check_own_columns(own_columns: Mapping[str, ColumnType], where: str, place: str) -> None:
    for column, column_type in own_columns.items():
        if column in COLUMNS or column.casefold() in COLUMN_ALIASES:
            raise PluginError(f"{where}: {column!r} is a column of samples; add it to {place}, not to own_columns")
        if column_type not in OWN_TYPES:
            wanted = ", ".join(f"ColumnType.{each.name}" for each in OWN_TYPES)
            raise PluginError(f"{where}: the column {column!r} has the type {column_type!r}, wanted one of {wanted}")


def _merge(*reasons: Mapping[str, str]) -> dict[str, str]:
    return {reason: description for each in reasons for reason, description in each.items()}


class CheckedMetric:
    """A custom metric whose declarations and rating questions are checked.

    Args:
        loaded: The loaded object with its name and code digest.
    """

    def __init__(self, metric: Metric, loaded: LoadedObject) -> None:
        self._metric = metric
        self._loaded = loaded

    def metric(self) -> Metric:
        """Return the metric with checked functions."""
        products = self._metric.own_products
        return replace(
            self._metric,
            undefined=_merge(*(product.undefined for product in products), self._metric.undefined),
            failed=_merge(*(product.failed for product in products), self._metric.failed),
            columns=lambda parameters: self._columns("columns", parameters),
            optional_columns=lambda parameters: self._columns("optional_columns", parameters),
            products=self._products,
            bounds=self._bounds,
            ratings=None if self._metric.ratings is None else self._ratings,
            origin=self._loaded.name,
            code=self._loaded.code,
        )

    def _columns(self, part: str, parameters: Parameters) -> tuple[str, ...]:
        columns = self._list_declaration(part, parameters)
        if unknown := [column for column in columns if column not in COLUMNS]:
            raise self._error(f"asks for the column {unknown[0]!r}, wanted some of {', '.join(COLUMNS)}")
        return columns

    def _products(self, parameters: Parameters) -> tuple[Product, ...]:
        names = self._list_declaration("products", parameters)
        if unknown := [name for name in names if name not in set(Product)]:
            near = suggest_names(str(unknown[0]), list(Product), most=4) or list(Product)
            raise self._error(f"asks for the product {str(unknown[0])!r}; there are: {', '.join(near)}")
        products = tuple(Product(name) for name in names)
        if (Product.RATINGS in products) is (self._metric.ratings is None):
            raise self._error("must ask for the product 'ratings' if it has rating questions, and only then")
        if (Product.REQUESTED_VERDICTS in products) is (self._metric.verdicts is None):
            raise self._error("must ask for the product 'requested verdicts' if it requests verdicts, and only then")
        return products

    def _bounds(self, parameters: Parameters) -> tuple[float, float] | None:
        bounds: Any = self._call_declaration("bounds", parameters)
        is_pair = isinstance(bounds, Sequence) and len(bounds) == 2
        if bounds is not None and not (is_pair and all(isinstance(bound, int | float) for bound in bounds)):
            raise self._error(f"returns {bounds!r} as bounds, wanted the minimum and the maximum value, or None")
        return None if bounds is None else (bounds[0], bounds[1])

    def _list_declaration(self, part: str, parameters: Parameters) -> tuple[Any, ...]:
        names = self._call_declaration(part, parameters)
        if not isinstance(names, Sequence) or isinstance(names, str):
            raise self._error(f"returns {names!r} as {part}, wanted a tuple of {part}")
        return tuple(names)

    def _call_declaration(self, part: str, parameters: Parameters) -> object:
        try:
            declared: object = getattr(self._metric, part)(parameters)
        except AssayError:
            raise
        except Exception as error:
            raise self._error(f"raised {type(error).__name__} in {part}: {error}") from error
        return declared

    def _ratings(self, sample: Sample, parameters: Parameters) -> Sequence[RatingRequest] | Score:
        ask = self._metric.ratings
        returned = () if ask is None else ask(sample, parameters)
        if isinstance(returned, Score):
            return returned
        if not isinstance(returned, Iterable):
            raise self._error(f"asks {returned!r}, wanted a list of RatingRequest")
        requests = list(returned)
        self._check_ratings(requests)
        return requests

    def _check_ratings(self, ratings: Sequence[object]) -> None:
        templates = set()
        for rating in ratings:
            if not isinstance(rating, RatingRequest):
                raise self._error(f"asks {rating!r}, wanted a RatingRequest")
            question = rating.question
            if question.kind not in {*RATING_KINDS, *self._metric.question_kinds}:
                wanted = ", ".join(RATING_KINDS)
                raise self._error(
                    f"asks a question of kind {question.kind}, wanted one of {wanted}, or a CustomKind that is in its "
                    "question_kinds"
                )
            if isinstance(question, GenerateQuestion) and not set(_VALUES) & set(question.schema.get("properties", ())):
                raise self._error(f"asks for JSON without a property {' or '.join(_VALUES)}, which holds the rating")
            if rating.template in templates:
                raise self._error(f"has two questions {rating.template!r}; each needs a unique template")
            templates.add(rating.template)

    def _error(self, problem: str) -> MetricError:
        return MetricError(f"the metric {self._metric.name} ({self._loaded.name}) {problem}")
