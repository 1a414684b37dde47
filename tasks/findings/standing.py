"""Define the standing of an evaluation over its last runs: what a finding says of its history."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from tasks.findings.parts import Figure
from tasks.record.findings import Findings
from tasks.record.outcome import RunOutcome


class PastMetric(Protocol):
    """A metric of a run in the history."""

    @property
    def metric(self) -> str:
        """Key of the metric."""
        ...

    @property
    def mean(self) -> float | None:
        """Its mean, or its value; None without one."""
        ...

    @property
    def slice_column(self) -> str:
        """Column of the rows that it is about; empty for all rows."""
        ...


class PastRun(Protocol):
    """A run in the history."""

    @property
    def created(self) -> datetime:
        """Start of the run."""
        ...

    @property
    def due(self) -> datetime | None:
        """Time at which it was due; None if no schedule wanted it."""
        ...

    @property
    def trigger(self) -> str:
        """The cause of the run, such as `schedule`."""
        ...

    @property
    def has_result(self) -> bool:
        """Whether it finished, and enough of its cells have scores."""
        ...

    @property
    def metrics(self) -> Sequence[PastMetric]:
        """Its metrics."""
        ...

    @property
    def details(self) -> Findings:
        """The entries of its findings that the history keeps."""
        ...

    @property
    def outcome(self) -> RunOutcome | None:
        """Its outcome if it was monitored."""
        ...


@dataclass(frozen=True, slots=True)
class Standing:
    """The standing of an evaluation in something that several runs decide.

    Args:
        key: Name among those of an evaluation.
        problem: The sentence of an incident; empty if nothing is wrong.
        figures: Figures for monitoring.
        entry: The figures as JSON.
    """

    key: str
    sentence: str
    problem: str
    figures: tuple[Figure, ...]
    entry: dict[str, Any]
