"""The bias-corrected means in the summary of a run."""

from typing import ClassVar

from tasks.record.findings import FindingMap
from tasks.record.part import Part


class CorrectedMeanRecord(Part):
    """The bias-corrected mean of a metric, on the scale of the labels: grades, or the share of yes.

    Args:
        label: Column of the labels.
        span: Labels that correspond to 0 and 1; None for yes and no.
        value: Estimate; None if the labelled rows do not determine it.
        low: Lower end of its 95 % interval.
        high: Upper end of its 95 % interval.
        method: Name of the method of estimation.
        reason: Sentence about the method, or about why there is no estimate.
        labelled: Number of labelled rows that it rests on.
        rows: Number of scored rows that it is about.
        unit: Name of the labelled items, if they are not rows.
    """

    label: str
    span: tuple[float, float] | None
    value: float | None
    low: float
    high: float
    method: str
    reason: str
    labelled: int | None
    rows: int
    unit: str = "rows"


class CorrectedMeans(FindingMap[CorrectedMeanRecord]):
    """The bias-corrected mean of each metric with labels or a calibration."""

    entry: ClassVar[str] = "bias_corrected"
