"""The cause that an alarm names."""

from datetime import UTC, datetime
from typing import Any, cast

import pytest

from flows.monitoring.night_alarms import NightAlarms, name_cause
from metric_core.statistics.alarms import Alarm
from metric_core.statistics.attribution import Attribution, Cause, Part
from metric_core.statistics.nights import Stream
from metric_core.statistics.resampling import Interval

NIGHT = datetime(2025, 11, 18, tzinfo=UTC)
ALARM = Alarm(
    stream=Stream("faithfulness"), since=NIGHT, told=NIGHT, drop=0.1, interval=Interval(0.04, 0.15), rows=99, nights=1
)


class Finder:
    """A finder of causes with one finding.

    Args:
        change: Change that it says is the system's.
    """

    has_evidence = True

    def __init__(self, change: float) -> None:
        self._change = change

    def find(self, metric: str, rows: frozenset[str] | None) -> Attribution:
        assert (metric, rows) == ("faithfulness", None)
        part = Part(self._change, self._change - 0.01, self._change + 0.01)
        return Attribution(Cause.SYSTEM, "the judge is the same", {}, part, Part(0.0, 0.0, 0.0))


@pytest.mark.parametrize(
    ("change", "cause", "words"),
    [
        (-0.1, "system", "the system changed (the judge is the same)"),
        (0.02, None, "this run is not worse, and another such run ends the alarm"),
    ],
)
def test_night_that_is_not_worse_has_no_cause(change: float, cause: str | None, words: str) -> None:
    named = name_cause(ALARM, cast("Any", Finder(change)), cast("Any", None))
    assert named.cause == cause
    assert named.sentence == f"faithfulness: worse since Tuesday, 18 November; down 0.04 to 0.15; {words}"


def test_what_alarms_could_not_look_at_is_named() -> None:
    alarms = NightAlarms(obstacle="the rows have no name in common", left_out=("alarms do without the run of Monday",))
    assert alarms.warnings == (
        "no alarms are looked for: the rows have no name in common",
        "alarms do without the run of Monday",
    )
    assert NightAlarms().warnings == ()
