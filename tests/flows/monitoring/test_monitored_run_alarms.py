"""The cause that an alarm names."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, cast

import pytest

from flows.monitoring.monitored_run_alarms import RunAlarms, name_cause
from metric_core.statistics.alarms import Alarm
from metric_core.statistics.resampling import Interval
from metric_core.statistics.run_panel import Stream
from metric_core.statistics.shared_noise import ASSUMED_NOISE
from tasks.comparison.changed_side import ChangedSide, Side
from tasks.history.alarm_entries import outcome_alarm

NIGHT = datetime(2025, 11, 18, tzinfo=UTC)
ALARM = Alarm(
    stream=Stream("faithfulness"), since=NIGHT, raised=NIGHT, drop=0.1, interval=Interval(0.04, 0.15), rows=99, runs=1
)


class Finder:
    """A finder with one finding.

    Args:
        side: Side that it finds.
    """

    has_evidence = True

    def __init__(self, side: Side) -> None:
        self._side = side

    def find(self, metric: str, rows: frozenset[str] | None) -> ChangedSide:
        assert (metric, rows) == ("faithfulness", None)
        return ChangedSide(self._side, "as the anchor says")


@pytest.mark.parametrize(
    ("found", "before", "cause"),
    [
        (Side.SYSTEM, None, "system"),
        (Side.UNKNOWN, None, "unknown"),
        (Side.UNKNOWN, "judge", "judge"),
        (Side.UNKNOWN, "unknown", "unknown"),
        (Side.SYSTEM, "judge", "system"),
    ],
)
def test_cause_that_was_found_is_kept_until_another_is_found(found: Side, before: Any, cause: str) -> None:
    known = {} if before is None else {"alarm:faithfulness": outcome_alarm(ALARM, before, "as found before")}
    named = name_cause(ALARM, cast("Any", Finder(found)), cast("Any", None), known)
    assert named.cause == cause
    assert named.reason == ("as found before" if found is Side.UNKNOWN and before == "judge" else "as the anchor says")
    regained = name_cause(replace(ALARM, is_regained=True), cast("Any", Finder(found)), cast("Any", None), known)
    assert (regained.cause, regained.is_regained, named.is_regained) == (before, True, False)
    assert regained.sentence.endswith("this run has regained more than half of it, and another such run ends the alarm")


def test_night_is_not_worse_if_all_its_alarms_are_regained() -> None:
    regained = outcome_alarm(replace(ALARM, is_regained=True))
    assert not RunAlarms().is_worse
    assert not RunAlarms(alarms=(regained,)).is_worse
    assert RunAlarms(alarms=(regained, outcome_alarm(ALARM))).is_worse


def test_what_alarms_could_not_look_at_is_named() -> None:
    alarms = RunAlarms(obstacle="the rows have no name in common", left_out=("alarms do without the run of Monday",))
    assert alarms.warnings == (
        "no alarms are looked for: the rows have no name in common",
        "alarms do without the run of Monday",
    )
    assert RunAlarms().warnings == ()


def test_the_margin_for_shared_noise_is_named() -> None:
    """It is that of one run compared with one, 4.2 deviations, where it is larger than that of the rows."""
    assert RunAlarms().margin == ""
    assert RunAlarms(shared_noise={"faithfulness": 0.02}).margin == "", "the first run has no step"
    steps = {"faithfulness": (0.0, 0.01), "recall": (0.0, 0.02), "precision": (0.0, 0.02)}
    named = RunAlarms(steps=steps, shared_noise={"faithfulness": 0.01, "recall": 0.022, "precision": 0.01}).margin
    assert named == "by earlier runs, all rows of a run move together by up to 0.059 for faithfulness, 0.13 for recall"
    assumed = RunAlarms(steps=steps, shared_noise={"recall": ASSUMED_NOISE})
    assert assumed.margin == "", "no run has shown it"
