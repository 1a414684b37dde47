"""Gate rules about bias-corrected means, which are about the labels of people instead of the scores of a judge."""

from dataclasses import dataclass

from metric_core.calibration.estimates import Estimate
from metric_core.gates.rules import Threshold
from metric_core.gates.thresholds import Finding
from metric_core.statistics.resampling import Interval

NO_CORRECTION = (
    "there is no bias-corrected mean: no calibration covers this metric, and no random sample of the run is labelled; "
    "`assay label-sample` draws one"
)


@dataclass(frozen=True, slots=True)
class CorrectedMean:
    """The bias-corrected mean of a metric.

    Args:
        estimate: Estimate, from 0 to 1; None if there is none.
        span: Labels that 0 and 1 stand for.
        rows: Number of scored rows that it is about.
        reason: Sentence about the method, or about why there is no estimate.
    """

    estimate: Estimate | None
    span: tuple[float, float]
    rows: int
    reason: str

    def check(self, threshold: Threshold, level: float) -> Finding | None:
        """Test the mean against a threshold, each limit at a confidence level; None without an estimate.

        Args:
            threshold: Threshold for the true mean, on the scale of the labels.
            level: Confidence level of each limit, in (0.5, 1).
        """
        if self.estimate is None or self.estimate.value is None:
            return None
        low, high = self.span
        limits = self.estimate.strict_limits(1 - level)
        at = (threshold.value - low) / (high - low)
        at_most, at_least = self.estimate.p_at_most(at), self.estimate.p_at_least(at)
        met, violated = (at_least, at_most) if threshold.is_floor else (at_most, at_least)
        return Finding(
            observed=low + (high - low) * self.estimate.value,
            interval=Interval(low + (high - low) * limits.low, low + (high - low) * limits.high),
            p_met=met,
            p_violated=violated,
        )
