"""Describe what is wrong with an option of a configuration or gate file, and suggest the option that was meant."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from metric_core.parsing.suggestions import suggest_names

_ELSEWHERE = {"llm": "judge", "embeddings": "embedder", "embedding": "embedder"}
"""Names of options in other libraries -> those that are meant."""
_MOST_TABLES = 3
_DEEPEST = 3
"""Tables within tables that are searched for an option."""


def describe_option_error(problem: Mapping[str, Any], model: type[BaseModel]) -> str:
    """Describe a problem that pydantic found.

    Args:
        problem: Item of `ValidationError.errors()`.

    >>> class Options(BaseModel):
    ...     limit: int = 0
    >>> describe_option_error({"type": "extra_forbidden", "loc": ("limits",), "msg": ""}, Options)
    'there is no such option. Did you mean limit?'
    >>> class Whole(BaseModel):
    ...     options: Options | None = None
    >>> describe_option_error({"type": "extra_forbidden", "loc": ("limit",), "msg": ""}, Whole)
    'there is no such option here; limit is one of options'
    """
    if problem["type"] != "extra_forbidden":
        return str(problem["msg"]).removeprefix("Value error, ")
    place = problem["loc"]
    schema, name = model.model_json_schema(), str(place[-1])
    if len(place) > 1 and name in model.model_fields:
        return f"there is no such option here; {name} stands at the top, above all tables"
    known = model.model_fields if len(place) == 1 else set(_siblings(place, schema)) or set(_nested(schema)) - {name}
    nearest = [_ELSEWHERE[name]] if _ELSEWHERE.get(name) in known else suggest_names(name, known, most=1)
    if len(place) == 1 and not nearest and (tables := [*_tables_with(name, schema, schema)]):
        return f"there is no such option here; {name} is one of {', '.join(tables[:_MOST_TABLES])}"
    return "there is no such option" + (f". Did you mean {nearest[0]}?" if nearest else "")


def _siblings(place: Sequence[str | int], schema: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names of the options in the same table, or in the tables of the same list."""
    tables: list[Mapping[str, Any]] = [schema]
    for part in place[:-1]:
        fields = (table.get("items", {}) if isinstance(part, int) else _field(table, part) for table in tables)
        tables = [table for field in fields for table in _tables(field, schema)]
    for table in tables:
        yield from table.get("properties", {})


def _field(table: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    field: Mapping[str, Any] = table.get("properties", {}).get(name, {})
    return field


def _tables(field: Mapping[str, Any], schema: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the schemas that a field may have."""
    if "$ref" in field:
        yield schema.get("$defs", {}).get(str(field["$ref"]).rpartition("/")[2], {})
    for each in field.get("anyOf", ()):
        yield from _tables(each, schema)
    if "items" in field:
        yield field


def _tables_with(
    name: str, table: Mapping[str, Any], schema: Mapping[str, Any], place: Sequence[str] = ()
) -> Iterator[str]:
    """Yield the places of the tables that have an option, those at the top first."""
    below = [
        ((*place, each), inner)
        for each, field in table.get("properties", {}).items()
        for inner in _tables(field, schema)
        if "properties" in inner
    ]
    yield from (".".join(found) for found, inner in below if name in inner["properties"])
    for found, inner in below if len(place) + 1 < _DEEPEST else ():
        yield from _tables_with(name, inner, schema, found)


def _nested(schema: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names of all options inside tables."""
    for table in schema.get("$defs", {}).values():
        yield from table.get("properties", {})
