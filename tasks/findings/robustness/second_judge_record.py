"""Verdicts of a second judge in the record of a run."""

from typing import ClassVar

from pydantic import Field

from tasks.record.findings import FindingPart


class SecondJudgeRecord(FindingPart):
    """Scores of a second judge for the rows on which outcomes hang.

    Args:
        judge: Name of the judge; empty if it was not needed.
        reason: Reason why it could not be asked; None if it could.
        baseline: Id of the run of the baseline; None without one.
        rows: Number of rows that it was asked about.
        questions: Number of questions that it was asked.
        stored: Number of further questions whose answers were cached.
        chosen: Metric -> ids of these rows in the run.
        before: Metric -> row id in the baseline -> its score.
        after: Metric -> row id in the run -> its score.
    """

    entry: ClassVar[str] = "second_judge"

    judge: str = ""
    reason: str | None = None
    baseline: str | None = None
    rows: int = 0
    questions: int = 0
    stored: int = 0
    chosen: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    before: dict[str, dict[str, float]] = Field(default_factory=dict)
    after: dict[str, dict[str, float]] = Field(default_factory=dict)

    def sentence(self, of: int) -> str:
        """Return what the judge was asked, in words.

        Args:
            of: Number of rows of the run.

        >>> SecondJudgeRecord(judge="qwen", rows=28, questions=52, stored=4).sentence(300)
        'the second judge qwen was asked 52 questions about 28 of 300 rows; 4 more answers were cached'
        >>> SecondJudgeRecord().sentence(300)
        'the second judge was not asked: a tenth of the rows could change no outcome'
        """
        if self.reason is not None:
            return f"the second judge could not be asked: {self.reason}"
        if not self.rows:
            return "the second judge was not asked: a tenth of the rows could change no outcome"
        asked = f"{self.questions:,} question{'s' * (self.questions != 1)} about {self.rows:,} of {of:,} rows"
        more = f"; {self.stored:,} more answer{'s were' if self.stored != 1 else ' was'} cached" if self.stored else ""
        return f"the second judge {self.judge} was asked {asked}{more}"
