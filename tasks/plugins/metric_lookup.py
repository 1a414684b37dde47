"""Metrics by name, the user's own among them."""

from functools import lru_cache

from metric_core.errors import PluginError, UnknownMetricError
from metric_core.metric import Metric, MetricRequest
from metric_core.registry import parse_request, resolve
from metric_core.suggestions import suggest_names
from tasks.plugins.checked_metric import CheckedMetric, check_declarations
from tasks.plugins.load_object import Group, installed_names, load_object


def find_metric(name: str) -> Metric:
    """The metric of that name: one of ours, or `module:attribute`, or one that an installed package brings.

    Raises:
        UnknownMetricError: there is none.
        PluginError: it can not be imported, or is no metric.
    """
    if ":" in name:
        return _find_custom(name.strip())
    try:
        return resolve(name)
    except UnknownMetricError:
        packaged = installed_names(Group.METRICS)
        wanted = name.strip().casefold().replace("-", "_")
        if wanted in packaged:
            return _find_custom(wanted)
        if near := suggest_names(wanted, packaged):
            raise UnknownMetricError(name, near) from None
        raise


def parse_metric(text: str) -> MetricRequest:
    """A metric as written on a command line: its name, and parameters in parentheses.

    Raises:
        UnknownMetricError: no metric is called that.
        PluginError: it can not be imported, or is no metric.
        MetricParameterError: the text is not of that form, or the metric does not take the parameters.
    """
    return parse_request(text, find_metric)


def packaged_metrics() -> list[Metric]:
    """The metrics that installed packages bring.

    Raises:
        PluginError: one of them can not be imported, or is no metric.
    """
    return [_find_custom(name) for name in sorted(installed_names(Group.METRICS))]


@lru_cache(maxsize=256)
def _find_custom(name: str) -> Metric:
    found = load_object(Group.METRICS, name)
    metric = found.obj
    if not isinstance(metric, Metric):
        raise PluginError(f"{name!r} is a {type(metric).__name__}, wanted a metric_core.metric.Metric")
    check_declarations(metric, name)
    if not metric.name.isidentifier() or metric.name != metric.name.casefold():
        raise PluginError(f"{name!r} has the name {metric.name!r}, wanted small letters, digits and underscores")
    try:
        ours = resolve(metric.name)
    except UnknownMetricError:
        return CheckedMetric(metric, found).metric()
    raise PluginError(f"{name!r} has the name {metric.name!r}, as the metric {ours.name} of rag-assay; rename it")
