"""Count what a run would reuse and ask, with what its findings would ask."""

from dataclasses import replace

from flows.dry_run.dry_run import make_dry_run
from flows.dry_run.dry_run_result import DryRun, FindingDryRun
from flows.findings.computation import load_planned
from flows.planning.finding_table import TABLE
from flows.planning.run_plan import RunPlan
from tasks.opening.counting_judge import Tally


def preview_run(plan: RunPlan, *, fetch: bool = False) -> DryRun:
    """Return what the run of a plan would reuse and ask, for its rows and its findings.

    Args:
        fetch: True to refetch the contexts for the dry run.

    Raises:
        AssayError: The rows cannot be read, or those of a finding.
    """
    dry_run = make_dry_run(plan, fetch=fetch)
    of_findings: dict[str, FindingDryRun | None] = dict.fromkeys(name for each in TABLE for name in each.previews)
    for finding in load_planned(plan):
        if finding.preview is not None:
            of_findings |= finding.preview(plan, dry_run)
    parts = [dry_run, *(each.dry_run for each in of_findings.values() if each is not None)]
    accounts = {account: Tally() for part in parts for account in part.accounts}
    for part in parts:
        accounts |= {account: accounts[account] + tally for account, tally in part.accounts.items()}
    return replace(dry_run, of_findings=of_findings, accounts=accounts)
