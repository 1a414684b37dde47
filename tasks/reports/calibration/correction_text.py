"""What people would say of a run, in words: a mean score corrected for the judge's error."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

CAN_NOT_BE_TOLD = (
    "what people would say can not be told: on the labelled rows, the score hardly parts good rows from bad ones"
)
_ENDS = ("value", "low", "high")


@dataclass(frozen=True, slots=True)
class CorrectionText:
    """What people would say.

    Args:
        lead: what the value is; a whole sentence where there is none.
        value: a share of the rows, or a grade; None where it can not be told.
        interval: the 95 % interval of the value.
    """

    lead: str
    value: str | None = None
    interval: str | None = None

    @classmethod
    def of(cls, said: Mapping[str, Any], is_difference: bool = False) -> "CorrectionText":
        """The words.

        Args:
            said: as summary.json has it for a metric, under `people`.
            is_difference: it is the difference of two runs.

        >>> print(CorrectionText.of({"label": "good", "span": None, "value": 0.7, "low": 0.6, "high": 0.8}))
        people would say yes ('good') to 70.0 % (60.0 to 80.0)
        >>> print(CorrectionText.of({"label": "stars", "span": [1, 5], "value": 3.5, "low": 3.25, "high": 3.75}))
        people would give ('stars') 3.50 (3.25 to 3.75)
        >>> change = {"label": "good", "span": None, "value": 0.05, "low": -0.02, "high": 0.12}
        >>> print(CorrectionText.of(change, is_difference=True))
        what people would say ('good') changes by +5.0 percentage points (-2.0 to +12.0)
        """
        if said["value"] is None:
            return cls(CAN_NOT_BE_TOLD)
        is_share = said["span"] is None
        scale, decimals = (100, 1) if is_share else (1, 2)
        value, low, high = (_number(scale * said[end], decimals, is_difference) for end in _ENDS)
        if is_difference:
            lead, unit = f"what people would say ({said['label']!r}) changes by", " percentage points"
        else:
            lead, unit = f"people would {'say yes' if is_share else 'give'} ({said['label']!r})", " %"
            lead += " to" if is_share else ""
        return cls(lead, f"{value}{unit}" if is_share else value, f"{low} to {high}")

    def __str__(self) -> str:
        """All of it."""
        return self.lead if self.value is None else f"{self.lead} {self.value} ({self.interval})"


def _number(value: float, decimals: int, is_signed: bool) -> str:
    text = f"{value:+.{decimals}f}" if is_signed else f"{value:.{decimals}f}"
    return text if float(text) else text.lstrip("+-")
