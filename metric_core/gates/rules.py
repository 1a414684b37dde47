"""Whether a run may pass: rules about its scores, each passed, failed, or not to be told from so few rows.

A rule about a mean fails only where the mean is beyond its bar by more than chance, and passes only where it keeps to
the bar by more than chance. Over all rules of a gate together, the probability that one fails although every true mean
keeps to its bar is at most 1 - level (Holm's correction). Counts, and the least and greatest value, are facts about the
rows and need no such care.

A gate may also ask for a judge that is known to agree with people. Numbers of a judge that was never measured, or
agrees too little, tell nothing: rules about them neither pass nor fail. As everywhere in a gate, what counts is not the
estimate: the lower end of the agreement's 95 % interval has to keep to the bar.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from metric_core.statistics.resampling import Interval

_ROUNDING = 1e-12
"""Numbers that differ by less differ by rounding."""


class Outcome(StrEnum):
    """What a rule says, the most serious last."""

    PASSED = "passed"
    INCONCLUSIVE = "inconclusive"
    FAILED = "failed"


class RuleKind(StrEnum):
    """What a rule is about.

    A run's own scores; its scores beside a baseline's; how many of its rows were scored; how far its judge agrees with
    people.
    """

    ABSOLUTE = "absolute"
    REGRESSION = "regression"
    COVERAGE = "coverage"
    JUDGE = "judge"


class Statistic(StrEnum):
    """What of a metric's values an absolute rule looks at."""

    MEAN = "mean"
    MEDIAN = "median"
    LEAST = "least"
    GREATEST = "greatest"


class Count(StrEnum):
    """Which share of the rows a coverage rule looks at.

    SCORED, FAILED: of the run's rows. PAIRED: of the rows that the baseline has scored, those scored in both.
    """

    SCORED = "scored"
    FAILED = "failed"
    PAIRED = "paired"


@dataclass(frozen=True, slots=True)
class Bar:
    """How low or how high a number may be.

    >>> str(Bar(0.8)), Bar(0.02, is_floor=False).is_kept_by(0.01)
    ('at least 0.8', True)
    """

    value: float
    is_floor: bool = True

    def is_kept_by(self, number: float) -> bool:
        """Whether a number is on the right side, or is the bar but for rounding."""
        beyond = self.value - number if self.is_floor else number - self.value
        return beyond < _ROUNDING

    def __str__(self) -> str:
        return f"{'at least' if self.is_floor else 'at most'} {self.value:g}"


@dataclass(frozen=True, slots=True)
class AbsoluteRule:
    """A metric of the run keeps to a bar."""

    metric: str
    statistic: Statistic
    bar: Bar


@dataclass(frozen=True, slots=True)
class RegressionRule:
    """Metrics are worse than in the baseline by at most so much; `metrics` None: all that no other rule names."""

    metrics: tuple[str, ...] | None
    max_drop: float


@dataclass(frozen=True, slots=True)
class CoverageRule:
    """So many rows are scored, failed or paired; `metrics` None: all."""

    metrics: tuple[str, ...] | None
    count: Count
    bar: Bar


@dataclass(frozen=True, slots=True)
class JudgeRule:
    """The judge agrees with people at least so far.

    Args:
        metrics: in which metrics; None: in each with absolute or regression rules.
        bar: how far, in Cohen's kappa, or in Spearman's correlation where people gave grades.
        min_rows: with fewer labelled rows nothing is told: the interval of few rows is narrower than it ought to be.
    """

    metrics: tuple[str, ...] | None
    bar: Bar
    min_rows: int


@dataclass(frozen=True, slots=True)
class JudgeAgreement:
    """How far the judge of a run agreed with people, in one metric.

    Args:
        measure: what the value is.
        value: Cohen's kappa, or Spearman's correlation; None where too few labels give one.
        interval: its 95 % interval.
        rows: how many labelled rows it rests on.
    """

    measure: str
    value: float | None
    interval: Interval | None
    rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """The rules of a gate.

    Args:
        absolute: rules about the run's own scores.
        regression: rules about its scores beside a baseline's.
        coverage: rules about how many of its rows were scored.
        judge: how far its judge must agree with people for the other rules to tell anything; None: no matter.
        min_rows: with fewer rows, nothing is told about a mean.
        level: how sure each limit of a mean is, and how sure the whole gate is not to fail by chance.
    """

    absolute: tuple[AbsoluteRule, ...] = ()
    regression: tuple[RegressionRule, ...] = ()
    coverage: tuple[CoverageRule, ...] = ()
    judge: JudgeRule | None = None
    min_rows: int = 30
    level: float = 0.95

    @property
    def needs_baseline(self) -> bool:
        """Whether a rule can not be applied to a run alone."""
        return bool(self.regression) or any(rule.count is Count.PAIRED for rule in self.coverage)


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """A rule applied to a metric.

    Args:
        kind: what the rule is about.
        metric: the key of the metric, with its scale where rows bring scales of their own.
        rule: the rule in words.
        outcome: what it says.
        observed: the number that the rule is about; None where there is none.
        interval: the least and the most that it may truly be, each at the gate's level; None for facts. Of agreement
            with people, its 95 % interval.
        p: p-value of "the bar is kept", after Holm's correction over the gate; None for facts.
        rows: how many rows the number rests on; of agreement with people, labelled ones.
        reason: why the outcome is what it is.
    """

    kind: RuleKind
    metric: str
    rule: str
    outcome: Outcome
    observed: float | None
    interval: Interval | None
    p: float | None
    rows: int
    reason: str


@dataclass(frozen=True, slots=True)
class GateResult:
    """What a gate says.

    Args:
        outcome: failed if any check is, else inconclusive if any is, else passed.
        checks: every rule applied to every metric it is about.
        level: how sure the ends of the intervals are, and how sure the gate is not to fail by chance.
    """

    outcome: Outcome
    checks: tuple[Check, ...]
    level: float

    @property
    def is_trusted(self) -> bool:
        """Whether the judge agrees with people as far as the gate asks for."""
        return all(check.outcome is Outcome.PASSED for check in self.checks if check.kind is RuleKind.JUDGE)

    @classmethod
    def of(cls, checks: Sequence[Check], level: float) -> "GateResult":
        """The result of some checks."""
        outcomes = {check.outcome for check in checks}
        worst = next((outcome for outcome in reversed(Outcome) if outcome in outcomes), Outcome.PASSED)
        return cls(worst, tuple(checks), level)
