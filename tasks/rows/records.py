"""Convert between Arrow tables and the records that stages work on."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, TypeVar

import pyarrow as pa

from metric_core.evidence_spans import PlacedSpan
from metric_core.records import Importance, KeyPoint, Sample
from metric_core.schemas import SCHEMAS
from metric_core.stages import Stage

T = TypeVar("T")


def read_samples_table(table: pa.Table) -> list[Sample]:
    """Return the samples of a samples table, in its order."""
    return [_sample(row) for row in table.to_pylist()]


def read_asked_samples(tables: Mapping[Stage, pa.Table]) -> list[Sample]:
    """Return the samples with self-contained questions in place of those that follow earlier turns.

    Args:
        tables: Tables of the samples and, if the run has it, of the stage `follow_ups`.
    """
    questions = read_questions(tables)
    return [
        sample if (question := questions.get(sample.row_id)) is None else replace(sample, user_input=question)
        for sample in read_samples_table(tables[Stage.SAMPLES])
    ]


def read_questions(tables: Mapping[Stage, pa.Table]) -> Mapping[str, str]:
    """Return the self-contained question of each row that has one."""
    if Stage.FOLLOW_UPS not in tables:
        return {}
    found = tables[Stage.FOLLOW_UPS].select(["row_id", "question"]).drop_null()
    return dict(zip(found["row_id"].to_pylist(), found["question"].to_pylist(), strict=True))


def build_table(stage: Stage, rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Return a stage's table from rows as mappings; a column that a row lacks is null.

    A model may write a lone surrogate, which no table can hold: a question mark replaces it.
    """
    schema = SCHEMAS[stage].arrow
    try:
        return pa.Table.from_pylist(list(rows), schema=schema)
    except UnicodeEncodeError:
        return pa.Table.from_pylist([_replace_surrogates(row) for row in rows], schema=schema)


def add_missing_columns(table: pa.Table, stage: Stage, wanted: Sequence[str] | None = None) -> pa.Table:
    """Return a stage's table with the columns that its version lacks or that it is stored without, which are null.

    Args:
        wanted: Columns to return; None for all.
    """
    schema = SCHEMAS[stage].arrow
    names = schema.names if wanted is None else wanted
    if table.schema.names == names:
        return table
    columns = [
        table[name].cast(schema.field(name).type)
        if name in table.schema.names
        else pa.nulls(table.num_rows, schema.field(name).type)
        for name in names
    ]
    fields = [schema.field(name) for name in names]
    return pa.Table.from_arrays(columns, schema=pa.schema(fields, metadata=schema.metadata))


def _replace_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, Mapping):
        return {name: _replace_surrogates(item) for name, item in value.items()}
    return [_replace_surrogates(item) for item in value] if isinstance(value, list) else value


def _sample(row: Mapping[str, Any]) -> Sample:
    rubrics, extras, judgments, points, spans = (
        row[name] for name in ("rubrics", "extras", "relevance_judgments", "key_points", "evidence_spans")
    )
    return Sample(
        row_id=row["row_id"],
        user_input=row["user_input"],
        response=row["response"],
        retrieved_contexts=_values(row["retrieved_contexts"]),
        reference=row["reference"],
        reference_contexts=_values(row["reference_contexts"]),
        retrieved_context_ids=_values(row["retrieved_context_ids"]),
        reference_context_ids=_values(row["reference_context_ids"]),
        rubrics=None if rubrics is None else {rubric["key"]: rubric["description"] for rubric in rubrics},
        extras=None if extras is None else _LazyJson(extras),
        retrieved_context_scores=_values(row["retrieved_context_scores"]),
        session_id=row["session_id"],
        conversation=row["conversation"],
        earlier_turns=row["earlier_turns"],
        earlier_contexts=_values(row["earlier_contexts"]),
        tool_results=_values(row["tool_results"]),
        earlier_answers=_values(row["earlier_answers"]),
        relevance_judgments=None if judgments is None else {each["id"]: each["grade"] for each in judgments},
        key_points=None
        if points is None
        else tuple(map(_key_point, points, row["point_evidence"] or [()] * len(points))),
        evidence_spans=None if spans is None else tuple(map(PlacedSpan.from_json, spans)),
    )


def _key_point(point: Mapping[str, Any], evidence: Sequence[Mapping[str, Any]]) -> KeyPoint:
    return KeyPoint(point["text"], Importance(point["importance"]), tuple(map(PlacedSpan.from_json, evidence)))


class _LazyJson(Mapping[str, Any]):
    """The object of a JSON text, parsed when it is first read: few stages read the columns of plugins."""

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


def _values(values: list[T] | None) -> tuple[T, ...] | None:
    return None if values is None else tuple(values)
