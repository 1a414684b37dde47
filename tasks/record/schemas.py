"""Publish the JSON schemas of the files of a record: `python -m tasks.record.schemas FOLDER` writes them."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from tasks.record.outcome import RunOutcome
from tasks.record.run_record import RunRecord
from tasks.record.run_summary import RunSummary
from tasks.runtime.atomic_files import write_json


def record_schemas() -> Mapping[str, Mapping[str, Any]]:
    """Return the name of the published file -> JSON schema."""
    schemas: dict[str, type[BaseModel]] = {
        "run.schema.json": RunRecord,
        "summary.schema.json": RunSummary,
        "outcome.schema.json": RunOutcome,
    }
    return {
        name: {"$schema": "https://json-schema.org/draft/2020-12/schema", **kind.model_json_schema()}
        for name, kind in schemas.items()
    }


def write_schemas(folder: Path) -> None:
    """Write the schemas into a folder."""
    for name, schema in record_schemas().items():
        write_json(folder / name, schema)


if __name__ == "__main__":
    write_schemas(Path(sys.argv[1]))
