"""Metrics by name, the user's own among them: those are found, checked, and watched while they compute."""

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from metric_core.columns import COLUMNS
from metric_core.errors import AssayError, ExtensionError, UnknownMetricError
from metric_core.evidence import Evidence, MissingProductError
from metric_core.metric import Metric, MetricRequest, Parameters
from metric_core.products import Product
from metric_core.questions import RATING_KINDS, GenerateQuestion, RatingRequest
from metric_core.records import Sample, Score
from metric_core.registry import parse_request, resolve
from metric_core.suggestions import suggestions
from tasks.extensions.loading import Found, Group, find, installed

_VALUES = ("score", "value")
"""The property that holds the rating in the reply to a question that asks for JSON."""


def metric_named(name: str) -> Metric:
    """The metric of that name: one of ours, or `module:attribute`, or one that an installed package brings.

    Raises:
        UnknownMetricError: there is none.
        ExtensionError: it can not be imported, or is no metric.
    """
    if ":" in name:
        return _own(name.strip())
    try:
        return resolve(name)
    except UnknownMetricError:
        packaged = installed(Group.METRICS)
        wanted = name.strip().casefold().replace("-", "_")
        if wanted in packaged:
            return _own(wanted)
        if near := suggestions(wanted, packaged):
            raise UnknownMetricError(name, near) from None
        raise


def requested(text: str) -> MetricRequest:
    """A metric as written on a command line: its name, and parameters in parentheses.

    Raises:
        UnknownMetricError: no metric is called that.
        ExtensionError: it can not be imported, or is no metric.
        MetricParameterError: the text is not of that form, or the metric does not take the parameters.
    """
    return parse_request(text, metric_named)


def packaged_metrics() -> list[Metric]:
    """The metrics that installed packages bring.

    Raises:
        ExtensionError: one of them can not be imported, or is no metric.
    """
    return [_own(name) for name in sorted(installed(Group.METRICS))]


@lru_cache(maxsize=256)
def _own(name: str) -> Metric:
    found = find(Group.METRICS, name)
    metric = found.thing
    if not isinstance(metric, Metric):
        raise ExtensionError(f"{name!r} is a {type(metric).__name__}, wanted a metric_core.metric.Metric")
    if not metric.name.isidentifier() or metric.name != metric.name.casefold():
        raise ExtensionError(f"{name!r} has the name {metric.name!r}, wanted small letters, digits and underscores")
    try:
        ours = resolve(metric.name)
    except UnknownMetricError:
        return _Watched(metric, found).metric()
    raise ExtensionError(f"{name!r} has the name {metric.name!r}, as the metric {ours.name} of rag-assay; rename it")


class _Watched:
    """A metric of the user's own, whose every part is held to what it declares.

    Args:
        own: the metric.
        found: how it was found.
    """

    def __init__(self, own: Metric, found: Found) -> None:
        self._own = own
        self._found = found

    def metric(self) -> Metric:
        return replace(
            self._own,
            columns=self._columns,
            products=self._products,
            compute=self._compute,
            ratings=None if self._own.ratings is None else self._ratings,
            origin=self._found.name,
            code=self._found.code,
        )

    def _columns(self, parameters: Parameters) -> tuple[str, ...]:
        columns = tuple(self._own.columns(parameters))
        if unknown := [column for column in columns if column not in COLUMNS]:
            raise self._error(f"asks for the column {unknown[0]!r}, wanted some of {', '.join(COLUMNS)}")
        return columns

    def _products(self, parameters: Parameters) -> tuple[Product, ...]:
        names = self._own.products(parameters)
        if unknown := [name for name in names if name not in set(Product)]:
            near = suggestions(str(unknown[0]), list(Product), most=4) or list(Product)
            raise self._error(f"asks for the product {str(unknown[0])!r}; there are: {', '.join(near)}")
        products = tuple(Product(name) for name in names)
        if (Product.RATINGS in products) is (self._own.ratings is None):
            raise self._error("must ask for the product 'ratings' if it has rating questions, and only then")
        return products

    def _compute(self, request: MetricRequest, evidence: Evidence) -> Score:
        try:
            score: object = self._own.compute(request, evidence)
        except (AssayError, MissingProductError):
            raise
        except Exception as error:
            raise self._raised(error, evidence.sample) from error
        if not isinstance(score, Score):
            raise self._error(f"gave {score!r} for the row {evidence.sample.row_id!r}, wanted a Score")
        bounds = request.bounds
        if bounds is not None and score.value is not None and not bounds[0] <= score.value <= bounds[1]:
            limits = f"{bounds[0]:g} to {bounds[1]:g}"
            raise self._error(f"gave {score.value:g} for the row {evidence.sample.row_id!r}, but declares {limits}")
        return score

    def _ratings(self, sample: Sample, parameters: Parameters) -> Sequence[RatingRequest] | Score:
        ask = self._own.ratings
        try:
            wanted = () if ask is None else ask(sample, parameters)
        except (AssayError, MissingProductError):
            raise
        except Exception as error:
            raise self._raised(error, sample) from error
        if not isinstance(wanted, Score):
            self._check(list(wanted))
        return wanted

    def _check(self, wanted: Sequence[object]) -> None:
        templates = set()
        for rating in wanted:
            if not isinstance(rating, RatingRequest):
                raise self._error(f"asks {rating!r}, wanted a RatingRequest")
            question = rating.question
            if question.kind not in RATING_KINDS:
                raise self._error(f"asks a question of kind {question.kind}, wanted one of {', '.join(RATING_KINDS)}")
            if isinstance(question, GenerateQuestion) and not set(_VALUES) & set(question.schema.get("properties", ())):
                raise self._error(f"asks for JSON without a property {' or '.join(_VALUES)}, which holds the rating")
            if rating.template in templates:
                raise self._error(f"has two questions {rating.template!r}; each needs a template of its own")
            templates.add(rating.template)

    def _raised(self, error: Exception, sample: Sample) -> ExtensionError:
        return self._error(f"raised {type(error).__name__} on the row {sample.row_id!r}: {error}")

    def _error(self, what: str) -> ExtensionError:
        return ExtensionError(f"the metric {self._own.name} ({self._found.name}) {what}")
