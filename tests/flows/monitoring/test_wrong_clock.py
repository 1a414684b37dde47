"""A clock that is wrong for a night: no later night is left out, nothing is decided by it, and people are told."""

from datetime import timedelta

import pytest

from tests.flows.monitoring.conftest import Nights

pytestmark = [pytest.mark.prefect]

FAR = timedelta(days=100)


def changes_in_alerts(nights: Nights) -> list[tuple[str, str]]:
    """Return key and change of the incidents in the alerts since the last call."""
    return [(each["key"], each["change"]) for alert in nights.alerts() for each in alert["incidents"]]


def test_baseline_in_the_future_is_compared_with_and_told(nights: Nights) -> None:
    nights.ahead = FAR
    assert nights.run()[0] == "accepted"
    nights.ahead = timedelta(0)
    verdict, outcome = nights.run()
    assert (verdict, outcome.gate) == ("passed", "passed")
    (alert,) = nights.alerts()
    (sentence,) = alert["worse"]
    assert sentence == (
        "the baseline, the run of 2027-02-24T06:00:00Z, lies in the future: a clock was ahead when it was accepted. It "
        "stays the baseline until another run is accepted: assay accept RUN; 1 run in the history lies in the future, "
        "night-1 at 2027-02-24 06:00 UTC: a clock was ahead. This run is compared with the others; to remove the "
        "entry: assay history --forget night-1"
    )
    assert nights.run(0.2)[0] == "failed"
    assert ("support/alarm:faithfulness", "opened") in changes_in_alerts(nights)


def test_night_in_the_future_is_left_out_until_it_is_removed(nights: Nights) -> None:
    nights.deploy["accept"] = "passed"
    nights.run()
    nights.run()
    nights.ahead = FAR
    nights.run()
    nights.ahead = timedelta(0)
    verdict, outcome = nights.run()
    assert (verdict, outcome.accepted) == ("accepted", True)
    assert changes_in_alerts(nights) == [("support/clock", "opened")]
    verdict, outcome = nights.run()
    assert (outcome.baseline and outcome.baseline.run_id) == "night-4"
    assert nights.history.forget("night-3")
    assert not nights.history.forget("night-3")
    nights.run()
    assert changes_in_alerts(nights) == [("support/clock", "resolved")]


def test_clock_that_is_behind_ends_no_alarm(nights: Nights) -> None:
    nights.deploy["gate"] = None
    for level in (0.8, 0.8, 0.2):
        nights.run(level)
    assert ("support/alarm:faithfulness", "opened") in changes_in_alerts(nights)
    nights.ahead = -FAR
    verdict, outcome = nights.run(0.8)
    assert (verdict, [each.kind for each in outcome.incidents.recovered]) == ("inconclusive", [])
    (alert,) = nights.alerts()
    assert alert["worse"][0].startswith(
        "most earlier runs lie in the future, so the clock of this machine seems to be behind: it says 2026-08-11 06:00"
    )
    nights.ahead = timedelta(0)
    nights.run(0.2)
    assert ("support/clock", "resolved") in changes_in_alerts(nights)
