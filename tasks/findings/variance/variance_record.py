"""The judge's share of the variance of means in the record of a run."""

from dataclasses import dataclass
from typing import ClassVar

from metric_core.statistics.judge_variance import JudgeVariance, VarianceShares
from tasks.record.findings import FindingMap


@dataclass(frozen=True, slots=True)
class VarianceRecord(JudgeVariance):
    """The judge's share of the variance of a mean.

    Args:
        of_anchor: True if the rows that were judged again are those of the anchor.
        advice: Advice on the interval of the mean: more rows, or more votes.
    """

    of_anchor: bool
    shares: VarianceShares
    advice: str


class VarianceRecords(FindingMap[VarianceRecord]):
    """The judge's share of the variance of the mean of each metric."""

    entry: ClassVar[str] = "judge_variance"
