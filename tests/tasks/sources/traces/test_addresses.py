"""Sources of traces by path, URL, folder and pattern."""

import json
from pathlib import Path
from typing import Any

import fsspec
import pytest

from metric_core.errors import SourceError
from tests.tasks.sources.traces.builders import read_traces


def span(trace_id: str) -> str:
    attributes = {"openinference.span.kind": "CHAIN", "input.value": f"{trace_id}?", "output.value": "So."}
    return (
        json.dumps({"name": "rag", "context": {"trace_id": trace_id, "span_id": "s"}, "attributes": attributes}) + "\n"
    )


@pytest.mark.parametrize("address", ["memory://day/a.jsonl", "memory://day", "memory://day/*.jsonl"])
def test_urls(address: str) -> None:
    memory = fsspec.filesystem("memory")
    memory.pipe("/day/a.jsonl", span("t1").encode())
    try:
        _, [row] = read_traces(address)
        assert (row["row_id"], row["user_input"]) == ("t1", "t1?")
    finally:
        memory.rm("/day", recursive=True)


def test_secrets_of_an_address_are_not_in_messages(tmp_path: Path) -> None:
    del tmp_path
    with pytest.raises(SourceError) as caught:
        read_traces("memory://key:secret@day/missing.jsonl")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("address", "problem"),
    [("", "traces: names no files"), ("missing.jsonl", "does not exist"), ("*.jsonl", "matches no readable file")],
)
def test_addresses_without_files(address: str, problem: str, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SourceError, match=problem):
        read_traces(address)
