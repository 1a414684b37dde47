"""Define gate rules about the scores of a run; each passes, fails, or is inconclusive because of too few rows.

Over all rules of a gate, and all slices that they are about, the probability that any fails although every true mean
meets its threshold is at most 1 - level (Holm's correction). A gate that is applied to many runs can share the error
among its looks (Bonferroni): the ends of the intervals towards failure are then a confidence sequence, however the runs
depend on each other. Counts, and the least and greatest value, are facts about the rows and need no test.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from metric_core.statistics.resampling import Interval
from metric_core.statistics.slices import Slice
from metric_core.statistics.summary import describe_groups

_ROUNDING = 1e-12
"""Largest difference that counts as a rounding error."""


class Outcome(StrEnum):
    """Outcome of a rule, in ascending order of severity."""

    PASSED = "passed"
    INCONCLUSIVE = "inconclusive"
    FAILED = "failed"


class RuleKind(StrEnum):
    """Subject of a rule.

    ABSOLUTE: the scores of the run. REGRESSION: its scores compared with a baseline. COVERAGE: the share of rows with
    scores. JUDGE: what is known of its judge: agreement with people, or the flip rate of its certificate.
    """

    ABSOLUTE = "absolute"
    REGRESSION = "regression"
    COVERAGE = "coverage"
    JUDGE = "judge"


class Statistic(StrEnum):
    """Statistic of the values of a metric that an absolute rule checks.

    CORRECTED: the bias-corrected mean, on the scale of the labels of people. P95: the value that 95 of 100 rows have at
    most.
    """

    CORRECTED = "corrected"
    MEAN = "mean"
    MEDIAN = "median"
    P95 = "p95"
    LEAST = "least"
    GREATEST = "greatest"

    @property
    def share(self) -> float | None:
        """Share of the rows that have at most this value; None unless it is a quantile."""
        return {Statistic.MEDIAN: 0.5, Statistic.P95: 0.95}.get(self)


class Count(StrEnum):
    """Share of rows that a coverage rule checks.

    SCORED, FAILED: share of the rows of the run. PAIRED: share of the rows scored in the baseline that both runs have
    scored.
    """

    SCORED = "scored"
    FAILED = "failed"
    PAIRED = "paired"


@dataclass(frozen=True, slots=True)
class Threshold:
    """A threshold: a lower or an upper limit.

    >>> str(Threshold(0.8)), Threshold(0.02, is_floor=False).is_met_by(0.01)
    ('at least 0.8', True)
    """

    value: float
    is_floor: bool = True

    def is_met_by(self, number: float) -> bool:
        """Return whether a number is within the limit, or exceeds it only by rounding."""
        beyond = self.value - number if self.is_floor else number - self.value
        return beyond < _ROUNDING

    def __str__(self) -> str:
        return f"{'at least' if self.is_floor else 'at most'} {self.value:g}"


@dataclass(frozen=True, slots=True)
class SliceSelection:
    """The slices that a rule is about.

    Args:
        column: Column that divides the rows.
        values: Values of the slices; None for every slice of the column.
    """

    column: str
    values: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class AbsoluteRule:
    """A rule that a statistic of a metric meets a threshold, in all rows or in each of some slices."""

    metric: str
    statistic: Statistic
    threshold: Threshold
    slices: SliceSelection | None = None


@dataclass(frozen=True, slots=True)
class RegressionRule:
    """A rule that metrics are worse than in the baseline by at most `max_drop`.

    If `metrics` is None, the rule applies to all metrics that no other regression rule names for the same slices.
    """

    metrics: tuple[str, ...] | None
    max_drop: float
    slices: SliceSelection | None = None


@dataclass(frozen=True, slots=True)
class CoverageRule:
    """A rule that a share of rows meets a threshold; if `metrics` is None, it applies to all metrics."""

    metrics: tuple[str, ...] | None
    count: Count
    threshold: Threshold
    slices: SliceSelection | None = None


@dataclass(frozen=True, slots=True)
class JudgeRule:
    """A rule that the judge agrees with people, or that its verdicts stand where they must.

    Args:
        metrics: Names of metrics; None for all metrics with absolute or regression rules.
        threshold: Threshold for Cohen's kappa, or for Spearman's correlation if people gave grades; None requires no
            agreement.
        min_rows: Number of labelled rows below which the rule is inconclusive, since intervals from few rows are too
            narrow.
        max_flip: Threshold for the share of verdicts that planted changes move although they must not; None requires
            no certificate.
    """

    metrics: tuple[str, ...] | None
    threshold: Threshold | None
    min_rows: int
    max_flip: Threshold | None = None


@dataclass(frozen=True, slots=True)
class JudgeAgreement:
    """Measured agreement of a judge with people on one metric.

    Args:
        measure: Name of the coefficient.
        value: Cohen's kappa or Spearman's correlation; None if there were too few labels.
        interval: 95 % interval of the value.
        rows: Number of labelled rows.
    """

    measure: str
    value: float | None
    interval: Interval | None
    rows: int


@dataclass(frozen=True, slots=True)
class JudgeFlips:
    """The flip rate and the faults in the certificate of a judge.

    Args:
        share: Share of the verdicts that moved although they must not.
        interval: 95 % interval of the share; None with too few rows.
        asked: Number of these verdicts.
        faults: Names of the changes that the judge is misled by, or does not notice.
        must_move: Number of verdicts that had to move. A judge that supports no claim has none.
    """

    share: float
    interval: Interval | None
    asked: int
    faults: tuple[str, ...] = ()
    must_move: int = 0

    def __str__(self) -> str:
        """Return the share and its interval.

        >>> str(JudgeFlips(0.0, Interval(0.0, 0.016), 189))
        'flip rate 0.000 (95 % interval 0.000 to 0.016) of 189 verdicts'
        """
        ends = "" if self.interval is None else f" (95 % interval {self.interval.low:.3f} to {self.interval.high:.3f})"
        return f"flip rate {self.share:.3f}{ends} of {self.asked:,} verdicts"


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """Rules of a gate.

    Args:
        absolute: Rules about the scores of the run.
        regression: Rules about the scores of the run compared with a baseline.
        coverage: Rules about the share of rows with scores.
        judge: Requirements of the judge; other rules are inconclusive unless it meets them. None requires nothing.
        min_rows: Number of rows below which rules about means are inconclusive.
        level: Confidence level of each limit of a mean, and probability that the gate does not fail by chance.
        undecided: Outcome that an inconclusive gate counts as.
        looks: Number of runs to which the gate is applied and over which this probability holds, at least 1.
        skips_small_slices: True if rules leave out slices with too few rows; False if they are inconclusive there.
    """

    absolute: tuple[AbsoluteRule, ...] = ()
    regression: tuple[RegressionRule, ...] = ()
    coverage: tuple[CoverageRule, ...] = ()
    judge: JudgeRule | None = None
    min_rows: int = 30
    level: float = 0.95
    looks: int = 1
    undecided: Outcome = Outcome.INCONCLUSIVE
    skips_small_slices: bool = False

    @property
    def slice_columns(self) -> tuple[str, ...]:
        """The columns whose slices rules are about, each once."""
        return tuple(dict.fromkeys(selection.column for selection in self._selections))

    @property
    def slice_values(self) -> dict[str, tuple[str, ...]]:
        """Column -> values of the slices that rules name."""
        named: dict[str, dict[str, None]] = {}
        for selection in self._selections:
            named.setdefault(selection.column, {}).update(dict.fromkeys(selection.values or ()))
        return {column: tuple(values) for column, values in named.items()}

    @property
    def _selections(self) -> list[SliceSelection]:
        every = [
            *(rule.slices for rule in self.absolute),
            *(rule.slices for rule in self.regression),
            *(rule.slices for rule in self.coverage),
        ]
        return [selection for selection in every if selection is not None]

    @property
    def metric_names(self) -> tuple[str, ...]:
        """The names of metrics in the rules, each once."""
        named = [rule.metric for rule in self.absolute]
        selections = [rule.metrics for rule in self.regression] + [rule.metrics for rule in self.coverage]
        for metrics in (*selections, self.judge.metrics if self.judge is not None else None):
            named += metrics or ()
        return tuple(dict.fromkeys(named))

    @property
    def needs_baseline(self) -> bool:
        """Whether a rule needs a baseline."""
        return bool(self.regression) or any(rule.count is Count.PAIRED for rule in self.coverage)

    def without_baseline(self) -> "Gate":
        """Return the gate without the rules that need a baseline.

        >>> counts = (Count.PAIRED, Count.SCORED)
        >>> gate = Gate(coverage=tuple(CoverageRule(None, count, Threshold(0.9)) for count in counts))
        >>> [rule.count.value for rule in gate.without_baseline().coverage]
        ['scored']
        """
        coverage = tuple(rule for rule in self.coverage if rule.count is not Count.PAIRED)
        return replace(self, regression=(), coverage=coverage)


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """Result of a rule for a metric.

    Args:
        kind: Subject of the rule.
        metric: Key of the metric, with the scale if rows have different scales.
        rule: Description of the rule.
        observed: Number that the rule checks; None if there is none.
        interval: Lower and upper limit of the true value, each at the level of the gate, towards failure at that of
            one look; the 95 % interval for rules about the judge; None for facts.
        p: P-value of "the threshold is met", after the corrections for rules and looks; None for facts.
        rows: Number of rows, of labelled rows for agreement with people, or of verdicts for a flip rate.
        reason: Explanation of the outcome.
        slice: Slice of the rows; None for all rows.
        groups: Number of groups of rows; None if rows are not grouped, and for facts.
        independent_groups: Number of equal groups that would say as much; None like `groups`.
        is_noise: True if the gate would pass or fail by the noise of the judge: it stays inconclusive, whatever
            inconclusive gates count as.
        is_unsettled: True if the check may have another outcome once the judge judges the same answers again.
        is_unknown: True if the check could fail by earlier runs, which are not known: it does not count as passed.
        threshold: Threshold of the mean or quantile that is tested; None for other rules, and with too few rows.
        rows_needed: Number of rows that would decide a check that too few leave undecided; None if it is not known.
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
    slice: Slice | None = None
    groups: int | None = None
    independent_groups: int | None = None
    is_noise: bool = False
    is_unsettled: bool = False
    is_unknown: bool = False
    threshold: Threshold | None = None
    rows_needed: int | None = None

    @property
    def size(self) -> str:
        """The number of rows, and of groups if rows are grouped, in words."""
        rows = "1 row" if self.rows == 1 else f"{self.rows:,} rows"
        return rows if self.groups is None else f"{rows} of {describe_groups(self.groups, self.independent_groups)}"

    @property
    def counts_pairs(self) -> bool:
        """Whether the check is about the share of the baseline's rows that are scored in both runs."""
        return self.kind is RuleKind.COVERAGE and self.rule.startswith(f"share {Count.PAIRED} ")

    @property
    def subject(self) -> str:
        """The metric, and the slice if the check is about one."""
        return self.metric if self.slice is None else f"{self.metric}, {self.slice}"


