"""Check the anchor before a run."""

from collections.abc import Iterator

from flows.findings.anchor.anchor_plan import plan_anchor
from flows.planning.run_check import RunCheck
from flows.planning.run_plan import RunPlan


def find_checks(plan: RunPlan) -> Iterator[RunCheck]:
    """Yield the check that the anchor and its labels can be read."""
    yield RunCheck("anchor", lambda: plan_anchor(plan).check(), "correct [anchor]")
