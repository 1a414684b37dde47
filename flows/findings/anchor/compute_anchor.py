"""Evaluate the anchor of a run."""

from flows.findings.anchor.anchor_evaluation import anchor_warnings, evaluate_anchor
from flows.findings.anchor.preview_anchor import preview_anchor
from flows.findings.run_finding import ComputedRun, Found, RunFinding


def find_anchor(run: ComputedRun) -> Found:
    """Return the scores of the anchor, which is evaluated into its folder in that of the run."""
    anchor = evaluate_anchor(run.run, run.tables)
    return Found(anchor, anchor_warnings(anchor))


FINDING = RunFinding(compute=find_anchor, preview=preview_anchor)
