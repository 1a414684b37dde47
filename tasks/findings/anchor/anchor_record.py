"""The anchor of a run in its record."""

from typing import ClassVar

from pydantic import Field

from tasks.findings.repeats.repeat_record import AskedAgain
from tasks.record.findings import FindingPart, Findings
from tasks.record.part import Part
from tasks.record.stored_figures import StoredFigure
from tasks.runtime.usage import QuestionUsage

ANCHOR = "anchor"
"""Folder with the run folder of the anchor, in that of the run."""


class AnchorUsage(QuestionUsage):
    """The cost of the questions of an anchor.

    Args:
        asked: Number of questions that were not cached.
    """

    asked: int


class AnchorMean(Part):
    """The mean of a metric over the anchor.

    Args:
        low: Lower end of its 95 % interval.
        high: Upper end of its 95 % interval.
    """

    mean: float | None
    low: float | None
    high: float | None
    scored: int
    undefined: int
    failed: int


class AnchorAgreement(Part):
    """The agreement of the judge with labels of the anchor.

    Args:
        label: Column of the labels.
        reason: Reason why they were not compared; None if they were.
        compared: Number of labelled rows with a score.
        figures: Name -> figure of agreement.
    """

    label: str
    reason: str | None = None
    compared: int = 0
    figures: dict[str, StoredFigure] = Field(default_factory=dict)


class AnchorRecord(FindingPart):
    """The anchor of a run.

    Args:
        reason: Reason why it has no scores; None if it has.
        folder: Its run folder, in that of the run.
        digest: Digest of its rows.
        metrics: Metric -> its mean.
        left_out: Metric that cannot be computed -> columns that it lacks.
        agreement: Metric -> agreement of the judge with the labels.
        asked_again: Rows that were asked about again; None without any.
    """

    entry: ClassVar[str] = "anchor"

    source: str
    reason: str | None = None
    folder: str = ""
    rows: int = 0
    digest: str = ""
    seconds: float = 0.0
    usage: AnchorUsage | None = None
    metrics: dict[str, AnchorMean] = Field(default_factory=dict)
    left_out: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    agreement: dict[str, AnchorAgreement] = Field(default_factory=dict)
    asked_again: AskedAgain | None = None

    @property
    def missing_scores(self) -> tuple[str, ...]:
        """A sentence if the anchor has no scores."""
        if self.reason is None:
            return ()
        return (f"the anchor has no scores, so a change of the judge will not show: {self.reason}",)


class AnchorOf(FindingPart):
    """The run whose anchor a run is.

    Args:
        folder: Its run folder.
    """

    entry: ClassVar[str] = "anchor_of"

    run_id: str
    folder: str


def repeat_of(record: Findings) -> AskedAgain | None:
    """Return the rows of the anchor that a run asked about again; None without any."""
    anchor = record.find(AnchorRecord)
    return None if anchor is None else anchor.asked_again
