"""List what runs compute for their findings, in the order of the computation: the cost comes last.

A room is imported only if a run is to compute its finding.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module

from flows.findings.run_finding import ComputedRun, RunFinding
from flows.planning.run_plan import RunPlan
from tasks.record.findings import HasEntry


@dataclass(frozen=True, slots=True)
class ComputedFinding:
    """A line of the table.

    Args:
        room: Module that declares the finding as `FINDING`.
        is_planned: Function that returns whether a run computes the finding.
    """

    room: str
    is_planned: Callable[[RunPlan], bool]

    def load(self) -> RunFinding:
        """Return the finding."""
        found: RunFinding = import_module(self.room).FINDING
        return found


def _asks_again(plan: RunPlan) -> bool:
    """Return whether rows, or those of the anchor, may be asked about again."""
    return bool(plan.outputs.ask_again) or plan.anchor is not None


TABLE = (
    ComputedFinding("flows.findings.compute_throughput", lambda plan: bool(plan.metrics.kinds)),
    ComputedFinding("flows.findings.compute_baseline", lambda plan: plan.outputs.baseline is not None),
    ComputedFinding("flows.findings.anchor.compute_anchor", lambda plan: plan.anchor is not None),
    ComputedFinding("flows.findings.repeats.compute_repeats", _asks_again),
    ComputedFinding("flows.findings.variance.compute_variance", _asks_again),
    ComputedFinding("flows.findings.compute_cost", lambda plan: plan.models.has_prices),
)


def compute_findings(run: ComputedRun) -> ComputedRun:
    """Return a run whose rows are computed, with its findings in the record."""
    for finding in planned_findings(run.run.plan):
        if finding.compute is not None:
            run = run.with_found(finding.compute(run))
    return run


def settle_findings(run: ComputedRun) -> ComputedRun | None:
    """Return a run whose results are written with the findings that change by them; None if none does."""
    findings = [*planned_findings(run.run.plan)]
    changed = [found for each in findings if each.settle is not None and (found := each.settle(run)) is not None]
    for found in changed:
        run = run.with_found(found)
    for finding in findings if changed else ():
        if finding.is_derived and finding.compute is not None:
            run = run.with_found(finding.compute(run))
    return run if changed else None


def planned_findings(plan: RunPlan) -> Iterator[RunFinding]:
    """Yield the findings that a run computes."""
    yield from (each.load() for each in TABLE if each.is_planned(plan))


def spent_so_far(plan: RunPlan) -> list[HasEntry]:
    """Return what a run that did not finish has of its findings."""
    found = (finding.spent() for finding in planned_findings(plan) if finding.spent is not None)
    return [each for each in found if each is not None]
