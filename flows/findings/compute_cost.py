"""Compute what the judge's work has cost."""

from flows.findings.run_finding import ComputedRun, Found, RunFinding
from tasks.metering.cost import CostRecord
from tasks.metering.meter import current_meter
from tasks.metering.money import total_cost


def cost_so_far() -> CostRecord | None:
    """Return what the questions of a run have cost, with those of its findings; None if nothing has a price."""
    meter = current_meter()
    return None if meter is None else total_cost(meter.money_by_judge)


def find_cost(_run: ComputedRun) -> Found:
    """Return the cost of a run."""
    return Found(cost_so_far())


FINDING = RunFinding(compute=find_cost, is_derived=True, spent=cost_so_far)
