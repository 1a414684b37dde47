"""Rows of a run in its record that were asked about again."""

from typing import ClassVar

from pydantic import Field

from metric_core.statistics.judge_variance import JudgeVariance
from tasks.record.findings import FindingPart
from tasks.record.part import Part


class JudgeChange(Part):
    """A change of a judge under the same name.

    Args:
        since: Time of the first run with other answers, in ISO 8601.
        raised: Time of the run that found it, in ISO 8601.
        rows: Number of rows asked about since then.
        changed: Number of these with another verdict.
        sentence: The change in words.
    """

    since: str
    raised: str
    rows: int
    changed: int
    sentence: str


class JudgeRepeat(Part):
    """The answers of a judge that was asked again.

    Args:
        distances: Row -> distance of the new answers from the kept ones.
        changed: Rows with another verdict.
        change: Change of the judge that was found; None without one.
        has_returned: True if the judge answers again as it did before the change.
        earlier: Row -> number of repeats that are not tested together any more, the sum of their distances, and how
            many of them had another verdict.
        log_e_value: Logarithm of the e-value of the repeats that are tested together.
    """

    judge: str
    distances: dict[str, float] = Field(default_factory=dict)
    changed: tuple[str, ...] = ()
    change: JudgeChange | None = None
    has_returned: bool = False
    earlier: dict[str, tuple[int, float, int]] = Field(default_factory=dict)
    log_e_value: float = 0.0


class RepeatUsage(Part):
    """The cost of asking again."""

    requests: int
    prompt_tokens: int
    cached_tokens: int
    output_tokens: int


class AskedAgain(FindingPart):
    """Rows that a run asked about again, of its own or of its anchor.

    Args:
        reason: Reason why nothing could be asked; None if something was.
        year: Year of the repeat, whose share of false alarms is bounded.
        reference: Digest of what the repeats are compared with.
        repeat: Number of the repeat among those with the same reference, from 1.
        number: Number of the repeat in its year, from 1.
        next: Place of the first row of the next repeat.
        power: Probability of finding a change of `drift`.
        drift: Share of changed verdicts that should be found.
        rows: Number of rows.
        questions: Number of questions.
        judges: The answers of each judge.
        scores: Metric -> row -> scores of the first and of the new answers.
        variance: Metric -> variance of the judge's scores.
    """

    entry: ClassVar[str] = "asked_again"

    reason: str | None = None
    year: int = 0
    reference: str | None = None
    repeat: int = 0
    number: int = 0
    next: int = 0
    power: float = 0.0
    drift: float = 0.0
    rows: int = 0
    questions: int = 0
    usage: RepeatUsage | None = None
    judges: tuple[JudgeRepeat, ...] = ()
    scores: dict[str, dict[str, tuple[float, float]]] = Field(default_factory=dict)
    variance: dict[str, JudgeVariance] = Field(default_factory=dict)
