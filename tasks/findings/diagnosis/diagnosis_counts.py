"""The diagnosis in the summary of a run."""

from typing import ClassVar

from pydantic import Field

from metric_core.declarations.diagnosis_class import SystemPart
from metric_core.statistics.resampling import Interval
from tasks.record.findings import FindingPart
from tasks.record.part import Part


class ClassCount(Part):
    """The rows of a class of the diagnosis.

    Args:
        name: Name of the class.
        count: Number of its rows.
        share: Share of all diagnosed rows.
        interval: 95 % interval of the share; None for few rows.
        meaning: Definition of the class; empty for the rows without one.
        part: Part of the system that its fault is due to; None for rows without a fault of the answer.
        is_lost: True if its users have no good answer.
    """

    name: str
    count: int = Field(ge=0)
    share: float
    interval: Interval | None
    meaning: str = ""
    part: SystemPart | None = None
    is_lost: bool = False


class RefusalCounts(Part):
    """The rows whose answers decline.

    Args:
        rows: Number of these rows.
        kinds: Kind of refusal -> number of rows.
        recognized_by: `judge` or `forms`.
    """

    rows: int = Field(ge=0)
    kinds: dict[str, int] = Field(default_factory=dict)
    recognized_by: str


class DiagnosisCounts(FindingPart):
    """The diagnosis of a run, counted over its rows.

    Args:
        rows: Number of rows.
        classes: All classes of the run, in the order in which they are tried, and the rows without one.
        key_points: Number of key points (`points`), and of those that each part lost; None if none were judged.
        reasons: Reason -> number of rows without a diagnosis for it.
        lacking: Verdicts that a finer diagnosis needs -> number of rows that lack them.
    """

    entry: ClassVar[str] = "diagnosis"

    rows: int = Field(ge=0)
    classes: tuple[ClassCount, ...]
    key_points: dict[str, int] | None = None
    reasons: dict[str, int]
    lacking: dict[str, int]
    refusals: RefusalCounts
