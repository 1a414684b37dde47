"""Compute the findings of a run: a loop over the table of what is planned."""

from collections.abc import Iterator
from importlib import import_module

from flows.findings.run_finding import ComputedRun, RunFinding
from flows.planning.finding_table import planned_findings
from flows.planning.run_plan import RunPlan
from tasks.record.findings import HasEntry


def compute_findings(run: ComputedRun) -> ComputedRun:
    """Return a run whose rows are computed, with its findings in the record."""
    for finding in load_planned(run.run.plan):
        if finding.compute is not None:
            run = run.with_found(finding.compute(run))
    return run


def settle_findings(run: ComputedRun) -> ComputedRun | None:
    """Return a run whose results are written with the findings that change by them; None if none does."""
    findings = [*load_planned(run.run.plan)]
    changed = [found for each in findings if each.settle is not None and (found := each.settle(run)) is not None]
    for found in changed:
        run = run.with_found(found)
    for finding in findings if changed else ():
        if finding.is_derived and finding.compute is not None:
            run = run.with_found(finding.compute(run))
    return run if changed else None


def load_planned(plan: RunPlan) -> Iterator[RunFinding]:
    """Yield the findings that a run computes."""
    for each in planned_findings(plan):
        found: RunFinding = import_module(each.module).FINDING
        yield found


def spent_so_far(plan: RunPlan) -> list[HasEntry]:
    """Return what a run that did not finish has of its findings."""
    found = (finding.spent() for finding in load_planned(plan) if finding.spent is not None)
    return [each for each in found if each is not None]
