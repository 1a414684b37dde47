"""Measure how much of the error budgets of objectives is spent, from the history of an evaluation."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import ClassVar

from tasks.findings.objectives.objective_options import MetricObjective
from tasks.findings.standing import PastRun
from tasks.record.findings import FindingPart

RECENT = 7
"""Number of last runs from which the burn rate is found."""
_UNTRUSTED = ("source", "judge")
"""Kinds of incidents that make a result untrustworthy while they are open."""


class ObjectivesRecord(FindingPart):
    """The objectives of a run, as its configuration has them."""

    entry: ClassVar[str] = "objectives"

    metrics: tuple[str, ...]
    availability: float | None
    days: int


@dataclass(frozen=True, slots=True)
class Budget:
    """An objective, and the runs that count for it.

    Args:
        name: The objective in words.
        runs: For each run, oldest first, whether it is good.
        share: Share of the runs that may be bad.
        window: Number of runs that count, if there are as many; None for all those of some days.
    """

    name: str
    runs: tuple[bool, ...]
    share: float
    window: int | None = None

    @property
    def bad(self) -> int:
        """The number of bad runs."""
        return self.runs.count(False)

    @property
    def allowed(self) -> float:
        """The number of runs that may be bad."""
        return round(self.share * (self.window or len(self.runs)), 9)

    @property
    def left(self) -> float:
        """The number of further runs that may be bad; below 0 if the objective is missed."""
        return self.allowed - self.bad

    @property
    def is_missed(self) -> bool:
        """Whether more runs were bad than may be."""
        return self.bad > self.allowed + 1e-9

    @property
    def is_spent(self) -> bool:
        """Whether nothing of the budget is left."""
        return bool(self.bad) and self.left < 1e-9

    @property
    def burn_rate(self) -> float | None:
        """The pace of spending in the last runs, in multiples of the allowed one; None if no run may be bad."""
        recent = self.runs[-RECENT:]
        return recent.count(False) / len(recent) / self.share if recent and self.share > 0 else None

    @property
    def sentence(self) -> str:
        """The budget in words.

        >>> Budget("faithfulness >= 0.8 in 28 of 30 runs", (True,) * 24 + (False, *(True,) * 5), 2 / 30, 30).sentence
        'objective faithfulness >= 0.8 in 28 of 30 runs: 29 of 30 were good, 1 more may be bad; the last 7 runs spent
        the budget 2.1 times as fast as allowed'
        """
        if not self.runs:
            return f"objective {self.name}: no run has shown it yet"
        counts = f"{len(self.runs) - self.bad:,} of {len(self.runs):,} {'was' if len(self.runs) == 1 else 'were'} good"
        if self.is_missed:
            return f"objective {self.name}: missed, as {counts}"
        more = f"{int(self.left + 1e-9):,} more may be bad"
        rate, recent = self.burn_rate, min(RECENT, len(self.runs))
        pace = f"; the last {recent} runs spent the budget {rate:.1f} times as fast as allowed" if rate else ""
        return f"objective {self.name}: {counts}, {more}{pace}"


def find_objectives(runs: Sequence[PastRun]) -> ObjectivesRecord | None:
    """Return the objectives of an evaluation: those of its last run that has a result; None without any."""
    last = next((run for run in reversed(runs) if run.has_result), None)
    return None if last is None else last.details.find(ObjectivesRecord)


def measure_budgets(runs: Sequence[PastRun], now: datetime) -> Iterator[Budget]:
    """Yield the budget of each objective of an evaluation.

    Args:
        runs: Runs of the evaluation, oldest first.
        now: Time at which the days of the availability end.
    """
    record = find_objectives(runs)
    if record is None:
        return
    for text in record.metrics:
        objective = MetricObjective.from_text(text)
        values = [value for run in runs if (value := _value_of(run, objective.metric)) is not None]
        good = tuple(objective.is_met_by(value) for value in values[-objective.runs :])
        yield Budget(" ".join(text.split()), good, 1 - objective.good / objective.runs, objective.runs)
    if record.availability is not None:
        name = f"availability of {record.availability * 100:g} % over {record.days} days"
        begin = now - timedelta(days=record.days)
        yield Budget(name, tuple(_trusted_nights(runs, begin, now)), 1 - record.availability)


def _value_of(run: PastRun, metric: str) -> float | None:
    """Return the value of a metric in a monitored run that has a result; None without one."""
    if run.outcome is None or not run.has_result:
        return None
    return next((each.mean for each in run.metrics if each.metric == metric and not each.slice_column), None)


def _trusted_nights(runs: Sequence[PastRun], begin: datetime, end: datetime) -> list[bool]:
    """Return for each time at which a run was due whether one of its runs has a result that can be trusted."""
    nights: dict[datetime, bool] = {}
    for run in runs:
        due = run.due or run.created
        if run.trigger == "schedule" and begin < due <= end:
            nights[due] = nights.get(due, False) or _is_trusted(run)
    return [nights[due] for due in sorted(nights)]


def _is_trusted(run: PastRun) -> bool:
    outcome = run.outcome
    incidents = () if outcome is None else (*outcome.incidents.opened, *outcome.incidents.continuing)
    return run.has_result and all(each.kind not in _UNTRUSTED for each in incidents)
