"""What people would say of a run, in words: a mean score corrected for the judge's error."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

CAN_NOT_BE_TOLD = (
    "what people would say can not be told: on the labelled rows, the score hardly parts good rows from bad ones"
)
_ENDS = ("value", "low", "high")


@dataclass(frozen=True, slots=True)
class CorrectionWords:
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
    def of(cls, said: Mapping[str, Any], is_difference: bool = False) -> "CorrectionWords":
        """The words.

        Args:
            said: as summary.json has it for a metric, under `people`.
            is_difference: it is the difference of two runs.

        >>> print(CorrectionWords.of({"label": "good", "span": None, "value": 0.7, "low": 0.6, "high": 0.8}))
        people would say yes ('good') to 70.0 % (60.0 to 80.0)
        >>> print(CorrectionWords.of({"label": "stars", "span": [1, 5], "value": 3.5, "low": 3.25, "high": 3.75}))
        people would give ('stars') 3.50 (3.25 to 3.75)
        >>> change = {"label": "good", "span": None, "value": 0.05, "low": -0.02, "high": 0.12}
        >>> print(CorrectionWords.of(change, is_difference=True))
        people would say yes ('good') to +5.0 percentage points (-2.0 to +12.0)
        """
        if said["value"] is None:
            return cls(CAN_NOT_BE_TOLD)
        sign, unit = ("+", "percentage points") if is_difference else ("", "%")
        if said["span"] is None:
            lead = f"people would say yes ({said['label']!r}) to"
            value, low, high = (f"{100 * said[end]:{sign}.1f}" for end in _ENDS)
            return cls(lead, f"{value} {unit}", f"{low} to {high}")
        value, low, high = (f"{said[end]:{sign}.2f}" for end in _ENDS)
        return cls(f"people would give ({said['label']!r})", value, f"{low} to {high}")

    def __str__(self) -> str:
        """All of it."""
        return self.lead if self.value is None else f"{self.lead} {self.value} ({self.interval})"
