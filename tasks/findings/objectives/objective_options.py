"""Declare the options of objectives, and read an objective about a metric."""

import re
from dataclasses import dataclass
from typing import Annotated

from pydantic import AfterValidator

from tasks.options.finding_options import FindingOptions
from tasks.options.option import Option, OptionGroup

_FORM = re.compile(
    r"\s*(?P<metric>\S.*?)\s*(?P<sign>>=|<=)\s*(?P<value>[-+.\deE]+)\s+in\s+(?P<good>\d+)\s+of\s+(?P<runs>\d+)"
    r"(?:\s+(?:nights|runs))?\s*"
)


@dataclass(frozen=True, slots=True)
class MetricObjective:
    """An objective about a metric.

    Args:
        metric: Name in the history: a key for a mean, or a key and a quantile such as `latency.p95`.
        is_floor: True if values of at least `value` are good; False if values of at most it are.
        good: Number of runs that have to be good.
        runs: Number of last runs that count.
    """

    metric: str
    is_floor: bool
    value: float
    good: int
    runs: int

    @classmethod
    def from_text(cls, text: str) -> "MetricObjective":
        """Read an objective.

        Raises:
            ValueError: It has another form.

        >>> MetricObjective.from_text("latency.p95 <= 2.0 in 28 of 30 nights")
        MetricObjective(metric='latency.p95', is_floor=False, value=2.0, good=28, runs=30)
        """
        match = _FORM.fullmatch(text)
        wanted = f'an objective must be like "faithfulness >= 0.8 in 28 of 30 nights", got {text!r}'
        if match is None:
            raise ValueError(wanted)
        try:
            value = float(match["value"])
        except ValueError:
            raise ValueError(wanted) from None
        good, runs = int(match["good"]), int(match["runs"])
        if not 0 < good <= runs:
            raise ValueError(f"{wanted}, with at least one good night, and no more than there are")
        return cls(match["metric"].removesuffix(".mean"), match["sign"] == ">=", value, good, runs)

    def is_met_by(self, value: float) -> bool:
        """Return whether a value is good."""
        return value >= self.value if self.is_floor else value <= self.value


def _check(texts: tuple[str, ...]) -> tuple[str, ...]:
    for text in texts:
        MetricObjective.from_text(text)
    return texts


class ObjectiveSettings(OptionGroup, affects_scores=False):
    """Objectives of an evaluation over many monitored runs."""

    metrics: Annotated[
        Annotated[tuple[str, ...], AfterValidator(_check)],
        Option(
            "Means or quantiles of metrics, and in how many of the last runs they have to be met.",
            holds="text",
            examples=[["faithfulness >= 0.8 in 28 of 30 nights", "latency.p95 <= 2.0 in 27 of 30 nights"]],
        ),
    ] = ()
    availability: Annotated[
        float | None,
        Option(
            "Share of the scheduled runs that have a result, without an open incident about its data or its judge.",
            gt=0,
            le=1,
            examples=[0.99],
        ),
    ] = None
    days: Annotated[int, Option("Days over which the availability is measured.", ge=1, le=366, examples=[90])] = 30


class ObjectiveOptions(FindingOptions, affects_scores=False):
    """The option of objectives."""

    objectives: Annotated[
        ObjectiveSettings | None,
        Option(
            "Objectives of the evaluation over many runs, with error budgets.",
            examples=[{"metrics": ["faithfulness >= 0.8 in 28 of 30 nights"], "availability": 0.99}],
        ),
    ] = None
