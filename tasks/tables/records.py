"""Convert between Arrow tables and the records that stages work on."""

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import pyarrow as pa

from metric_core.records import Sample
from metric_core.schemas import SCHEMAS
from metric_core.stages import Stage


def read_samples_table(table: pa.Table) -> list[Sample]:
    """Return the samples of a samples table, in its order."""
    return [_sample(row) for row in table.to_pylist()]


def build_table(stage: Stage, rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Return a stage's table from rows as mappings; a column that a row lacks is null.

    A model may write a lone surrogate, which no table can hold: a question mark replaces it.
    """
    schema = SCHEMAS[stage].arrow
    try:
        return pa.Table.from_pylist(list(rows), schema=schema)
    except UnicodeEncodeError:
        return pa.Table.from_pylist([_replace_surrogates(row) for row in rows], schema=schema)


def add_missing_columns(table: pa.Table, stage: Stage) -> pa.Table:
    """Return a stage's table of an earlier version with the columns that it lacks, which are null."""
    schema = SCHEMAS[stage].arrow
    if table.schema.names == schema.names:
        return table
    columns = [
        table[name] if name in table.schema.names else pa.nulls(table.num_rows, schema.field(name).type)
        for name in schema.names
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def _replace_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, Mapping):
        return {name: _replace_surrogates(item) for name, item in value.items()}
    return [_replace_surrogates(item) for item in value] if isinstance(value, list) else value


def _sample(row: Mapping[str, Any]) -> Sample:
    rubrics, extras = row["rubrics"], row["extras"]
    return Sample(
        row_id=row["row_id"],
        user_input=row["user_input"],
        response=row["response"],
        retrieved_contexts=_texts(row["retrieved_contexts"]),
        reference=row["reference"],
        reference_contexts=_texts(row["reference_contexts"]),
        retrieved_context_ids=_texts(row["retrieved_context_ids"]),
        reference_context_ids=_texts(row["reference_context_ids"]),
        rubrics=None if rubrics is None else {rubric["key"]: rubric["description"] for rubric in rubrics},
        extras=None if extras is None else _LazyJson(extras),
    )


class _LazyJson(Mapping[str, Any]):
    """The object of a JSON text, parsed when it is first read: few stages read the columns of plugins.

    Args:
        text: JSON text of an object.
    """

    def __init__(self, text: str) -> None:
        self._text = text

    @cached_property
    def _content(self) -> Mapping[str, Any]:
        content: Mapping[str, Any] = json.loads(self._text)
        return content

    def __getitem__(self, name: str) -> Any:
        return self._content[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._content)

    def __len__(self) -> int:
        return len(self._content)


def _texts(values: list[str] | None) -> tuple[str, ...] | None:
    return None if values is None else tuple(values)
