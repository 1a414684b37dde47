"""Runs that are many times as large, as long or as expensive as those before them."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from flows.monitoring.acceptance import accept_run
from flows.monitoring.growth import ROWS, SECONDS, TOKENS, find_growth_incidents
from tasks.history.recorded_run import RecordedRun, RunCost
from tasks.record.outcome import OutcomeIncident, OutcomeIncidents, RunOutcome
from tests.flows.monitoring.conftest import START, Nights


def night(number: int, *open_keys: str, rows: int = 200, accepted: bool = False, **cost: Any) -> RecordedRun:
    """Return the entry of a night in which some incidents were open."""
    start = START + timedelta(days=number)
    found = tuple(OutcomeIncident(key=key, kind="source", sentence=key, since=start) for key in open_keys)
    outcome = RunOutcome(
        name="support", trigger="schedule", accepted=accepted, incidents=OutcomeIncidents(continuing=found)
    )
    run = RecordedRun(f"run-{number}", "support", start, f"runs/{number}", "completed", source="a.jsonl", rows=rows)
    return replace(run, outcome=outcome, cost=RunCost(**{"seconds": 400.0, "prompt_tokens": 90_000} | cost))


@pytest.mark.parametrize(
    ("tonight", "keys"),
    [
        ({"rows": 600}, []),
        ({"rows": 601}, [ROWS]),
        ({"seconds": 1300.0}, [SECONDS]),
        ({"prompt_tokens": 200_000, "output_tokens": 80_000}, [TOKENS]),
        ({"prompt_tokens": 200_000}, []),
    ],
)
def test_run_beyond_three_times_the_most_of_earlier_ones_is_named(tonight: dict[str, Any], keys: list[str]) -> None:
    earlier = [night(0, rows=100, seconds=10.0), night(1), night(2, seconds=None)]
    assert [each.key for each in find_growth_incidents(night(3, **tonight), earlier, 3.0)] == keys
    assert find_growth_incidents(night(3, **tonight), earlier, 0.0) == []
    assert find_growth_incidents(night(3, **tonight), [], 3.0) == []


def test_small_runs_may_grow_by_any_factor() -> None:
    assert find_growth_incidents(night(1, rows=100), [night(0, rows=2)], 3.0) == []


def test_nights_with_the_incident_are_not_usual_unless_one_was_accepted() -> None:
    large: dict[str, Any] = {"rows": 20_000}
    (found,) = find_growth_incidents(night(2, **large), [night(0), night(1, ROWS, **large)], 3.0)
    assert found.sentence == (
        "a.jsonl has 20,000 rows, 100 times as many as any of the last runs (200). The option `budget` stops runs that "
        "cost too much. If this is intended, accept the run: assay accept runs/2"
    )
    assert find_growth_incidents(night(2, **large), [night(0), night(1, ROWS, accepted=True, **large)], 3.0) == []


@pytest.mark.prefect
def test_source_that_has_grown_is_told_once_until_it_is_accepted(nights: Nights) -> None:
    nights.run()
    nights.run(rows=400)
    (alert,) = nights.alerts()
    assert [(each["key"], each["severity"]) for each in alert["incidents"]] == [("support/source: growth", "warning")]
    assert alert["worse"][0].startswith(
        "data/handbook.jsonl has 400 rows, 10 times as many as any of the last runs (40)."
    )
    nights.run(rows=400)
    assert nights.alerts() == []
    accept_run(nights.folders[-1])
    nights.history.record(nights.folders[-1])  # the configuration of these nights names no history
    nights.run(rows=400)
    (alert,) = nights.alerts()
    assert alert["outcome"] == "recovered"
