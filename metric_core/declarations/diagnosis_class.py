"""Define the classes that a diagnosis puts rows into, and those that come with a metric."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from metric_core.records import Score


class SystemPart(StrEnum):
    """Part of a RAG system that a fault is due to."""

    INDEX = "index"
    GENERATOR = "generator"


@dataclass(frozen=True, slots=True, kw_only=True)
class DiagnosisClass:
    """A class of rows.

    Args:
        name: Name in tables, reports and messages.
        meaning: Definition in one sentence.
        part: Part of the system that the fault is due to; None for rows without a fault of the answer.
        is_lost: True if the user has no good answer.
    """

    name: str
    meaning: str
    part: SystemPart | None = None
    is_lost: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreClass(DiagnosisClass):
    """A class of rows that a metric decides by its score; runs without the metric do not have it.

    The metric may read products of the judge. If its score has failed, the row is not called answered.

    Args:
        applies: Function from the score of a row to whether the row is in the class.
        before: Name of the class of every run before which this one is tried.
    """

    applies: Callable[[Score], bool]
    before: str
