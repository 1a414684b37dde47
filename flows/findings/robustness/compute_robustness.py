"""Ask the second judge of a run about the rows on which its outcomes hang, once its results are written."""

from flows.findings.robustness.ask_second_judge import ask_second_judge
from flows.findings.run_finding import ComputedRun, Found, RunFinding


def ask_about_deciding_rows(run: ComputedRun) -> Found | None:
    """Return the scores of the second judge; None if there is no outcome that could hang on it."""
    found = ask_second_judge(run.run)
    return None if found is None else Found(found)


FINDING = RunFinding(settle=ask_about_deciding_rows)
