"""Check the files of a run folder before they are used: they may be damaged, or written by another program."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from jsonschema import Draft202012Validator

from metric_core.errors import RunFolderError
from metric_core.records import Direction, Status
from metric_core.schemas import SCHEMAS
from metric_core.stages import Stage

AGAIN = "Evaluate the source again with `assay run`."

_TEXT, _COUNT, _OBJECT = {"type": "string"}, {"type": "integer", "minimum": 0}, {"type": "object"}
_TEXTS = {"type": "array", "items": _TEXT}
_NUMBER_OR_NULL = {"type": ["number", "null"]}
_BOUNDS = {"type": ["array", "null"], "items": {"type": "number"}, "minItems": 2, "maxItems": 2}
_DIRECTION = {"enum": [str(direction) for direction in Direction]}
MANIFEST_SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": [
        *("rows", "metrics", "stages", "config", "judge", "embedder", "language", "versions"),
    ],
    "properties": {
        "run_id": _TEXT,
        "created": _TEXT,
        "source": _TEXT,
        "seconds": {"type": "number"},
        "rows": _COUNT,
        "rows_read": _COUNT,
        "bad_row_count": _COUNT,
        "bad_rows": {"type": "array", "items": {"type": "object", "required": ["number", "problem"]}},
        "warnings": _TEXTS,
        "server_warnings": _TEXTS,
        "foreign_answers": _TEXTS,
        "failures": _TEXTS,
        "config": _OBJECT,
        "judge": _OBJECT,
        "panel": {"type": "array", "items": _OBJECT},
        "embedder": {"type": ["object", "null"]},  # null in a run that compares no vectors
        "language": _OBJECT,
        "recognizer": _OBJECT,
        "versions": {"type": "object", "additionalProperties": _TEXT},
        "usage": _OBJECT,
        "metrics": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["key", "name", "direction", "parameters"],
                "properties": {
                    "key": _TEXT,
                    "name": _TEXT,
                    "direction": _DIRECTION,
                    "parameters": _OBJECT,
                    "bounds": _BOUNDS,
                },
            },
        },
        "stages": {
            "type": "object",
            "propertyNames": {"enum": [str(stage) for stage in Stage]},
            "additionalProperties": _OBJECT,
        },
    },
}
"""The part of run.json that the verbs read."""

_METRICS: dict[str, Any] = {
    "type": "array",
    "items": {
        "type": "object",
        "required": ["metric", "direction", "scored", "undefined", "failed", "distribution"],
        "properties": {
            "metric": _TEXT,
            "direction": _DIRECTION,
            "scored": _COUNT,
            "undefined": _COUNT,
            "failed": _COUNT,
            "distribution": {"type": ["object", "null"], "properties": {"mean": _NUMBER_OR_NULL}},
        },
    },
}
_COLUMN_OF_SLICES: dict[str, Any] = {
    "type": "object",
    "required": ["column", "values", "merged", "slices"],
    "properties": {
        "column": _TEXT,
        "values": _COUNT,
        "merged": _COUNT,
        "slices": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["value", "rows", "is_small", "metrics"],
                "properties": {"value": _TEXT, "rows": _COUNT, "is_small": {"type": "boolean"}, "metrics": _METRICS},
            },
        },
    },
}
SUMMARY_SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["rows", "metrics"],
    "properties": {"rows": _COUNT, "metrics": _METRICS, "slices": {"type": "array", "items": _COLUMN_OF_SLICES}},
}
"""The part of summary.json that the verbs read."""


def check_json(content: Any, schema: Mapping[str, Any], path: Path) -> None:
    """Refuse the content of a JSON file that does not match a schema.

    Raises:
        RunFolderError: It does not match; the message names the entry.
    """
    error = next(_validator(id(schema)).iter_errors(content), None)
    if error is not None:
        place = ".".join(map(str, error.absolute_path)) or "the file"
        raise RunFolderError(f"{path} cannot be read: {place}: {error.message[:300]}. {AGAIN}")


@cache
def _validator(identity: int) -> Any:
    return Draft202012Validator(next(each for each in (MANIFEST_SCHEMA, SUMMARY_SCHEMA) if id(each) == identity))


def unreadable_error(path: Path, error: Exception) -> RunFolderError:
    """Return the error for a table that is damaged or cannot be read."""
    return RunFolderError(f"the table {path} cannot be read ({error}). Evaluate the source again with `assay run`.")


def check_table(schema: pa.Schema, stage: Stage, path: Path) -> None:
    """Refuse a table whose version or columns are not those of its stage.

    Raises:
        RunFolderError: They are not; the message names the version or the column.
    """
    expected = SCHEMAS[stage]
    version = (schema.metadata or {}).get(b"assay.version", b"none").decode(errors="replace")
    if not expected.can_read(version):
        raise RunFolderError(
            f"the table {path} has schema version {version}, this rag-assay reads {expected.version}. {AGAIN}"
        )
    for field in expected.fields:
        found = schema.get_all_field_indices(field.name)
        if not found and field.name in expected.optional:
            continue
        if len(found) != 1:
            problem = "no column" if not found else f"{len(found)} columns"
            raise RunFolderError(f"the table {path} cannot be read: it has {problem} {field.name}. {AGAIN}")
        if (kind := schema.field(found[0]).type) != field.type:
            raise RunFolderError(
                f"the table {path} cannot be read: its column {field.name} holds {kind}, wanted {field.type}. {AGAIN}"
            )


def check_cells(table: pa.Table, path: Path) -> None:
    """Refuse scores that rag-assay does not write: each cell is a finite value or a label, or has none with a reason.

    Args:
        table: Rows of the score table with the columns `row_id`, `metric`, `value`, `status` and `label`.

    Raises:
        RunFolderError: A cell is of another kind; the message names it.
    """
    value, status = table["value"], table["status"]
    is_scored = pc.equal(status, str(Status.SCORED))
    has_value = pc.or_(pc.is_valid(value), pc.is_valid(table["label"]))
    known = pa.array([str(each) for each in Status])
    problems = {
        "no row or no metric": pc.or_(pc.is_null(table["row_id"]), pc.is_null(table["metric"])),
        "an unknown status": pc.invert(pc.is_in(status, value_set=known)),
        "a value that is not finite": pc.invert(pc.fill_null(pc.is_finite(value), fill_value=True)),
        "a status that contradicts its value": pc.not_equal(is_scored, has_value),
    }
    for problem, is_wrong in problems.items():
        if (index := pc.index(pc.fill_null(is_wrong, fill_value=False), value=True).as_py()) >= 0:
            cell = table.slice(index, 1).to_pylist()[0]
            got = {name: cell[name] for name in ("row_id", "metric", "status", "value", "label")}
            raise RunFolderError(f"the table {path} cannot be read: a cell has {problem}: {got}. {AGAIN}")
    cells = table.select(["row_id", "metric"]).group_by(["row_id", "metric"]).aggregate([([], "count_all")])
    if cells.num_rows < table.num_rows:
        twice = cells.filter(pc.greater(cells["count_all"], 1)).to_pylist()[0]
        raise RunFolderError(
            f"the table {path} cannot be read: the row {twice['row_id']!r} has {twice['count_all']} cells of "
            f"{twice['metric']}, wanted one. {AGAIN}"
        )
