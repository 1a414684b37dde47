"""Builds small inputs for stages: samples tables, and scripts of judge answers."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from metric_core.stages import Stage
from tasks.options.judge_options import JudgeSettings
from tasks.tables.records import build_table


def samples_table(*rows: Mapping[str, Any]) -> pa.Table:
    """A samples table; rows without an id are called row-1, row-2, ..."""
    numbered = [{"row_id": f"row-{number}", "row_number": number, **row} for number, row in enumerate(rows, start=1)]
    return build_table(Stage.SAMPLES, numbered)


def script(folder: Path, *entries: Mapping[str, Any]) -> JudgeSettings:
    """Settings of a scripted judge that gives these answers."""
    path = folder / "script.json"
    path.write_text(json.dumps(list(entries)), encoding="utf-8")
    return JudgeSettings(backend="scripted", script=str(path))


def says(kind: str, *texts: str, answer: Any) -> dict[str, Any]:
    """An entry of a script: the answer to questions of a kind that carry the texts."""
    return {"kind": kind, "texts": list(texts), "answer": answer}


def fails(kind: str, *texts: str, reason: str = "the reply was cut off") -> dict[str, Any]:
    """An entry of a script: questions of a kind that carry the texts get no usable answer."""
    return {"kind": kind, "texts": list(texts), "failed": reason}


def cells(table: pa.Table, *columns: str) -> Sequence[tuple[Any, ...]]:
    """The rows of a table as tuples of the named columns."""
    return [tuple(row[column] for column in columns) for row in table.to_pylist()]
