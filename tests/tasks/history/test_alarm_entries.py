"""Alarms in words, and in outcome.json."""

import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from metric_core.errors import RunFolderError
from metric_core.statistics.alarms import Alarm
from metric_core.statistics.resampling import Interval
from metric_core.statistics.run_panel import Stream
from metric_core.statistics.slices import NO_VALUE, Slice
from tasks.history.alarm_entries import alarm_sentence, outcome_alarm, read_alarm_state, write_alarm_state
from tasks.record.outcome import RunOutcome

ALARM = Alarm(
    stream=Stream("faithfulness"),
    since=datetime(2025, 11, 18, 3, tzinfo=UTC),
    raised=datetime(2025, 11, 20, 3, tzinfo=UTC),
    drop=0.062,
    interval=Interval(0.038, 0.094),
    rows=480,
    runs=3,
)
SLICED = replace(ALARM, stream=Stream("noise_sensitivity", Slice("language", NO_VALUE)), lower_is_better=True)


def test_an_alarm_has_a_sentence() -> None:
    assert alarm_sentence(ALARM) == "faithfulness: worse since Tuesday, 18 November; down 0.04 to 0.09"
    assert alarm_sentence(SLICED, "judge") == (
        "noise_sensitivity of no language: worse since Tuesday, 18 November; up 0.04 to 0.09; the judge changed"
    )


def test_the_sentence_says_what_is_regained_and_not_watched() -> None:
    drop = "down 0.04 to 0.09"
    assert alarm_sentence(replace(ALARM, rows=82, baseline_rows=500), "system", "as is known") == (
        f"faithfulness: worse since Tuesday, 18 November; {drop}, in 82 of the 500 rows of the baseline; the system "
        "changed (as is known)"
    )
    assert alarm_sentence(replace(ALARM, rows=500, baseline_rows=500, is_regained=True)) == (
        f"faithfulness: worse since Tuesday, 18 November; {drop}; this run has regained more than half of it, and "
        "another such run ends the alarm"
    )


def test_an_alarm_is_an_entry_of_the_outcome() -> None:
    entry = outcome_alarm(SLICED, "unknown", "there is no anchor")
    assert entry.slice == {"language": NO_VALUE}
    assert entry.since == datetime(2025, 11, 18, tzinfo=UTC).date()
    assert entry.drop == (0.038, 0.094)
    assert entry.sentence.endswith("whether the system or the judge changed (there is no anchor)")
    assert outcome_alarm(ALARM).sentence == alarm_sentence(ALARM)


def test_the_next_night_reads_the_alarms_that_stood() -> None:
    outcome = RunOutcome(name="support", trigger="schedule", alarm_state=write_alarm_state([ALARM, SLICED]))
    stored = RunOutcome.model_validate(json.loads(outcome.model_dump_json()))
    assert read_alarm_state(stored.alarm_state) == [replace(ALARM, is_new=False), replace(SLICED, is_new=False)]


def test_damaged_alarms_are_named() -> None:
    state = write_alarm_state([ALARM])
    del state["alarms"][0]["since"]
    with pytest.raises(RunFolderError, match=r"Field required at 0\.since"):
        read_alarm_state(state)
