"""Apply gate rules about bias-corrected means, which are about labels of people instead of scores of a judge."""

from dataclasses import dataclass

from metric_core.calibration.estimates import Estimate
from metric_core.calibration.label_needs import labels_to_decide
from metric_core.gates.rules import Threshold
from metric_core.gates.thresholds import Confidence, Finding
from metric_core.statistics.resampling import Interval

NO_CORRECTION = (
    "no random sample of the run is labelled, which alone shows what people would say of it: `assay label` draws one"
)


@dataclass(frozen=True, slots=True)
class CorrectedMean:
    """The bias-corrected mean of a metric, from labels of a random sample of the run.

    Args:
        estimate: Estimate of the mean label, from 0 to 1.
        value: The estimated mean label, which the labels determine.
        span: Labels that correspond to 0 and 1.
        rows: Number of scored rows that it is about.
        labelled: Number of labelled rows that it rests on.
    """

    estimate: Estimate
    value: float
    span: tuple[float, float]
    rows: int
    labelled: int

    def advise(self, threshold: Threshold, level: float) -> str:
        """Return how many labels would show whether the mean meets a threshold; an empty text if it is not known.

        Args:
            threshold: Threshold for the true mean, on the scale of the labels.
            level: Confidence level of each limit, in (0.5, 1).

        >>> from metric_core.calibration.beta_means import BetaMean
        >>> from metric_core.calibration.estimates import ExactEstimate
        >>> mean = CorrectedMean(ExactEstimate(0.85, BetaMean(85.5, 15.5)), 0.85, (0.0, 1.0), 900, 100)
        >>> mean.advise(Threshold(0.8), 0.95)
        'needs about 198 labels (now 100) if the mean stays at 0.850'
        """
        more = labels_to_decide(self.estimate, self.labelled, self._to_unit(threshold), level)
        stays = f"if the mean stays at {self._from_unit(self.value):.3f}"
        return f"needs about {self.labelled + more:,} labels (now {self.labelled:,}) {stays}" if more else ""

    def check(self, threshold: Threshold, confidence: Confidence) -> Finding:
        """Test the mean against a threshold on the scale of the labels."""
        limits, at = self.estimate.strict_limits(1 - confidence.level), self._to_unit(threshold)
        at_most, at_least = self.estimate.p_at_most(at), self.estimate.p_at_least(at)
        met, violated = (at_least, at_most) if threshold.is_floor else (at_most, at_least)
        return Finding(
            observed=self._from_unit(self.value),
            interval=Interval(self._from_unit(limits.low), self._from_unit(limits.high)),
            p_met=met,
            p_violated=violated,
        )

    def _to_unit(self, threshold: Threshold) -> float:
        low, high = self.span
        return (threshold.value - low) / (high - low)

    def _from_unit(self, value: float) -> float:
        low, high = self.span
        return low + (high - low) * value
