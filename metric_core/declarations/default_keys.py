"""Name the scores of a metric by its parameters, where the user gives no name."""

import json
from collections.abc import Mapping
from typing import Any

from metric_core.declarations.metric_text import parse_metrics
from metric_core.errors import MetricParameterError

_LONGEST = 32


def default_key(name: str, defaults: Mapping[str, Any], parameters: Mapping[str, Any]) -> str:
    """Return the name of a metric, followed by its short parameters that differ from their defaults.

    Parameters are written as `parse_metrics` reads them, so that a key names its metric wherever a metric is named.

    >>> default_key("ndcg", {"k": None, "gain": "linear"}, {"k": 10, "gain": "linear"})
    'ndcg(k=10)'
    >>> default_key("key_point_recall", {"strict": True, "importance": "all"}, {"strict": False, "importance": "vital"})
    'key_point_recall(strict=false,importance=vital)'
    """
    changed = [
        f"{parameter}={_format_value(value)}"
        for parameter, value in parameters.items()
        if value != defaults[parameter] and _is_short(value)
    ]
    return f"{name}({','.join(changed)})" if changed else name


def _is_short(value: Any) -> bool:
    return isinstance(value, str | int | float | tuple | list) and len(str(value)) <= _LONGEST


def _format_value(value: Any) -> str:
    """Return a value as bare text if that is read as the same, else as JSON."""
    if isinstance(value, str) and _reads_as(value):
        return value
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _reads_as(text: str) -> bool:
    try:
        return [metric.parameters for metric in parse_metrics(f"m(p={text},q=1)")] == [{"p": text, "q": 1}]
    except MetricParameterError:
        return False
