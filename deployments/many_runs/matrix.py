"""Read a matrix: a configuration with a table of axes, whose values its texts name in braces."""

import re
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, TypeAlias

from flows.config.config_files import read_options
from metric_core.errors import ConfigError

AXES = "axes"
Values: TypeAlias = Mapping[str, str | int | float | bool]
"""A value of each axis."""

_NOT_IN_NAMES = re.compile(r"[^\w.+-]+")


def read_axes(file: Path) -> dict[str, Values]:
    """Return the combinations of the values of the axes, by name.

    Raises:
        ConfigError: The file cannot be read, or its axes cannot be combined.
    """
    try:
        content = read_options(file, "the matrix", "TOML" if file.suffix == ".toml" else "YAML")
    except FileNotFoundError as error:
        raise ConfigError(f"there is no matrix {file}") from error
    axes = content.get(AXES) if isinstance(content, Mapping) else None
    if not isinstance(axes, Mapping) or not axes:
        raise ConfigError(f"the matrix {file} needs a table [{AXES}], such as top_k = [2, 5]")
    for name, values in axes.items():
        if (
            not isinstance(values, list)
            or not values
            or not all(isinstance(each, str | int | float) for each in values)
        ):
            raise ConfigError(f"the axis {name} of {file} must be a list of texts or numbers, got {values!r}")
        if f"{{{name}}}" not in repr({key: value for key, value in content.items() if key != AXES}):
            raise ConfigError(f"no option of {file} holds {{{name}}}, so the axis {name} would change nothing")
    return _combine(file, axes)


def _combine(file: Path, axes: Mapping[str, Sequence[Any]]) -> dict[str, Values]:
    found: dict[str, Values] = {}
    for values in product(*axes.values()):
        name = "-".join(_NOT_IN_NAMES.sub("_", str(value)).strip(".") for value in values)
        if name in found:
            raise ConfigError(f"two combinations of the axes of {file} have the name {name}: change a value")
        found[name] = dict(zip(axes, values, strict=True))
    if len(found) == 1:
        raise ConfigError(f"the axes of {file} have one combination, so there is nothing to compare: add a value")
    return found


def fill(values: Values, content: dict[str, Any]) -> dict[str, Any]:
    """Return a configuration with the values of the axes in its texts; a text that is only an axis becomes its value.

    >>> fill({"k": 5}, {"source": "answers-{k}.jsonl", "retriever": {"options": {"top_k": "{k}"}}, "axes": {"k": [5]}})
    {'source': 'answers-5.jsonl', 'retriever': {'options': {'top_k': 5}}}
    """
    return {name: _fill(values, value) for name, value in content.items() if name != AXES}


def _fill(values: Values, value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _fill(values, each) for name, each in value.items()}
    if isinstance(value, list):
        return [*map(partial(_fill, values), value)]
    if not isinstance(value, str):
        return value
    for name, each in values.items():
        if value == f"{{{name}}}":
            return each
        value = value.replace(f"{{{name}}}", str(each))
    return value
