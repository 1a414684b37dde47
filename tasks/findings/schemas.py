"""Publish the JSON schemas of the files of a record: `python -m tasks.findings.schemas FOLDER` writes them."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, create_model

from tasks.findings.table import TABLE
from tasks.record.findings import Findings, HasEntry
from tasks.record.outcome import RunOutcome
from tasks.record.run_record import RunRecord
from tasks.record.run_summary import RunSummary
from tasks.runtime.atomic_files import write_json

_KINDS = ("record", "summary")


def record_schemas() -> Mapping[str, Mapping[str, Any]]:
    """Return the name of the published file -> JSON schema."""
    findings = [each.load() for each in TABLE]
    of_record, of_summary = ([entry for each in findings for entry in getattr(each, kind)] for kind in _KINDS)
    schemas: dict[str, type[BaseModel]] = {
        "run.schema.json": _extend(RunRecord, of_record),
        "summary.schema.json": _extend(RunSummary, of_summary),
        "outcome.schema.json": RunOutcome,
    }
    return {
        name: {"$schema": "https://json-schema.org/draft/2020-12/schema", **kind.model_json_schema()}
        for name, kind in schemas.items()
    }


def _extend(kind: type[Findings], entries: Sequence[type[HasEntry]]) -> type[Findings]:
    """Return a kind of record with the entries of findings as fields."""
    fields: dict[str, Any] = {entry.entry: (entry | None, None) for entry in entries}
    return create_model(kind.__name__, __base__=kind, __doc__=kind.__doc__, **fields)


def write_schemas(folder: Path) -> None:
    """Write the schemas into a folder."""
    for name, schema in record_schemas().items():
        write_json(folder / name, schema)


if __name__ == "__main__":
    write_schemas(Path(sys.argv[1]))
