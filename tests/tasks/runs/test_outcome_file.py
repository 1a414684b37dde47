"""The outcome of a monitored run is read as it was written, and damage is a message."""

import json
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from metric_core.errors import RunFolderError
from tasks.record.outcome import (
    OutcomeAlarm,
    OutcomeBaseline,
    OutcomeCheck,
    OutcomeIncident,
    OutcomeIncidents,
    RunOutcome,
)
from tasks.runs.outcome_file import read_outcome, write_outcome
from tasks.runs.run_folder import OUTCOME, RunFolder

FOUND = OutcomeIncident(
    key="alarm:faithfulness",
    kind="alarm",
    sentence="faithfulness is worse since 18 November",
    since=datetime(2026, 11, 18, 6, tzinfo=UTC),
    run_id="r3",
)
FULL = RunOutcome(
    name="support",
    trigger="schedule",
    version="2026-11-18T06:00:00+00:00",
    baseline=OutcomeBaseline(run_id="r1", folder="runs/1", version="2026-11-16T06:00:00+00:00"),
    gate="failed",
    checks=(
        OutcomeCheck(
            metric="faithfulness",
            rule="mean >= 0.8",
            outcome="failed",
            observed=0.7,
            interval=(0.65, 0.75),
            rows=40,
            slice={"language": "de"},
        ),
    ),
    alarms=(
        OutcomeAlarm(
            metric="faithfulness",
            sentence="faithfulness is worse since 18 November",
            since=date(2026, 11, 18),
            drop=(0.04, 0.09),
            cause="system",
        ),
    ),
    alarm_state={"spent": 0.1},
    message="the gate failed",
    incidents=OutcomeIncidents(opened=(FOUND,)),
)


def test_outcome_is_read_as_it_was_written(tmp_path: Path) -> None:
    write_outcome(tmp_path, FULL)
    assert read_outcome(tmp_path) == FULL
    assert FULL.incidents.is_open


def test_run_that_nobody_monitored_has_no_outcome(tmp_path: Path) -> None:
    assert read_outcome(tmp_path) is None


def test_entries_of_a_later_release_are_ignored(tmp_path: Path) -> None:
    write_outcome(tmp_path, FULL)
    content = json.loads((tmp_path / OUTCOME).read_text(encoding="utf-8"))
    content["alarms"][0]["new"] = content["new"] = 1
    (tmp_path / OUTCOME).write_text(json.dumps(content), encoding="utf-8")
    assert read_outcome(tmp_path) == FULL


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "cannot be read: Expecting"),
        ("[]", "cannot be read: the file: Input should be"),
        ('{"format": 2}', "has the format 2, this rag-assay reads 1"),
        ('{"format": 1, "name": "a", "trigger": "moon"}', "trigger: Input should be 'schedule', 'event' or 'manual'"),
    ],
)
def test_damaged_outcome_is_a_message(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / OUTCOME).write_text(text, encoding="utf-8")
    with pytest.raises(RunFolderError, match=message):
        read_outcome(tmp_path)


def test_next_run_into_the_folder_removes_the_outcome(tmp_path: Path) -> None:
    write_outcome(tmp_path, FULL)
    with pytest.raises(RunFolderError, match="not a run's"), RunFolder(tmp_path / "..").lock():
        pass
    with RunFolder(tmp_path).lock():
        assert read_outcome(tmp_path) is None
