"""Figures of availability: which runs count, and that they are what one counts by hand."""

import random
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Literal

from tasks.history.availability import WINDOWS
from tasks.history.catalogue import Catalogue
from tasks.history.recorded_run import RecordedRun, missed_run_id
from tests.tasks.history.run_folders import START, outcome_of, write_run

NOW = START + timedelta(days=100)


def start_of(due: datetime, trigger: str = "schedule") -> dict[str, str]:
    return {"trigger": trigger, "due": due.isoformat()}


def test_only_scheduled_runs_count_and_a_bad_result_is_a_result(catalogue: Catalogue, tmp_path: Path) -> None:
    numbers = iter(range(99, 80, -1))

    def add(status: str, trigger: str = "schedule", **entries: Any) -> None:
        night = next(numbers)
        due = START + timedelta(days=night)
        outcome = outcome_of(0, gate="failed", trigger=trigger) if entries.pop("is_judged", False) else None
        content: dict[str, Any] = {"start": start_of(due, trigger), "status": status, **entries}
        catalogue.record(write_run(tmp_path / str(night), night, outcome=outcome, **content))

    add("completed", is_judged=True)
    add("completed", "manual", is_judged=True)
    add("failed", "event", reason="the judge is down")
    add("failed", reason="the judge is down")
    add("stopped", reason="the budget is spent")
    add("completed", failures=["too few scores"])
    week, month, _ = catalogue.availability("nightly", NOW)
    assert (week.due, week.finished, week.failed, week.missed) == (4, 1, 3, 0)
    assert (month.entry, month.share) == (
        {"days": 30, "due": 4, "finished": 1, "failed": 3, "missed": 0, "availability": 0.25},
        0.25,
    )
    assert [each.share for each in catalogue.availability("weekly", NOW)] == [None] * 3


def test_runs_are_counted_by_when_they_were_due(catalogue: Catalogue, tmp_path: Path) -> None:
    """A run that began late belongs to the day on which it was due, and one that is due later does not count yet."""
    late = write_run(tmp_path / "late", 94, created=(NOW - timedelta(days=6)).isoformat(), run_id="late")
    catalogue.record(late)
    assert [each.due for each in catalogue.availability("nightly", NOW)] == [0, 0, 0]
    catalogue.record(write_run(tmp_path / "late", 94, run_id="late", start=start_of(NOW - timedelta(days=7))))
    assert [each.due for each in catalogue.availability("nightly", NOW)] == [0, 1, 1]
    due = NOW + timedelta(hours=1)
    catalogue.add(RecordedRun.without_results("next", "nightly", due, "missed", "", "schedule"))
    assert [each.due for each in catalogue.availability("nightly", NOW)] == [0, 1, 1]


def test_figures_are_those_of_the_raw_entries(catalogue: Catalogue, tmp_path: Path) -> None:
    """A hundred nights of all kinds, counted once by the catalogue and once from a plain list."""
    numbers = random.Random(3)
    kinds = ["finished"] * 5 + ["failed", "died", "missed", "manual"]
    nights = [(night, numbers.choice(kinds)) for night in range(100)]
    for night, kind in nights:
        due = START + timedelta(days=night, hours=1)
        if kind in ("finished", "died", "manual"):
            ended: dict[str, Any] = {"status": "failed", "reason": "the judge is down"} if kind == "died" else {}
            trigger = "manual" if kind == "manual" else "schedule"
            catalogue.record(write_run(tmp_path / str(night), night, start=start_of(due, trigger), **ended))
        else:
            run_id = missed_run_id("nightly", due) if kind == "missed" else f"flow-run-{night}"
            status: Literal["failed", "missed"] = "missed" if kind == "missed" else "failed"
            catalogue.add(RecordedRun.without_results(run_id, "nightly", due, status, "a reason", "schedule"))
    for found, days in zip(catalogue.availability("nightly", NOW), WINDOWS, strict=True):
        last = [kind for night, kind in nights if START + timedelta(days=night, hours=1) > NOW - timedelta(days=days)]
        counts = (last.count("finished"), last.count("failed") + last.count("died"), last.count("missed"))
        assert (found.finished, found.failed, found.missed) == counts
        assert found.due == len(last) - last.count("manual")
