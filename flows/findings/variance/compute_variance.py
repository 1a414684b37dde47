"""Find the judge's part in the variance of the means of a run."""

from flows.findings.run_finding import ComputedRun, Found, RunFinding
from tasks.findings.anchor.anchor_record import AnchorRecord
from tasks.findings.repeats.repeat_record import AskedAgain
from tasks.findings.variance.mean_variance import find_judge_variance
from tasks.findings.variance.variance_record import VarianceRecords


def find_variance(run: ComputedRun) -> Found:
    """Return the judge's part in the variance of each mean, from rows that were asked about again."""
    record = run.record
    found = find_judge_variance(record.find(AskedAgain), record.find(AnchorRecord), run.tables)
    return Found(VarianceRecords(found))


FINDING = RunFinding(compute=find_variance, is_derived=True)
