"""Look up metrics by name, including custom ones."""

from functools import lru_cache

from metric_core.declarations.metric import Metric, MetricRequest
from metric_core.errors import PluginError, UnknownMetricError
from metric_core.metrics.registry import METRICS, parse_request, resolve
from metric_core.parsing.suggestions import suggest_names
from tasks.plugins.checked_metric import CheckedMetric, check_declarations
from tasks.plugins.load_object import Group, LoadedObject, installed_names, load_object


def find_metric(name: str) -> Metric:
    """Return the metric with a name: a builtin one, `module:attribute`, or an entry point of an installed package.

    Raises:
        UnknownMetricError: The metric does not exist.
        PluginError: The object cannot be imported or is not a metric.
    """
    if ":" in name:
        return _find_custom(name.strip())
    try:
        return resolve(name)
    except UnknownMetricError:
        packaged = installed_names(Group.METRICS)
        normalized = name.strip().casefold().replace("-", "_")
        if normalized in packaged:
            return _find_custom(normalized)
        if near := suggest_names(normalized, packaged):
            raise UnknownMetricError(name, near) from None
        raise


def parse_metric(text: str) -> MetricRequest:
    """Parse a metric as written on the command line: its name, and parameters in parentheses.

    Raises:
        UnknownMetricError: No metric has that name.
        PluginError: The object cannot be imported or is not a metric.
        MetricParameterError: The text is malformed, or the metric does not accept the parameters.
    """
    return parse_request(text, find_metric)


def packaged_metrics() -> list[Metric]:
    """Return the metrics of other installed packages.

    Raises:
        PluginError: One of them cannot be imported or is not a metric.
    """
    return [_find_custom(name) for name in sorted(installed_names(Group.METRICS).keys() - METRICS)]


def load_functions(request: MetricRequest) -> dict[str, LoadedObject]:
    """Return the functions that parameters of a metric name, by parameter.

    Raises:
        PluginError: A function cannot be imported or called.
    """
    functions = {name: load_object(Group.METRICS, value) for name, value in request.function_names.items()}
    for name, loaded in functions.items():
        if not callable(loaded.obj):
            raise PluginError(f"{request.key}: {name} is {loaded.obj!r}, wanted a function")
    return functions


@lru_cache(maxsize=256)
def _find_custom(name: str) -> Metric:
    loaded = load_object(Group.METRICS, name)
    metric = loaded.obj
    if not isinstance(metric, Metric):
        raise PluginError(f"{name!r} is a {type(metric).__name__}, wanted a metric_core.declarations.metric.Metric")
    check_declarations(metric, name)
    if not metric.name.isidentifier() or metric.name != metric.name.casefold():
        raise PluginError(f"{name!r} has the name {metric.name!r}, wanted lower-case letters, digits and underscores")
    try:
        builtin = resolve(metric.name)
    except UnknownMetricError:
        return CheckedMetric(metric, loaded).metric()
    raise PluginError(f"{name!r} has the name {metric.name!r}, as the metric {builtin.name} of rag-assay; rename it")
