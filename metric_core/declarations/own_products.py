"""Declare products that plugins compute from the evidence of a row, for several metrics to read."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from metric_core.columns import COLUMNS, ColumnType
from metric_core.errors import PluginError
from metric_core.evidence import Evidence
from metric_core.stages import PRODUCTS, Product, closure

PER_METRIC: frozenset[Product] = frozenset({Product.RATINGS, Product.REQUESTED_VERDICTS})
"""Products that differ between metrics, so that a product shared by metrics cannot be computed from them."""


@dataclass(frozen=True, slots=True)
class OwnProduct:
    """A product that a plugin computes once per row, however many metrics read it.

    A metric names it in `Metric.own_products` and reads it by `evidence.product(name)`. A metric must not change its
    value, because others read the same object. For a metric with a calibration map it is computed once more, from the
    mapped probabilities.

    Args:
        name: Name by which metrics read it; no name of a builtin product.
        compute: Function from the evidence of a row to the value: anything but None. It returns
            `Score.undefined(reason)` or `Score.failed(reason)` where there is no value, which becomes the score of the
            metrics that read it. An exception ends the run.
        reads: Builtin products and sample columns that `compute` reads. A row without one of the columns has no value.
        optional_columns: Sample columns that it uses if the data has them.
        own_columns: Name -> type of columns of the data beyond those of a sample.
        undefined: Reason -> description, for every undefined outcome but a missing column or product.
        failed: Reason -> description, for failed outcomes other than an unusable verdict, reply or vector.

    >>> words = OwnProduct("words", lambda evidence: evidence.column("response").split(), reads=("response",))
    >>> words.columns, words.products
    (('response',), ())
    """

    name: str
    compute: Callable[[Evidence], Any]
    reads: tuple[str, ...] = ()
    optional_columns: tuple[str, ...] = ()
    own_columns: Mapping[str, ColumnType] = field(default_factory=dict)
    undefined: Mapping[str, str] = field(default_factory=dict)
    failed: Mapping[str, str] = field(default_factory=dict)

    @property
    def products(self) -> tuple[Product, ...]:
        """Builtin products that it reads."""
        return tuple(Product(name) for name in self.reads if name not in COLUMNS)

    @property
    def columns(self) -> tuple[str, ...]:
        """Sample columns that it needs: those that it reads, and those that the products are computed from."""
        found = dict.fromkeys(name for name in self.reads if name in COLUMNS)
        for product in sorted(closure(self.products), key=list(Product).index):
            found |= dict.fromkeys(PRODUCTS[product].columns)
        return tuple(found)


def check_shared_products(declared: Iterable[tuple[str, OwnProduct]]) -> None:
    """Check that plugins that share the name of a product share the product.

    Args:
        declared: Name of the metric that declares it, and the product.

    Raises:
        PluginError: Two metrics declare different products of one name.
    """
    first: dict[str, tuple[str, OwnProduct]] = {}
    for metric, product in declared:
        other, known = first.setdefault(product.name, (metric, product))
        if known != product:
            raise PluginError(clash(product, metric, known, other))


def clash(product: OwnProduct, metric: str, known: OwnProduct, other: str) -> str:
    """Return the message for two different products of one name.

    Args:
        product: One product.
        metric: Name of the metric that declares it.
        known: The other product.
        other: Name of the metric that declares that.
    """
    return (
        f"the metrics {other} and {metric} declare different products {product.name!r} ({_origin(known)} and "
        f"{_origin(product)}); rename one, or import the same product in both modules"
    )


def _origin(product: OwnProduct) -> str:
    function = product.compute
    name = getattr(function, "__qualname__", type(function).__qualname__)
    return f"{getattr(function, '__module__', None) or type(function).__module__}.{name}"
