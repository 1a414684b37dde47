"""The anchor of a run in its record, and questions that were asked again."""

from dataclasses import dataclass

from pydantic import Field

from metric_core.statistics.judge_variance import JudgeVariance, VarianceShares
from tasks.record.part import Part
from tasks.record.stored_figures import StoredFigure
from tasks.runtime.usage import QuestionUsage


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


class AskedAgain(Part):
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


class AnchorRecord(Part):
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


@dataclass(frozen=True, slots=True)
class VarianceRecord(JudgeVariance):
    """The judge's share of the variance of a mean.

    Args:
        of_anchor: True if the rows that were judged again are those of the anchor.
        advice: Advice on the interval of the mean: more rows, or more votes.
    """

    of_anchor: bool
    shares: VarianceShares
    advice: str
