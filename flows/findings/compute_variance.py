"""Find the judge's part in the variance of the means of a run."""

from flows.findings.run_finding import ComputedRun, Found, RunFinding
from tasks.record.repeats import AnchorRecord, AskedAgain, VarianceRecords
from tasks.runs.mean_variance import find_judge_variance


def find_variance(run: ComputedRun) -> Found:
    """Return the judge's part in the variance of each mean, from rows that were asked about again."""
    record = run.record
    found = find_judge_variance(record.find(AskedAgain), record.find(AnchorRecord), run.tables)
    return Found(VarianceRecords(found))


FINDING = RunFinding(compute=find_variance, is_derived=True)
