"""Apply a gate to the scores of a run and of an optional baseline."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType

import numpy as np

from metric_core.errors import ConfigError, UnknownMetricError
from metric_core.gates.corrected_means import NO_CORRECTION, CorrectedMean
from metric_core.gates.judge_agreement import Agreements, check_judge, distrust
from metric_core.gates.rules import (
    AbsoluteRule,
    Check,
    Count,
    CoverageRule,
    Gate,
    GateResult,
    JudgeRule,
    Outcome,
    RegressionRule,
    RuleKind,
    Statistic,
    Threshold,
)
from metric_core.gates.thresholds import Finding, Stream, check_mean, check_median, meets
from metric_core.parsing.suggestions import suggest_names
from metric_core.records import Direction, Score, Status
from metric_core.registry import resolve
from metric_core.statistics.bounded_means import LEAST_UNITS, Bounds
from metric_core.statistics.missing_scores import MissingScores, find_missing_scores
from metric_core.statistics.paired_tests import holm
from metric_core.statistics.pairs import ScoreColumns, pair_scores
from metric_core.statistics.resampling import SEED, Floats, Units
from metric_core.statistics.sample_size import MOST_ROWS, Moments, rows_to_decide

_STATISTICS: dict[Statistic, Callable[[Floats], float]] = {
    Statistic.LEAST: lambda values: float(values.min()),
    Statistic.GREATEST: lambda values: float(values.max()),
}


@dataclass(frozen=True, slots=True)
class _Draft:
    """A check whose outcome may depend on the other checks.

    Args:
        check: The check, without an outcome if there is a finding.
        finding: Test result to adjust for the number of tests; None if the check is final.
        key: Key of the metric if its judge must be trusted, else None.
        advice: Returns the number of rows that would decide the check, in words, or an empty text if it is not known;
            called only for a check that too few rows leave undecided.
        missing: Rows that only one run has scored; None if there are none, or no baseline.
    """

    check: Check
    finding: Finding | None = None
    key: str | None = None
    advice: Callable[[], str] = str
    missing: MissingScores | None = None


def check_gate(
    gate: Gate,
    columns: Sequence[ScoreColumns],
    seed: int = SEED,
    agreements: Agreements = MappingProxyType({}),
    corrected: Mapping[str, CorrectedMean] = MappingProxyType({}),
) -> GateResult:
    """Apply a gate.

    Args:
        gate: Rules to apply.
        columns: Cells of every metric of the baseline (a) and of the run (b).
        seed: Seed of resampling.
        agreements: Measured agreement of the judges with people, for gates with a rule about it.
        corrected: Bias-corrected means of the run by metric, for gates with rules about them.

    Raises:
        ConfigError: If a rule names a metric that the run does not have, or that the rule cannot apply to.

    >>> cells = {f"row {i}": Score.scored(0.9 if i % 3 else 0.7) for i in range(60)}
    >>> columns = [ScoreColumns(metric="faithfulness", direction=Direction.HIGHER, a={}, b=cells)]
    >>> rule = AbsoluteRule("faithfulness", Statistic.MEAN, Threshold(0.8))
    >>> check_gate(Gate(absolute=(rule,)), columns).outcome.value
    'passed'
    """
    drafts = [
        *(_corrected_draft(rule, columns, gate, corrected) for rule in gate.absolute if _is_corrected(rule)),
        *(
            draft
            for rule in gate.absolute
            if not _is_corrected(rule)
            for draft in _absolute_drafts(rule, columns, gate, seed)
        ),
        *(draft for rule in gate.regression for draft in _regression_drafts(rule, columns, gate, seed)),
        *(draft for rule in gate.coverage for draft in _coverage_drafts(rule, columns)),
    ]
    checks = _settle_all(drafts, gate.level)
    if gate.judge is not None:
        checks = _apply_judge_rules(gate.judge, drafts, checks, columns, agreements)
    return GateResult.from_checks(checks, gate.level)


def _apply_judge_rules(
    rule: JudgeRule,
    drafts: Sequence[_Draft],
    checks: Sequence[Check],
    columns: Sequence[ScoreColumns],
    agreements: Agreements,
) -> list[Check]:
    """Return the checks of the judges, then the others, which are inconclusive if their judge is not trusted."""
    keys = [draft.key for draft in drafts]
    compared = {draft.key for draft in drafts if draft.check.kind is RuleKind.REGRESSION}
    named = None if rule.metrics is None else [_resolve_metric(name, columns).metric for name in rule.metrics]
    metrics = [key for key in dict.fromkeys(keys if named is None else named) if key is not None]
    # The judge of the baseline matters only for rules that compare with the baseline.
    relevant = {key: agreements.get(key, ())[: 2 if key in compared else 1] for key in metrics}
    judges = list(check_judge(rule, metrics, relevant))
    untrusted = {check.metric for check in judges if check.outcome is not Outcome.PASSED}
    others = (distrust(check) if key in untrusted else check for key, check in zip(keys, checks, strict=True))
    return [*judges, *others]


def _settle_all(drafts: Sequence[_Draft], level: float) -> list[Check]:
    adjusted = iter(holm([draft.finding.p_met for draft in drafts if draft.finding]))
    return [
        _settle(draft, draft.finding, next(adjusted), 1 - level) if draft.finding else draft.check for draft in drafts
    ]


def _settle(draft: _Draft, finding: Finding, p: float, alpha: float) -> Check:
    settled = replace(draft.check, observed=finding.observed, interval=finding.interval, p=p)
    if draft.missing is not None and (p <= alpha or finding.p_violated <= alpha):
        return replace(
            settled,
            reason="one of the runs lacks scores of more rows than the other, and those scores could decide the rule",
        )
    if p <= alpha:
        return replace(settled, outcome=Outcome.FAILED, reason="violates the threshold by more than chance")
    if finding.p_violated <= alpha:
        return replace(settled, outcome=Outcome.PASSED, reason="meets the threshold by more than chance")
    if finding.p_met <= alpha:
        return replace(settled, reason="violates the threshold, but with this many rules that may be chance")
    reason = "the threshold lies within the interval: too few rows to decide"
    advice = draft.advice()
    return replace(settled, reason=f"{reason}; {advice}" if advice else reason)


def _is_corrected(rule: AbsoluteRule) -> bool:
    return rule.statistic is Statistic.CORRECTED


def _corrected_draft(
    rule: AbsoluteRule, columns: Sequence[ScoreColumns], gate: Gate, corrected: Mapping[str, CorrectedMean]
) -> _Draft:
    """Return the draft of a rule about a bias-corrected mean, which allows for errors of the judge."""
    metric = _resolve_metric(rule.metric, columns).metric
    mean = corrected.get(metric)
    check = _undecided(
        RuleKind.ABSOLUTE, metric, f"{rule.statistic} {rule.threshold}", 0 if mean is None else mean.rows
    )
    if mean is None:
        return _Draft(replace(check, reason=NO_CORRECTION))
    finding = mean.check(rule.threshold, gate.level)
    if finding is None:
        return _Draft(replace(check, reason=f"there is no bias-corrected mean: {mean.reason}"))
    return _Draft(check, finding)


def _absolute_drafts(rule: AbsoluteRule, columns: Sequence[ScoreColumns], gate: Gate, seed: int) -> Iterator[_Draft]:
    column = _resolve_metric(rule.metric, columns)
    scored = {row: cell for row, cell in column.b.items() if cell.status == Status.SCORED}
    if any(cell.value is None for cell in scored.values()):
        raise ConfigError(f"the gate has a rule about {rule.metric}, whose values are categories, not numbers")
    by_scale: dict[str | None, list[str]] = {}
    for row in sorted(scored):
        by_scale.setdefault(scored[row].label, []).append(row)
    for scale, rows in sorted(by_scale.items(), key=lambda item: str(item[0])) or [(None, [])]:
        values = np.array([scored[row].value for row in rows], dtype=np.float64)
        check = _undecided(RuleKind.ABSOLUTE, _label(column, scale), f"{rule.statistic} {rule.threshold}", len(rows))
        if rule.statistic in {Statistic.MEAN, Statistic.MEDIAN}:
            bounds = Bounds.of_metric(column.bounds, scale)
            tested = _Values(values, column.groups_of(rows), rule.threshold, bounds, rule.statistic)
            draft = _draft_test(check, tested, gate, seed)
        else:
            draft = _Draft(_decide_fact(check, _STATISTICS[rule.statistic](values) if rows else None, rule.threshold))
        yield replace(draft, key=column.metric)


def _regression_drafts(
    rule: RegressionRule, columns: Sequence[ScoreColumns], gate: Gate, seed: int
) -> Iterator[_Draft]:
    threshold = Threshold(rule.max_drop, is_floor=False)
    for column in _regression_columns(rule, columns, gate):
        check = _undecided(RuleKind.REGRESSION, column.metric, f"worse by {threshold}", 0)
        paired = pair_scores(column)
        if not column.b:
            yield _Draft(replace(check, reason="the run does not have this metric of the baseline"))
        elif not paired.pairs:
            yield _Draft(replace(check, reason="no row is scored in both runs"))
        for pairs in paired.pairs:
            part = replace(check, metric=_label(column, pairs.scale), rows=len(pairs.rows))
            worsening = _Values(pairs.worsening(column.direction), pairs.groups, threshold, pairs.difference_bounds)
            missing = find_missing_scores(column, pairs, paired.counts, seed)
            drop = rule.max_drop if column.direction is Direction.LOWER else -rule.max_drop
            yield replace(
                _draft_test(part, worsening, gate, seed),
                key=column.metric,
                missing=missing if missing is not None and missing.can_explain(drop) else None,
            )


def _regression_columns(rule: RegressionRule, columns: Sequence[ScoreColumns], gate: Gate) -> Iterator[ScoreColumns]:
    """Yield the columns that a rule applies to: those it names, or those of the baseline that no other rule names.

    Only metrics that have better and worse values are compared.
    """
    if rule.metrics is not None:
        for name in rule.metrics:
            column = _resolve_metric(name, columns)
            if column.direction is Direction.NEITHER or _has_categories(column.a):
                raise ConfigError(f"the gate's regression rule names {name}, which has no better and worse values")
            yield column
        return
    named = {_resolve_metric(name, columns).metric for other in gate.regression for name in other.metrics or ()}
    for column in columns:
        can_be_worse = column.direction is not Direction.NEITHER and not _has_categories(column.a)
        if _is_scored(column.a) and can_be_worse and column.metric not in named:
            yield column


def _coverage_drafts(rule: CoverageRule, columns: Sequence[ScoreColumns]) -> Iterator[_Draft]:
    for column in _coverage_columns(rule, columns):
        if rule.count is Count.PAIRED:
            rows = sum(cell.status == Status.SCORED for cell in column.a.values())
            counted = pair_scores(column).counts.paired
        else:
            rows = len(column.b)
            counted = sum(cell.status.value == rule.count.value for cell in column.b.values())
        check = _undecided(RuleKind.COVERAGE, column.metric, f"share {rule.count} {rule.threshold}", rows)
        yield _Draft(_decide_fact(check, counted / rows if rows else None, rule.threshold, f"{counted} of {rows} rows"))


def _coverage_columns(rule: CoverageRule, columns: Sequence[ScoreColumns]) -> Iterable[ScoreColumns]:
    """Return the columns that a rule applies to: those it names, or all of the run (of the baseline for `PAIRED`)."""
    if rule.metrics is not None:
        return [_resolve_metric(name, columns) for name in rule.metrics]
    if rule.count is Count.PAIRED:
        return [column for column in columns if _is_scored(column.a)]
    return [column for column in columns if column.b]


@dataclass(frozen=True, slots=True)
class _Values:
    """Values to test against a threshold."""

    values: Floats
    groups: Sequence[str] | None
    threshold: Threshold
    bounds: Bounds | None
    statistic: Statistic = Statistic.MEAN


def _draft_test(check: Check, measured: _Values, gate: Gate, seed: int) -> _Draft:
    values, threshold = measured.values, measured.threshold
    units = Units.from_values(values, measured.groups)
    if len(values) < gate.min_rows or len(units) < LEAST_UNITS:
        mean = float(values.mean()) if len(values) else None
        has_rows = len(values) >= gate.min_rows
        wanted = f"rows of at least {LEAST_UNITS} groups" if has_rows else f"at least {gate.min_rows} rows"
        got = "1 row" if len(values) == 1 else f"{len(values)} rows"
        got = f"{got} of {len(units)} groups" if has_rows and measured.groups is not None else got
        return _Draft(replace(check, observed=mean, reason=f"{got}, wanted {wanted}"))
    if measured.statistic is Statistic.MEDIAN:
        met = meets(values, threshold)
        groups = None if measured.groups is None else Units.from_values(met, measured.groups)
        return _Draft(check, check_median(values, threshold, gate.level, groups, Stream(seed, check.metric)))
    if measured.bounds is None and not units.influence.any():
        reason = "all rows are alike, and the metric has no bounds, so nothing is known of other rows"
        return _Draft(replace(check, observed=units.mean, reason=reason))
    finding = check_mean(units, threshold, gate.level, measured.bounds, Stream(seed, check.metric))
    return _Draft(check, finding, advice=partial(_advise_rows, units, measured, gate.level))


def _advise_rows(units: Units, measured: _Values, level: float) -> str:
    if measured.bounds is None:
        return ""
    rows = rows_to_decide(Moments.from_units(units), measured.threshold.value, measured.bounds, level)
    if rows is None:
        return f"more than {MOST_ROWS:,} rows would be needed" if units.mean != measured.threshold.value else ""
    return f"needs about {rows:,} rows if the mean stays at {units.mean:.3f}" if rows > len(measured.values) else ""


def _decide_fact(check: Check, observed: float | None, threshold: Threshold, reason: str = "") -> Check:
    if observed is None:
        return replace(check, reason="there are no such rows")
    outcome = Outcome.PASSED if threshold.is_met_by(observed) else Outcome.FAILED
    return replace(check, observed=observed, outcome=outcome, reason=reason or f"observed on {check.rows} rows")


def _undecided(kind: RuleKind, metric: str, rule: str, rows: int) -> Check:
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


def _label(column: ScoreColumns, scale: str | None) -> str:
    return column.metric if scale is None else f"{column.metric} on {scale}"


def _is_scored(cells: Mapping[str, Score]) -> bool:
    return any(cell.status == Status.SCORED for cell in cells.values())


def _has_categories(cells: Mapping[str, Score]) -> bool:
    return any(cell.status == Status.SCORED and cell.value is None for cell in cells.values())


def check_metric_names(gate: Gate, keys: Collection[str]) -> None:
    """Check that a run has every metric that a gate names.

    Args:
        gate: Gate to check.
        keys: Keys of the metrics of the run.

    Raises:
        ConfigError: A rule names another metric.

    >>> check_metric_names(Gate(absolute=(AbsoluteRule("faithfulness", Statistic.MEAN, Threshold(0.8)),)), ["other"])
    Traceback (most recent call last):
        ...
    metric_core.errors.ConfigError: the gate has a rule about 'faithfulness', but the run has only: other.
    """
    for name in gate.metric_names:
        _resolve_key(name, keys)


def _resolve_metric(name: str, columns: Sequence[ScoreColumns]) -> ScoreColumns:
    """Return the column of a metric by its key, or by any name of a metric with default parameters."""
    by_key = {column.metric: column for column in columns}
    return by_key[_resolve_key(name, by_key)]


def _resolve_key(name: str, keys: Collection[str]) -> str:
    try:
        key = name if name in keys else resolve(name).name
    except UnknownMetricError:
        key = name
    if key in keys:
        return key
    near = suggest_names(name, sorted(keys), most=1)
    hint = f" Did you mean {near[0]}?" if near else ""
    raise ConfigError(f"the gate has a rule about {name!r}, but the run has only: {', '.join(sorted(keys))}.{hint}")
