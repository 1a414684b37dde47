"""Keep the objectives of an evaluation with each run, and show their budgets in its history."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from tasks.findings.finding import Finding, WrittenRows
from tasks.findings.objectives.budgets import Budget, ObjectivesRecord, measure_budgets
from tasks.findings.objectives.objective_options import ObjectiveSettings
from tasks.findings.parts import Figure
from tasks.findings.standing import PastRun, Standing


def count(rows: WrittenRows) -> Iterator[ObjectivesRecord]:
    """Yield the objectives in the configuration of a run."""
    found = (rows.record.config.model_extra or {}).get("objectives")
    if found is not None:
        settings = ObjectiveSettings.model_validate(found)
        yield ObjectivesRecord(metrics=settings.metrics, availability=settings.availability, days=settings.days)


def standing(runs: Sequence[PastRun], now: datetime) -> Iterator[Standing]:
    """Yield the budget of each objective."""
    for budget in measure_budgets(runs, now):
        yield Standing(
            key=f"objective:{budget.name}",
            sentence=budget.sentence,
            problem=_problem(budget),
            figures=tuple(_figures(budget)),
            entry={
                "objective": budget.name,
                "runs": len(budget.runs),
                "bad": budget.bad,
                "allowed": round(budget.allowed, 6),
                "burn_rate": budget.burn_rate,
                "is_missed": budget.is_missed,
            },
        )


def _problem(budget: Budget) -> str:
    if not budget.is_spent:
        return ""
    bad = f"{budget.bad} of the last {len(budget.runs)} runs were bad"
    if budget.is_missed:
        return f"the objective {budget.name} is missed: {bad}"
    return f"the error budget of the objective {budget.name} is spent: {bad}, and another one would miss it"


def _figures(budget: Budget) -> Iterator[Figure]:
    labels = {"objective": budget.name}
    yield Figure("objective_bad_runs", "Runs that count for an objective and were bad.", budget.bad, labels)
    yield Figure("objective_allowed_runs", "Runs that may be bad by an objective.", budget.allowed, labels)
    text = "How many times as fast as allowed the last runs spent the error budget of an objective."
    yield Figure("objective_burn_rate", text, budget.burn_rate, labels)


FINDING = Finding(summary=(ObjectivesRecord,), count=count, standing=standing)
