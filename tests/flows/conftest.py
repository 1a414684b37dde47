"""Runs of flows that lose no time with recipients that cannot be reached, and whose records are read as written."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from flows.alerting import delivery
from tasks.record.run_record import RunRecord
from tasks.record.run_summary import RunSummary
from tasks.runtime.retry import Backoff


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery, "BACKOFF", Backoff(first=0.001, longest=0.001))


@pytest.fixture(autouse=True)
def _records_are_written_as_they_are_read(tmp_path: Path) -> Iterator[None]:
    """Compare the files of each finished run that the test leaves with what is written after they are read."""
    yield
    for file in tmp_path.rglob("run.json"):
        content = _content(file)
        summary = _content(file.with_name("summary.json"))
        if content.get("status") == "completed" and content.get("format") == 1 and summary:
            assert _holds(RunRecord.model_validate(content).to_json(), content), file
            assert _holds(RunSummary.model_validate(summary).to_json(), summary), file


def _holds(written: object, read: object) -> bool:
    """Return whether all that was read is written; folders that tests write by hand lack entries with a default."""
    if isinstance(written, dict) and isinstance(read, dict):
        return all(name in written and _holds(written[name], value) for name, value in read.items())
    if isinstance(written, list) and isinstance(read, list):
        return len(written) == len(read) and all(map(_holds, written, read))
    return written == read


def _content(file: Path) -> dict[str, object]:
    """Return the content of a JSON file; empty if the test has damaged or removed it."""
    try:
        content: dict[str, object] = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content
