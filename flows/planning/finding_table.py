"""List what runs compute for their findings, in the order of the computation: the cost comes last.

A room is imported only if a run is to compute its finding, or to check what it needs.
"""

from collections.abc import Callable
from dataclasses import dataclass

from flows.planning.run_plan import RunPlan


@dataclass(frozen=True, slots=True)
class PlannedFinding:
    """A line of the table.

    Args:
        module: Module that declares as `FINDING` what a run computes.
        is_planned: Function that returns whether a run computes the finding.
        checks: Module with the function `find_checks`, which returns checks before a run that reads its data; empty
            without any.
        previews: Names of what it adds to a dry run.
    """

    module: str
    is_planned: Callable[[RunPlan], bool]
    checks: str = ""
    previews: tuple[str, ...] = ()


TABLE: tuple[PlannedFinding, ...] = (
    PlannedFinding("flows.findings.compute_throughput", lambda plan: bool(plan.metrics.kinds)),
    PlannedFinding("flows.findings.compute_baseline", lambda plan: plan.outputs.baseline is not None),
    PlannedFinding(
        "flows.findings.anchor.compute_anchor",
        lambda plan: plan.asks_for("anchor"),
        checks="flows.findings.anchor.anchor_checks",
        previews=("anchor", "asked_again"),
    ),
    PlannedFinding(
        "flows.findings.repeats.compute_repeats",
        lambda plan: plan.asks_for("ask_again", "anchor"),
        previews=("rows_asked_again",),
    ),
    PlannedFinding(
        "flows.findings.variance.compute_variance",
        lambda plan: plan.asks_for("ask_again", "anchor"),
    ),
    PlannedFinding("flows.findings.robustness.compute_robustness", lambda plan: plan.asks_for("second_judge")),
    PlannedFinding("flows.findings.compute_cost", lambda plan: plan.has_prices),
)


def planned_findings(plan: RunPlan) -> list[PlannedFinding]:
    """Return the findings that a run computes."""
    return [each for each in TABLE if each.is_planned(plan)]