@dataclass(frozen=True, slots=True)
class GateResult:
    """Result of a gate.

    Args:
        outcome: Failed if any check failed, else inconclusive if any is, else passed.
        checks: Results of every rule for every metric it applies to.
        level: Confidence level of each limit, and probability that the gate does not fail by chance.
        left_out: Sentences on slices that rules left out for too few rows.
        looks: Number of runs over which this probability holds.
        unsettled: Metric and slice (None: all rows) of the checks that the noise of the judge may turn.
    """

    outcome: Outcome
    checks: tuple[Check, ...]
    level: float
    left_out: tuple[str, ...] = ()
    looks: int = 1
    unsettled: tuple[tuple[str, Slice | None], ...] = ()

    @property
    def is_noise(self) -> bool:
        """Whether the noise of the judge decides a check."""
        return any(check.is_noise for check in self.checks)

    @property
    def is_trusted(self) -> bool:
        """Whether all checks of the judge passed."""
        return all(check.outcome is Outcome.PASSED for check in self.checks if check.kind is RuleKind.JUDGE)

    @property
    def may_count_as_passed(self) -> bool:
        """Whether an inconclusive gate may count as passed: the judge is trusted, and what the rules need is known."""
        return self.is_trusted and not any(check.is_unknown for check in self.checks)

    @classmethod
    def from_checks(cls, checks: Sequence[Check], gate: Gate, left_out: Sequence[str] = ()) -> "GateResult":
        """Return the result with the most severe outcome of the checks."""
        outcomes = {check.outcome for check in checks}
        worst = next((outcome for outcome in reversed(Outcome) if outcome in outcomes), Outcome.PASSED)
        return cls(worst, tuple(checks), gate.level, tuple(left_out), gate.looks)
