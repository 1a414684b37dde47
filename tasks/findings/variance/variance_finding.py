"""Show the judge's part in the variance of means."""

from collections.abc import Iterator, Mapping

from tasks.findings.finding import Finding, RunRecords
from tasks.findings.on_judge import OnJudge
from tasks.findings.parts import Fact
from tasks.findings.variance.variance_record import VarianceRecord, VarianceRecords
from tasks.record.run_record import RunRecord


def variance_lines(run: RunRecords) -> list[str]:
    """Return a line for each metric whose rows were judged again."""
    return describe_variances(run.record.find_all(VarianceRecords))


def variance_facts(run: RunRecords) -> Iterator[Fact]:
    """Yield the lines, for the report."""
    if lines := variance_lines(run):
        yield Fact("Judged again", lines)


def describe_variances(variances: Mapping[str, VarianceRecord]) -> list[str]:
    """Return the judge's share of the variance of each mean, and whether more rows or more votes would help.

    Args:
        variances: Metric -> judge's share of the variance of its mean.

    >>> from metric_core.statistics.judge_variance import VarianceShares
    >>> from metric_core.statistics.resampling import Interval
    >>> shares = VarianceShares(0.969, None, 0.031, 0.0, Interval(0.01, 0.09))
    >>> found = VarianceRecord(60, 0.02, None, 0.0, 0.02, of_anchor=False, shares=shares, advice="more rows help")
    >>> describe_variances({"faithfulness": found})
    ["faithfulness: 3 % of the variance is the judge's (1 to 9 %; 60 rows judged again): more rows help"]
    """
    lines = []
    for metric, found in variances.items():
        shares, kind = found.shares, "anchor rows" if found.of_anchor else "rows"
        ends = shares.judge_interval
        interval = "" if ends is None else f"{100 * ends.low:.0f} to {100 * ends.high:.0f} %; "
        judged = f"{interval}{found.rows:,} {kind} judged again"
        others = ((shares.answers, "the system's from answer to answer"), (shares.run, "shared by a run"))
        more = "".join(f", {100 * share:.0f} % {name}" for share, name in others if share)
        lines.append(
            f"{metric}: {100 * shares.judge:.0f} % of the variance is the judge's ({judged}){more}: {found.advice}"
        )
    return lines


def variances_of(record: RunRecord) -> Mapping[str, VarianceRecord]:
    """Return the variance of the judge's scores by metric."""
    return record.find_all(VarianceRecords)


FINDING = Finding(
    record=(VarianceRecords,), lines=variance_lines, of_judge=variance_facts, on_judge=OnJudge(variances=variances_of)
)
