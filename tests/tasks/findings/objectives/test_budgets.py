"""Error budgets: which runs count, when a budget is spent, and what history, Prometheus and incidents say."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from flows.config.run_config import RunConfig
from tasks.findings.objectives.budgets import Budget, ObjectivesRecord, measure_budgets
from tasks.findings.table import standings_of
from tasks.history.catalogue import Catalogue
from tasks.history.recorded_run import RecordedMetric, RecordedRun, RunDetails
from tasks.history.standings import read_standings
from tasks.record.outcome import OutcomeIncident, OutcomeIncidents, RunOutcome
from tasks.reports.history.history_page import write_history_page

START = datetime.fromisoformat("2026-10-01T06:00:00+00:00")
RULE = "faithfulness >= 0.8 in 28 of 30 nights"


def night(number: int, value: float | None = 0.9, rules: Sequence[str] = (RULE,), **more: Any) -> RecordedRun:
    """Return a night; its `kinds` are those of its open incidents, and without a value it has no result."""
    start = START + timedelta(days=number)
    found = (OutcomeIncident(key=kind, kind=kind, sentence="", since=start) for kind in more.pop("kinds", ()))
    outcome = RunOutcome(name="support", trigger="schedule", incidents=OutcomeIncidents(continuing=tuple(found)))
    record = ObjectivesRecord(metrics=tuple(rules), availability=more.pop("availability", None), days=30)
    metric = RecordedMetric("faithfulness", "higher", value, None, None, 10, 0, 0)
    run = RecordedRun(f"run-{number}", "support", start, f"runs/{number}", "completed", trigger="schedule", due=start)
    run = replace(run, metrics=(metric,), outcome=outcome, details=RunDetails(objectives=record))
    return replace(run, status="failed", metrics=(), details=RunDetails(), **more) if value is None else run


def budget_of(*runs: RecordedRun) -> Budget:
    [budget] = measure_budgets(runs, runs[-1].created)
    return budget


def test_a_budget_is_spent_with_the_last_run_that_may_be_bad_and_missed_with_the_next() -> None:
    nights = [night(number) for number in range(40)]
    assert budget_of(*nights).bad == 0
    assert budget_of(*nights).left == pytest.approx(2)
    nights[12] = nights[20] = night(20, 0.7)
    spent = budget_of(*nights)
    assert (spent.bad, spent.is_spent, spent.is_missed) == (2, True, False)
    nights[38] = night(38, 0.79)
    missed = budget_of(*nights)
    assert (missed.bad, missed.is_missed) == (3, True)
    assert missed.burn_rate == pytest.approx(1 / 7 / (2 / 30))
    assert missed.sentence == "objective faithfulness >= 0.8 in 28 of 30 nights: missed, as 27 of 30 were good"
    assert budget_of(*nights, *(night(40 + number) for number in range(23))).bad == 1, "the window has moved on"


def test_only_monitored_runs_with_a_result_count() -> None:
    bad = replace(night(1, 0.1), outcome=None)
    assert budget_of(night(0), bad, night(2, None), night(3)).runs == (True, True)


def test_availability_counts_scheduled_nights_whose_result_can_be_trusted() -> None:
    rules: tuple[str, ...] = ()
    nights = [night(number, rules=rules, availability=0.9) for number in range(28)]
    nights[3] = night(3, None)
    nights[4] = night(4, rules=rules, kinds=("judge",))
    nights[5] = night(5, rules=rules, kinds=("gate", "alarm"))
    nights[6] = replace(night(6, None), trigger="event")
    again = replace(night(3, rules=rules), run_id="again")
    budget = budget_of(*nights)
    assert (len(budget.runs), budget.bad, budget.is_spent) == (27, 2, False)
    assert budget_of(*nights[:4], again, *nights[4:]).bad == 1, "a second run of the same night has a result"
    assert budget.sentence == ("objective availability of 90 % over 30 days: 25 of 27 were good, 0 more may be bad")


def test_objectives_are_those_of_the_last_run_with_a_result() -> None:
    other = "faithfulness >= 0.95 in 1 of 2"
    runs = [night(0), night(1, rules=(other,)), night(2, None)]
    assert budget_of(*runs).name == other
    assert budget_of(*runs).runs == (False, False)
    assert list(measure_budgets([night(2, None)], START)) == []


def test_history_page_and_standing_show_the_budget(tmp_path: Path) -> None:
    now = datetime.now(START.tzinfo)
    catalogue = Catalogue(str(tmp_path / "history.db"))
    for number in range(3):
        run = night(number, 0.5 if number else 0.9, ("faithfulness >= 0.8 in 2 of 3 nights",))
        start = now - timedelta(days=3 - number)
        catalogue.add(replace(run, created=start, due=start))
    [standing] = read_standings(catalogue, "support")
    assert standing.problem.startswith("the objective faithfulness >= 0.8 in 2 of 3 nights is missed: 2 of the last 3")
    figures = {figure.name: figure.value for figure in standing.figures}
    assert figures == {
        "objective_bad_runs": 2,
        "objective_allowed_runs": pytest.approx(1),
        "objective_burn_rate": pytest.approx(2),
    }
    page = write_history_page(catalogue, "support", tmp_path / "history.html").read_text(encoding="utf-8")
    assert "missed, as 1 of 3 were good" in page


def test_without_objectives_nothing_stands() -> None:
    assert list(standings_of([replace(night(0), details=RunDetails())], START)) == []
    assert list(standings_of([], START)) == []


def test_without_objectives_the_metrics_of_the_history_are_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalogue = Catalogue(str(tmp_path / "history.db"))
    catalogue.add(replace(night(0), created=datetime.now(START.tzinfo), details=RunDetails()))
    with monkeypatch.context() as patch:
        patch.setattr("tasks.history.catalogue._read_metrics", None)
        assert read_standings(catalogue, "support") == ()


@pytest.mark.parametrize(
    "text", ["faithfulness", "faithfulness > 0.8 in 2 of 3", "f >= x in 2 of 3", "f >= 1 in 4 of 3"]
)
def test_an_objective_of_another_form_is_refused(text: str) -> None:
    with pytest.raises(ValidationError, match="an objective must be like"):
        RunConfig.model_validate({"source": "a.jsonl", "objectives": {"metrics": [text]}})
