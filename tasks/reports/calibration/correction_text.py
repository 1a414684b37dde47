"""Format bias-corrected means."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tasks.calibration.bias_correction import Method

_UNEXPLAINED = "the labelled rows do not determine it"
"""Reason in runs whose summary does not name one."""
_ENDS = ("value", "low", "high")


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
    def from_entry(cls, entry: Mapping[str, Any], is_difference: bool = False) -> "CorrectionText":
        """Return the text of an entry of summary.json.

        Args:
            entry: Entry of a metric under `bias_corrected`.
            is_difference: True for the difference of two runs.

        >>> print(CorrectionText.from_entry({"label": "good", "span": None, "value": 0.7, "low": 0.6, "high": 0.8}))
        bias-corrected mean ('good') 70.0 % (60.0 to 80.0)
        >>> grades = {"label": "stars", "span": [1, 5], "value": 3.5, "low": 3.25, "high": 3.75}
        >>> print(CorrectionText.from_entry(grades))
        bias-corrected mean ('stars') 3.50 (3.25 to 3.75)
        >>> change = {"label": "good", "span": None, "value": 0.05, "low": -0.02, "high": 0.12}
        >>> print(CorrectionText.from_entry(change, is_difference=True))
        difference of the bias-corrected means ('good') +5.0 percentage points (-2.0 to +12.0)
        >>> grades |= {"method": "prediction-powered", "reason": "", "labelled": 100, "rows": 970}
        >>> CorrectionText.from_entry(grades).basis
        'of 970 scored rows, by 100 labels of them drawn at random'
        >>> whole = {"label": "good", "span": None, "value": 0.7, "low": 0.6, "high": 0.8, "reason": ""}
        >>> print(CorrectionText.from_entry(whole | {"method": "labels alone", "labelled": 66, "rows": 66}))
        mean label ('good') 70.0 % (60.0 to 80.0), of all 66 scored rows
        """
        if entry["value"] is None:
            return cls(f"no bias-corrected mean: {entry.get('reason') or _UNEXPLAINED}")
        is_share = entry["span"] is None
        scale, decimals = (100, 1) if is_share else (1, 2)
        value, low, high = (_format_value(scale * entry[end], decimals, is_difference) for end in _ENDS)
        kind = "mean label" if _is_whole(entry) else "bias-corrected mean"
        name = f"difference of the {kind}s" if is_difference else kind
        unit = " percentage points" if is_difference else " %"
        shown = f"{value}{unit}" if is_share else value
        return cls(f"{name} ({entry['label']!r})", shown, f"{low} to {high}", _basis(entry))

    def __str__(self) -> str:
        """Return lead, value, interval and basis."""
        if self.value is None:
            return self.lead
        return ", ".join(filter(None, (f"{self.lead} {self.value} ({self.interval})", self.basis)))


def _is_whole(entry: Mapping[str, Any]) -> bool:
    """Return whether all scored rows are labelled, so that their mean label is neither corrected nor a sample."""
    return entry.get("method") == Method.LABELS and entry["labelled"] == entry["rows"]


def _basis(entry: Mapping[str, Any]) -> str:
    """Return the rows and labels that an entry rests on."""
    if "method" not in entry or entry["labelled"] is None:
        return ""
    unit = entry.get("unit", "rows")
    rows, labelled = f"{entry['rows']:,}", f"{entry['labelled']:,}"
    if _is_whole(entry):
        return f"of all {rows} scored {unit}"
    bases = {
        Method.POWERED: f"of {rows} scored {unit}, by {labelled} labels of them drawn at random",
        Method.LABELS: f"by {labelled} labels alone, drawn at random from {rows} scored {unit}",
        Method.JUDGE: f"of {rows} scored rows, if the judge errs on them as on the {labelled} labelled rows",
    }
    basis = bases.get(Method(entry["method"]), "")
    return f"{basis}: {entry['reason']}" if entry["reason"] and basis else basis


def _format_value(value: float, decimals: int, is_signed: bool) -> str:
    text = f"{value:+.{decimals}f}" if is_signed else f"{value:.{decimals}f}"
    return text if float(text) else text.lstrip("+-")
