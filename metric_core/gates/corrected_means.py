"""Apply gate rules about bias-corrected means, which are about labels of people instead of scores of a judge."""

import math
from dataclasses import dataclass

from metric_core.calibration.estimates import Estimate
from metric_core.calibration.label_needs import MOST_TIMES, own_labels_to_decide
from metric_core.gates.rules import Threshold
from metric_core.gates.thresholds import Confidence, Finding
from metric_core.statistics.resampling import Interval

NO_CORRECTION = (
    "there is no bias-corrected mean: no calibration covers this metric, and no random sample of the run is labelled; "
    "`assay label` draws one"
)


NOT_AUDITED = (
    "the calibration is of other rows, and none of this run is labelled, which alone would show that the judge has not "
    "changed: label some with `assay label`, then use `assay calibrate --run RUN --audit`"
)


@dataclass(frozen=True, slots=True)
class CorrectedMean:
    """The bias-corrected mean of a metric.

    Args:
        estimate: Estimate, from 0 to 1; None if there is none.
        span: Labels that correspond to 0 and 1.
        rows: Number of scored rows that it is about.
        reason: Sentence about the method, or about why there is no estimate.
        labelled: Number of labelled rows that it rests on; None if unknown.
        is_own: True if these rows are a random sample of the run's own rows.
    """

    estimate: Estimate | None
    span: tuple[float, float]
    rows: int
    reason: str
    labelled: int | None = None
    is_own: bool = False

    def advise(self, threshold: Threshold, level: float) -> str:
        """Return how many labels would show whether the mean meets a threshold; an empty text if it is not known.

        Args:
            threshold: Threshold for the true mean, on the scale of the labels.
            level: Confidence level of each limit, in (0.5, 1).

        >>> from metric_core.calibration.beta_means import BetaMean
        >>> from metric_core.calibration.estimates import ExactEstimate
        >>> mean = CorrectedMean(ExactEstimate(0.85, BetaMean(85.5, 15.5)), (0.0, 1.0), 900, "", 100, is_own=True)
        >>> mean.advise(Threshold(0.8), 0.95)
        'needs about 198 labels (now 100) if the mean stays at 0.850'
        """
        if self.estimate is None or self.estimate.value is None or self.labelled is None:
            return ""
        low, high = self.span
        value, at = self.estimate.value, (threshold.value - low) / (high - low)
        stays = f"if the mean stays at {low + (high - low) * value:.3f}"
        if self.is_own:
            more = own_labels_to_decide(self.estimate, self.labelled, at, level)
            return f"needs about {self.labelled + more:,} labels (now {self.labelled:,}) {stays}" if more else ""
        limits = self.estimate.strict_limits(1 - level)
        end = limits.low if value > at else limits.high
        # Both the labels and the scored rows leave the mean open: so many times as many of both decide.
        times = ((value - end) / (value - at)) ** 2 if value != at else math.inf
        if not 1 < times <= MOST_TIMES:
            return ""
        return f"needs about {times:.1f} times as many labels (now {self.labelled:,}) and scored rows, {stays}"

    def check(self, threshold: Threshold, confidence: Confidence) -> Finding | None:
        """Test the mean against a threshold; None without an estimate.

        Args:
            threshold: Threshold for the true mean, on the scale of the labels.
        """
        if self.estimate is None or self.estimate.value is None:
            return None
        low, high = self.span
        limits = self.estimate.strict_limits(1 - confidence.level)
        at = (threshold.value - low) / (high - low)
        at_most, at_least = self.estimate.p_at_most(at), self.estimate.p_at_least(at)
        met, violated = (at_least, at_most) if threshold.is_floor else (at_most, at_least)
        return Finding(
            observed=low + (high - low) * self.estimate.value,
            interval=Interval(low + (high - low) * limits.low, low + (high - low) * limits.high),
            p_met=met,
            p_violated=violated,
        )
