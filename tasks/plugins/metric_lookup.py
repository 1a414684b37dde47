"""Metrics by name, the user's own among them."""

from functools import lru_cache

from metric_core.errors import ExtensionError, UnknownMetricError
from metric_core.metric import Metric, MetricRequest
from metric_core.registry import parse_request, resolve
from metric_core.suggestions import suggestions
from tasks.plugins.checked_metric import WatchedMetric, check_declarations
from tasks.plugins.load_object import Group, find, installed


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
    check_declarations(metric, name)
    if not metric.name.isidentifier() or metric.name != metric.name.casefold():
        raise ExtensionError(f"{name!r} has the name {metric.name!r}, wanted small letters, digits and underscores")
    try:
        ours = resolve(metric.name)
    except UnknownMetricError:
        return WatchedMetric(metric, found).metric()
    raise ExtensionError(f"{name!r} has the name {metric.name!r}, as the metric {ours.name} of rag-assay; rename it")
