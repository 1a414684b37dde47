"""Shared helpers of the tests of sources: samples, writers and readers."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from tasks.sources import SampleReader, SourceLike, SourceOptions, read_samples

NEEDED: Mapping[str, tuple[str, ...]] = {"recall": ("user_input", "retrieved_contexts", "reference")}

SAMPLES: list[dict[str, Any]] = [
    {
        "id": "a",
        "user_input": "Where is the Danube's mouth?",
        "response": 'In the "Black Sea", says the guide.',
        "retrieved_contexts": ["The Danube ends in the Black Sea.", "It's 2850 km long;\nthe second in Europe."],
        "reference": "In the Black Sea",
        "retrieved_context_ids": ["d1", "d2"],
        "rubrics": {"score1_description": "wrong", "score2_description": "right"},
        "note": "checked",
        "retrieved_context_scores": [0.75, 0.5],
        "relevance_judgments": {"d1": 2, "d7": 0},
    },
    {
        "id": "b",
        "user_input": "Wie heißt 東京 auf Deutsch?",
        "response": "Tokio, naïvely 🗼",
        "retrieved_contexts": [],
        "reference": "Tokio",
        "retrieved_context_ids": [],
        "rubrics": {"score1_description": "falsch", "score2_description": "richtig, 'ja'"},
        "note": "unchecked",
        "retrieved_context_scores": [],
        "relevance_judgments": {},
    },
]


def write_lines(path: Path, rows: Iterable[Any]) -> Path:
    """Write JSON Lines: texts and bytes as they are, anything else as JSON."""
    lines = [row if isinstance(row, bytes) else row.encode() if isinstance(row, str) else _json(row) for row in rows]
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    return path


def read(
    source: SourceLike, required: Mapping[str, tuple[str, ...]] | None = None, **options: Any
) -> tuple[SampleReader, pa.Table]:
    """Read a source, and return the reader and all tables as one."""
    reader = read_samples(source, SourceOptions(**options), NEEDED if required is None else required)
    return reader, pa.concat_tables(list(reader))


def column(table: pa.Table, name: str) -> Sequence[Any]:
    """Return a column's values."""
    values: list[Any] = table[name].to_pylist()
    return values


def _json(row: Any) -> bytes:
    return json.dumps(row).encode()
