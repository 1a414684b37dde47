"""Draft checks: apply a rule to some rows, before the correction for the number of rules of the gate."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial

from metric_core.gates.rules import Check, Gate, Outcome, RuleKind, Statistic, Threshold
from metric_core.gates.thresholds import Confidence, Finding, RandomStream, check_mean, check_quantile
from metric_core.statistics.bounded_means import LEAST_UNITS, Bounds, are_enough
from metric_core.statistics.judge_variance import JudgeVariance
from metric_core.statistics.missing_scores import MissingScores
from metric_core.statistics.nightly_bets import Night, p_of_nights
from metric_core.statistics.paired_tests import holm
from metric_core.statistics.resampling import Floats, Units
from metric_core.statistics.sample_size import MOST_ROWS, Moments, rows_to_decide
from metric_core.statistics.summary import SERIAL, RowValues, describe_groups

_NOISE = "within the judge's noise: judged again, the same answers may pass or fail"


@dataclass(frozen=True, slots=True)
class Draft:
    """A check whose outcome may depend on the other checks.

    Args:
        check: The check, without an outcome if there is a finding.
        finding: Test result to adjust for the number of tests; None if the check is final.
        key: Key of the metric if its judge must be trusted, else None.
        advice: Returns the number of rows that would decide the check, in words, or an empty text if it is not known;
            called only for a check that too few rows leave undecided.
        rows_needed: Returns this number; None if it is not known, or if no number of rows would do.
        missing: Rows that only one run has scored; None if there are none, or no baseline.
        is_small: True if there are too few rows for a decision.
        caution: Sentence on why the interval may be too narrow; may be empty.
        unknown: Sentence on why the nights are not known by which the check could fail; empty if none could.
    """

    check: Check
    finding: Finding | None = None
    key: str | None = None
    advice: Callable[[], str] = str
    rows_needed: Callable[[], int | None] = lambda: None
    missing: MissingScores | None = None
    is_small: bool = False
    caution: str = ""
    unknown: str = ""


def settle_all(drafts: Sequence[Draft], gate: Gate) -> list[Check]:
    """Return the checks of drafts, with p-values corrected for the number of tests and of looks.

    Args:
        drafts: All drafts of a gate.
    """
    tested = [(draft, draft.finding) for draft in drafts if draft.finding]
    checks = _settle_tests(tested, gate)
    if any(finding.judged_again for _, finding in tested):
        moved = [
            _settle_tests(
                [(draft, (finding.judged_again or (finding, finding))[end]) for draft, finding in tested], gate
            )
            for end in (0, 1)
        ]
        checks = [
            _allow_for_noise(check, low, high, gate.undecided) for check, low, high in zip(checks, *moved, strict=True)
        ]
    found = iter(checks)
    settled = [next(found) if draft.finding else draft.check for draft in drafts]
    return [_add_doubts(draft, check) for draft, check in zip(drafts, settled, strict=True)]


def _add_doubts(draft: Draft, check: Check) -> Check:
    """Return a check with what its draft says of its interval, and of nights that are not known.

    A check that passes needs no earlier nights: they are evidence only if this one violates the threshold.
    """
    if draft.caution:
        check = replace(check, reason=f"{check.reason}; {draft.caution}")
    if not draft.unknown or check.outcome is Outcome.PASSED:
        return check
    reason = f"{check.reason}; the nights before it are not known: {draft.unknown}"
    return replace(check, outcome=Outcome.INCONCLUSIVE, reason=reason, is_unknown=True)


def _settle_tests(tests: Sequence[tuple[Draft, Finding]], gate: Gate) -> list[Check]:
    adjusted = holm([finding.p_failed(gate.looks) for _, finding in tests])
    return [_settle(draft, finding, p, gate) for (draft, finding), p in zip(tests, adjusted, strict=True)]


def _allow_for_noise(check: Check, low: Check, high: Check, undecided: Outcome) -> Check:
    """Return a check that is inconclusive if the gate would pass or fail by the noise of the judge.

    Args:
        low: The check if the judge had moved the mean to one side.
        high: The check if the judge had moved it to the other side.
        undecided: Outcome that an inconclusive gate counts as.
    """
    possible = {low.outcome, check.outcome, high.outcome}
    if len(possible) == 1:
        return check
    counted = {undecided if outcome is Outcome.INCONCLUSIVE else outcome for outcome in possible}
    if counted >= {Outcome.PASSED, Outcome.FAILED}:
        return replace(check, outcome=Outcome.INCONCLUSIVE, reason=_NOISE, is_noise=True, is_unsettled=True)
    others = " or ".join(outcome for outcome in Outcome if outcome in possible - {check.outcome})
    reason = f"{check.reason}; within the judge's noise: judged again, it may be {others}"
    return replace(check, reason=reason, is_unsettled=True)


def _settle(draft: Draft, finding: Finding, p: float, gate: Gate) -> Check:
    alpha = 1 - gate.level
    settled = replace(draft.check, observed=finding.observed, interval=finding.interval, p=p)
    if draft.missing is not None and (p <= alpha or finding.p_violated <= alpha):
        return replace(
            settled,
            reason="the runs lack scores of different numbers of rows, or of different rows, by more than chance, and "
            "those scores could decide the rule",
        )
    if p <= alpha:
        whole = "" if finding.p_nights is None else ", together with the nights before it"
        return replace(settled, outcome=Outcome.FAILED, reason=f"violates the threshold by more than chance{whole}")
    if finding.p_violated <= alpha:
        return replace(settled, outcome=Outcome.PASSED, reason="meets the threshold by more than chance")
    if finding.p_met <= alpha:
        many = "looks" if gate.looks > 1 else "rules"
        return replace(settled, reason=f"violates the threshold, but with this many {many} that may be chance")
    reason = "the threshold lies within the interval: too few rows to decide"
    advice = draft.advice()
    reason = f"{reason}; {advice}" if advice else reason
    return replace(settled, reason=reason, rows_needed=draft.rows_needed())


@dataclass(frozen=True, slots=True)
class Nights:
    """Earlier nights of other rows.

    Args:
        earlier: The nights; empty without any.
        unknown: Sentence on why they are not known; empty if they are.
    """

    earlier: Sequence[Night] = ()
    unknown: str = ""


NO_NIGHTS = Nights()


@dataclass(frozen=True, slots=True)
class Measured:
    """Values to test against a threshold.

    Args:
        judge: Variance of the judge's scores; None if it is not known.
        is_serial: True if rows that follow each other in the file have similar values.
        repeated: Number of values that are the mean of two judgments.
        weights: Weight of each value; None if each counts once.
        nights: Earlier nights of other rows, for a test over all of them.
    """

    values: Floats
    groups: Sequence[str] | None
    threshold: Threshold
    bounds: Bounds | None
    statistic: Statistic = Statistic.MEAN
    judge: JudgeVariance | None = None
    is_serial: bool = False
    repeated: int = 0
    weights: Floats | None = None
    nights: Nights = NO_NIGHTS

    @property
    def adds_up_nights(self) -> bool:
        """Whether earlier nights of other rows would be evidence, if there are any."""
        is_plain = self.groups is None and self.weights is None and self.statistic is Statistic.MEAN
        return is_plain and self.bounds is not None and self.bounds.low < self.threshold.value < self.bounds.high


@dataclass(frozen=True, slots=True)
class Testing:
    """Settings of the tests of a gate.

    Args:
        judge_variances: Variance of the judge's scores by metric, as far as it is known.
        nights: Earlier nights of other rows by metric, for tests over all of them.
        unknown_nights: Sentence on why they are not known; empty if they are.
    """

    gate: Gate
    seed: int
    judge_variances: Mapping[str, JudgeVariance] = field(default_factory=dict)
    nights: Mapping[str, Sequence[Night]] = field(default_factory=dict)
    unknown_nights: str = ""

    def nights_of(self, metric: str) -> Nights:
        """Return the earlier nights of a metric."""
        return Nights(self.nights.get(metric, ()), self.unknown_nights)


def draft_test(check: Check, measured: Measured, testing: Testing) -> Draft:
    """Test values against a threshold.

    Args:
        check: The check, without an outcome.
    """
    values, threshold, gate = measured.values, measured.threshold, testing.gate
    stream = RandomStream(testing.seed, check.metric)
    units = Units.from_values(values, measured.groups, measured.weights)
    if measured.groups is not None:
        check = replace(check, groups=len(units), independent_groups=units.independent)
    if len(values) < gate.min_rows or not are_enough(units):
        mean = units.mean if len(values) else None
        has_rows = len(values) >= gate.min_rows
        wanted = f"rows of at least {LEAST_UNITS} groups" if has_rows else f"at least {gate.min_rows} rows"
        got = "1 row" if len(values) == 1 else f"{len(values)} rows"
        if has_rows and measured.groups is not None:
            got = f"{got} of {describe_groups(len(units), units.independent)}"
        return Draft(replace(check, observed=mean, reason=f"{got}, wanted {wanted}"), is_small=True)
    check, is_mean = replace(check, threshold=threshold), measured.statistic is Statistic.MEAN
    noise = measured.judge.span(len(values), measured.repeated) if measured.judge is not None and is_mean else 0.0
    confidence = Confidence(gate.level, gate.looks, noise)
    if (share := measured.statistic.share) is not None:
        rows = RowValues(values, measured.groups, measured.weights)
        return Draft(check, check_quantile(rows, threshold, confidence, share, stream))
    if measured.bounds is None:
        reason = "the metric has no bounds, so nothing is known of other rows: declare its least and greatest value"
        return Draft(replace(check, observed=units.mean, reason=reason))
    finding = _add_nights(check_mean(units, threshold, confidence, measured.bounds, stream), measured, gate)
    caution = SERIAL if measured.is_serial and measured.groups is None else ""
    needed = cache(partial(_rows_needed, units, measured, measured.bounds, confidence))  # for the advice, too
    advice = partial(_advise_rows, units, measured, needed)
    unknown = measured.nights.unknown if measured.adds_up_nights else ""
    return Draft(check, finding, advice=advice, rows_needed=needed, caution=caution, unknown=unknown)


def _add_nights(finding: Finding, measured: Measured, gate: Gate) -> Finding:
    """Return the finding with the p-value of all nights, if there are earlier ones of other rows."""
    values, threshold, bounds = measured.values, measured.threshold, measured.bounds
    if not measured.nights.earlier or bounds is None or not measured.adds_up_nights:
        return finding
    nights = [*measured.nights.earlier, Night(len(values), float(values.mean()), float(values.std(ddof=1)))]
    p = p_of_nights(nights, threshold.value, bounds, 1 - gate.level, is_floor=threshold.is_floor)
    return replace(finding, p_nights=p, judged_again=tuple(replace(each, p_nights=p) for each in finding.judged_again))


def _rows_needed(units: Units, measured: Measured, bounds: Bounds, confidence: Confidence) -> int | None:
    level = confidence.level if measured.threshold.is_met_by(units.mean) else confidence.of_failure
    return rows_to_decide(Moments.from_units(units), measured.threshold.value, bounds, level)


def _advise_rows(units: Units, measured: Measured, needed: Callable[[], int | None]) -> str:
    rows = needed()
    if rows is None:
        return f"more than {MOST_ROWS:,} rows would be needed" if units.mean != measured.threshold.value else ""
    return f"needs about {rows:,} rows if the mean stays at {units.mean:.3f}" if rows > len(measured.values) else ""


def decide_fact(check: Check, observed: float | None, threshold: Threshold, reason: str = "") -> Draft:
    """Decide a rule about a fact, which needs no test.

    Args:
        check: The check, without an outcome.
        observed: The fact; None if there are no such rows.
        reason: Explanation of the outcome; by default the number of rows.
    """
    if observed is None:
        return Draft(replace(check, reason="there are no such rows"), is_small=True)
    outcome = Outcome.PASSED if threshold.is_met_by(observed) else Outcome.FAILED
    reason = reason or f"observed on {check.rows} rows"
    return Draft(replace(check, observed=observed, outcome=outcome, reason=reason))


def open_check(kind: RuleKind, metric: str, rule: str, rows: int) -> Check:
    """Return a check without an outcome, which counts as inconclusive.

    Args:
        rows: Number of rows that it is about.
    """
    return Check(
        kind=kind,
        metric=metric,
        rule=rule,
        outcome=Outcome.INCONCLUSIVE,
        observed=None,
        interval=None,
        p=None,
        rows=rows,
        reason="",
    )
