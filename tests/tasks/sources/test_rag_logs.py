"""Logs of real RAG systems, if they are present beside the repository."""

from pathlib import Path

import pytest

from tests.tasks.sources.helpers import column, read

FOLDER = Path(__file__).parents[4] / "shared" / "rag_logs"
NEEDED = {"all": ("user_input", "response", "retrieved_contexts", "reference")}


@pytest.mark.skipif(not FOLDER.is_dir(), reason="the RAG logs are not present beside the repository")
@pytest.mark.parametrize(("name", "rows"), [("mtrag_20", 20), ("northwind_50", 50)])
def test_logs_are_the_same_in_both_formats(name: str, rows: int) -> None:
    reader, lines = read(FOLDER / f"{name}.jsonl", NEEDED)
    _, parquet = read(FOLDER / f"{name}.parquet", NEEDED)
    assert lines.num_rows == rows
    assert lines.equals(parquet)
    assert reader.bad_rows == []
    assert column(lines, "row_number") == list(range(1, rows + 1))
