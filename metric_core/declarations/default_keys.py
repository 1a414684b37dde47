"""Name the scores of a metric by its parameters, where the user gives no name."""

from collections.abc import Mapping
from typing import Any

_LONGEST = 32


def default_key(name: str, defaults: Mapping[str, Any], parameters: Mapping[str, Any]) -> str:
    """Return the name of a metric, followed by its short parameters that differ from their defaults.

    >>> default_key("ndcg", {"k": None, "gain": "linear"}, {"k": 10, "gain": "linear"})
    'ndcg(k=10)'
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
    return "/".join(map(str, value)) if isinstance(value, tuple | list) else str(value)
