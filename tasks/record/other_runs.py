"""References of a record to other runs: the one that was run again, and the baseline."""

from typing import ClassVar

from pydantic import Field

from tasks.record.findings import FindingPart
from tasks.record.part import Part


class RunReference(Part):
    """Another run.

    Args:
        folder: Its run folder, on the machine that wrote it.
    """

    run_id: str
    folder: str


class RerunRecord(Part):
    """The part of a run that a rerun computed again.

    Args:
        rows: Rows that were chosen: `all`, `changed` or `failed`.
        stage: Stage from which on they were computed; None for all.
        rows_anew: Number of these rows.
        notes: Warnings about the other rows.
    """

    rows: str
    stage: str | None
    rows_anew: int
    notes: tuple[str, ...] = ()


class RowCounts(Part):
    """Numbers of rows by what became of them since another run."""

    added: int
    removed: int
    changed: int
    unchanged: int


class ChangedRow(Part):
    """A row with other values than in another run, and the columns of these."""

    row_id: str
    columns: tuple[str, ...]


class BaselineRecord(RunReference, FindingPart):
    """The run that a run was compared with.

    Args:
        means: Metric -> mean in that run.
        changed_columns: Column -> number of rows in which it has changed.
        rows_changed: The first changed rows.
        questions: Number of questions to judges.
        asked: Number of these that were not cached.
    """

    entry: ClassVar[str] = "baseline"

    means: dict[str, float] = Field(default_factory=dict)
    rows: RowCounts
    changed_columns: dict[str, int] = Field(default_factory=dict)
    rows_changed: tuple[ChangedRow, ...] = ()
    questions: int = 0
    asked: int = 0
    stored: int = 0
    requests: int = 0
