"""Format bias-corrected means."""

from dataclasses import dataclass

from tasks.calibration.bias_correction import Method
from tasks.calibration.corrected_means import CorrectedMeanRecord

_UNEXPLAINED = "the labelled rows do not determine it"
"""Reason in runs whose summary does not name one."""


@dataclass(frozen=True, slots=True)
class CorrectionText:
    """A bias-corrected mean, or the difference of two, as text.

    Args:
        lead: Description of the value; a whole clause if there is no value.
        value: Share of the rows, or grade; None if the labelled rows do not determine it.
        interval: 95 % interval of the value.
        basis: The rows that it is about, the labels that it rests on, and why it was estimated from these; empty for
            runs whose summary does not tell.
    """

    lead: str
    value: str | None = None
    interval: str | None = None
    basis: str = ""

    @classmethod
    def of_mean(cls, mean: CorrectedMeanRecord, is_difference: bool = False) -> "CorrectionText":
        """Return the text of a bias-corrected mean.

        Args:
            is_difference: True for the difference of two runs.

        >>> basis = {"method": "prediction-powered", "reason": "", "labelled": 100, "rows": 970}
        >>> share = {"label": "good", "span": None, "value": 0.7, "low": 0.6, "high": 0.8, **basis}
        >>> CorrectionText.of_mean(CorrectedMeanRecord(**share)).basis
        'of 970 scored rows, by 100 labels of them drawn at random'
        >>> grades = {"label": "stars", "span": (1, 5), "value": 3.5, "low": 3.25, "high": 3.75}
        >>> CorrectionText.of_mean(CorrectedMeanRecord(**share | grades)).interval
        '3.25 to 3.75'
        >>> change = CorrectedMeanRecord(**share | {"value": 0.05, "low": -0.02, "high": 0.12})
        >>> CorrectionText.of_mean(change, is_difference=True).value
        '+5.0 percentage points'
        >>> print(CorrectionText.of_mean(CorrectedMeanRecord(**share | {"method": "labels alone", "labelled": 970})))
        mean label ('good') 70.0 % (60.0 to 80.0), of all 970 scored rows
        """
        if mean.value is None:
            return cls(f"no bias-corrected mean: {mean.reason or _UNEXPLAINED}")
        is_share = mean.span is None
        scale, decimals = (100, 1) if is_share else (1, 2)
        ends = (mean.value, mean.low, mean.high)
        value, low, high = (_format_value(scale * end, decimals, is_difference) for end in ends)
        kind = "mean label" if _is_whole(mean) else "bias-corrected mean"
        name = f"difference of the {kind}s" if is_difference else kind
        unit = " percentage points" if is_difference else " %"
        shown = f"{value}{unit}" if is_share else value
        return cls(f"{name} ({mean.label!r})", shown, f"{low} to {high}", _basis(mean))

    def __str__(self) -> str:
        """Return lead, value, interval and basis."""
        if self.value is None:
            return self.lead
        return ", ".join(filter(None, (f"{self.lead} {self.value} ({self.interval})", self.basis)))


def _is_whole(mean: CorrectedMeanRecord) -> bool:
    """Return whether all scored rows are labelled, so that their mean label is neither corrected nor a sample."""
    return mean.method == Method.LABELS and mean.labelled == mean.rows


def _basis(mean: CorrectedMeanRecord) -> str:
    """Return the rows and labels that a mean rests on."""
    if mean.labelled is None:
        return ""
    unit, rows, labelled = mean.unit, f"{mean.rows:,}", f"{mean.labelled:,}"
    if _is_whole(mean):
        return f"of all {rows} scored {unit}"
    bases = {
        Method.POWERED: f"of {rows} scored {unit}, by {labelled} labels of them drawn at random",
        Method.LABELS: f"by {labelled} labels alone, drawn at random from {rows} scored {unit}",
        Method.JUDGE: f"of {rows} scored rows, if the judge errs on them as on the {labelled} labelled rows",
    }
    basis = bases.get(Method(mean.method), "")
    return f"{basis}: {mean.reason}" if mean.reason and basis else basis


def _format_value(value: float, decimals: int, is_signed: bool) -> str:
    text = f"{value:+.{decimals}f}" if is_signed else f"{value:.{decimals}f}"
    return text if float(text) else text.lstrip("+-")
