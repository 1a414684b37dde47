"""Describe what is wrong with an option of a configuration or gate file, and suggest the option that was meant."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from metric_core.parsing.suggestions import suggest_names


def describe_option_error(problem: Mapping[str, Any], model: type[BaseModel]) -> str:
    """Describe a problem that pydantic found.

    Args:
        problem: Item of `ValidationError.errors()`.

    >>> class Options(BaseModel):
    ...     limit: int = 0
    >>> describe_option_error({"type": "extra_forbidden", "loc": ("limits",), "msg": ""}, Options)
    'there is no such option. Did you mean limit?'
    """
    if problem["type"] != "extra_forbidden":
        return str(problem["msg"]).removeprefix("Value error, ")
    place = problem["loc"]
    schema = model.model_json_schema()
    known = model.model_fields if len(place) == 1 else set(_siblings(place, schema)) or set(_nested(schema))
    nearest = suggest_names(str(place[-1]), known, most=1)
    return "there is no such option" + (f". Did you mean {nearest[0]}?" if nearest else "")


def _siblings(place: Sequence[str | int], schema: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names of the options in the same table; none if the path to it leads through a union."""
    table: Mapping[str, Any] = schema
    for part in place[:-1]:
        field = table.get("properties", {}).get(part, {})
        table = schema.get("$defs", {}).get(str(field.get("$ref", "")).rpartition("/")[2], {})
    yield from table.get("properties", {})


def _nested(schema: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names of all options inside tables."""
    for table in schema.get("$defs", {}).values():
        yield from table.get("properties", {})
