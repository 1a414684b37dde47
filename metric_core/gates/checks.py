"""Apply a gate to the scores of a run and of an optional baseline."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from metric_core.errors import ConfigError, UnknownMetricError
from metric_core.gates.corrected_means import NO_CORRECTION, CorrectedMean
from metric_core.gates.drafts import (
    NO_NIGHTS,
    Draft,
    Measured,
    Testing,
    decide_fact,
    draft_test,
    open_check,
    settle_all,
)
from metric_core.gates.judge_agreement import Agreements, Flips, check_judge, distrust
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
from metric_core.gates.sliced_rules import ColumnParts, leave_out_small, name_slice
from metric_core.gates.thresholds import Confidence
from metric_core.metrics.registry import resolve
from metric_core.parsing.suggestions import suggest_names
from metric_core.records import Direction, Score, Status
from metric_core.statistics.bounded_means import Bounds
from metric_core.statistics.judge_variance import JudgeVariance
from metric_core.statistics.missing_scores import find_missing_scores
from metric_core.statistics.nightly_bets import Night
from metric_core.statistics.pairs import ScoreColumns, pair_scores
from metric_core.statistics.resampling import SEED, Floats
from metric_core.statistics.serial_order import is_serial
from metric_core.statistics.slices import RowSlices

_STATISTICS: dict[Statistic, Callable[[Floats], float]] = {
    Statistic.LEAST: lambda values: float(values.min()),
    Statistic.GREATEST: lambda values: float(values.max()),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class GateFacts:
    """Facts about a run, besides its scores, that rules of a gate can be about.

    Args:
        agreements: Measured agreement of the judges with people, for gates with a rule about it.
        flips: Flip rates in the certificates of the judges, for gates with a rule about them.
        corrected: Bias-corrected means of the run by metric, for gates with rules about them.
        slices: Slices of all rows of both runs, for each column that rules are about.
        judge_variances: Variance of the judge's scores by metric, as far as it is known.
        nights: Earlier nights of the year by metric, for a gate with looks, if each has other rows.
        unknown_nights: Sentence on why a gate with looks does not know them; empty if it does.
    """

    agreements: Agreements = field(default_factory=dict)
    flips: Flips = field(default_factory=dict)
    corrected: Mapping[str, CorrectedMean] = field(default_factory=dict)
    slices: Sequence[RowSlices] = ()
    judge_variances: Mapping[str, JudgeVariance] = field(default_factory=dict)
    nights: Mapping[str, Sequence[Night]] = field(default_factory=dict)
    unknown_nights: str = ""


NO_FACTS = GateFacts()


def check_gate(
    gate: Gate, columns: Sequence[ScoreColumns], seed: int = SEED, facts: GateFacts = NO_FACTS
) -> GateResult:
    """Apply a gate.

    Args:
        columns: Cells of every metric of the baseline (a) and of the run (b).

    Raises:
        ConfigError: If a rule names a metric that the run does not have, or that the rule cannot apply to, or if it is
            about slices by a column that does not divide the rows.

    >>> cells = {f"row {i}": Score.scored(0.9 if i % 3 else 0.7) for i in range(60)}
    >>> columns = [ScoreColumns(metric="faithfulness", direction=Direction.HIGHER, a={}, b=cells, bounds=(0, 1))]
    >>> rule = AbsoluteRule("faithfulness", Statistic.MEAN, Threshold(0.7))
    >>> check_gate(Gate(absolute=(rule,)), columns).outcome.value
    'passed'
    """
    testing = Testing(gate, seed, facts.judge_variances, facts.nights, facts.unknown_nights)
    parts = ColumnParts(facts.slices)
    drafts = [
        *(_corrected_draft(rule, columns, gate, facts.corrected) for rule in gate.absolute if _is_corrected(rule)),
        *(
            draft
            for rule in gate.absolute
            if not _is_corrected(rule)
            for draft in _absolute_drafts(rule, columns, parts, testing)
        ),
        *(draft for rule in gate.regression for draft in _regression_drafts(rule, columns, parts, testing)),
        *(draft for rule in gate.coverage for draft in _coverage_drafts(rule, columns, parts)),
    ]
    left_out: list[str] = []
    if gate.skips_small_slices:
        drafts, left_out = leave_out_small(drafts)
    checks = settle_all(drafts, gate)
    unsettled = [
        (draft.key or "", check.slice) for draft, check in zip(drafts, checks, strict=True) if check.is_unsettled
    ]
    if gate.judge is not None:
        checks = _apply_judge_rules(gate.judge, drafts, checks, columns, facts)
    return replace(GateResult.from_checks(checks, gate, left_out), unsettled=tuple(dict.fromkeys(unsettled)))


def _apply_judge_rules(
    rule: JudgeRule,
    drafts: Sequence[Draft],
    checks: Sequence[Check],
    columns: Sequence[ScoreColumns],
    facts: GateFacts,
) -> list[Check]:
    """Return the checks of the judges, then the others, which are inconclusive if their judge is not trusted."""
    keys = [draft.key for draft in drafts]
    compared = {draft.key for draft in drafts if draft.check.kind is RuleKind.REGRESSION}
    named = None if rule.metrics is None else [_resolve_metric(name, columns).metric for name in rule.metrics]
    metrics = [key for key in dict.fromkeys(keys if named is None else named) if key is not None]
    # The judge of the baseline matters only for rules that compare with the baseline.
    judges_of = {key: 2 if key in compared else 1 for key in metrics}
    agreements = {key: facts.agreements.get(key, ())[:number] for key, number in judges_of.items()}
    flips = {key: facts.flips.get(key, ())[:number] for key, number in judges_of.items()}
    judges = list(check_judge(rule, metrics, agreements, flips))
    untrusted = {check.metric for check in judges if check.outcome is not Outcome.PASSED}
    others = (distrust(check) if key in untrusted else check for key, check in zip(keys, checks, strict=True))
    return [*judges, *others]


def _is_corrected(rule: AbsoluteRule) -> bool:
    return rule.statistic is Statistic.CORRECTED


def _corrected_draft(
    rule: AbsoluteRule, columns: Sequence[ScoreColumns], gate: Gate, corrected: Mapping[str, CorrectedMean]
) -> Draft:
    """Return the draft of a rule about a bias-corrected mean, which allows for errors of the judge."""
    metric = _resolve_metric(rule.metric, columns).metric
    mean = corrected.get(metric)
    check = open_check(
        RuleKind.ABSOLUTE, metric, f"{rule.statistic} {rule.threshold}", 0 if mean is None else mean.rows
    )
    if mean is None:
        return Draft(replace(check, reason=NO_CORRECTION))
    finding = mean.check(rule.threshold, Confidence(gate.level, gate.looks))
    return Draft(check, finding, advice=partial(mean.advise, rule.threshold, gate.level))


def _absolute_drafts(
    rule: AbsoluteRule, columns: Sequence[ScoreColumns], parts: ColumnParts, testing: Testing
) -> Iterator[Draft]:
    is_each = rule.slices is not None and rule.slices.values is None
    for part, column in parts.select(rule.slices, _resolve_metric(rule.metric, columns)):
        if column.b or not is_each:  # a slice of the baseline alone is not one of the run
            yield from (
                name_slice(draft, part) for draft in _draft_scales(rule, column, testing, is_whole=part is None)
            )


def _draft_scales(rule: AbsoluteRule, column: ScoreColumns, testing: Testing, *, is_whole: bool) -> Iterator[Draft]:
    """Yield a draft per scale of the rows.

    Args:
        is_whole: True for all rows, False for those of a slice.
    """
    scored = {row: cell for row, cell in column.b.items() if cell.status == Status.SCORED}
    if any(cell.value is None for cell in scored.values()):
        raise ConfigError(f"the gate has a rule about {rule.metric}, whose values are categories, not numbers")
    by_scale: dict[str | None, list[str]] = {}
    for row in sorted(scored):
        by_scale.setdefault(scored[row].label, []).append(row)
    for scale, rows in sorted(by_scale.items(), key=lambda item: str(item[0])) or [(None, [])]:
        values = np.array([scored[row].value for row in rows], dtype=np.float64)
        check = open_check(RuleKind.ABSOLUTE, _label(column, scale), f"{rule.statistic} {rule.threshold}", len(rows))
        if rule.statistic not in _STATISTICS:
            bounds = Bounds.of_metric(column.bounds, scale)
            # Earlier nights are bets on one range, so it cannot be that of the values.
            has_nights = is_whole and scale is None and not (bounds is not None and bounds.is_open)
            bounds = None if bounds is None else bounds.close_at(values)
            variance = testing.judge_variances.get(column.metric)
            in_file = np.array([cell.value for cell in scored.values() if cell.label == scale], dtype=np.float64)
            tested = Measured(
                values,
                column.groups_of(rows),
                rule.threshold,
                bounds,
                rule.statistic,
                variance,
                is_serial(in_file),
                len(column.repeated.intersection(rows)),
                column.weights_of(rows),
                testing.nights_of(column.metric) if has_nights else NO_NIGHTS,
            )
            draft = draft_test(check, tested, testing)
        else:
            draft = decide_fact(check, _STATISTICS[rule.statistic](values) if rows else None, rule.threshold)
        yield replace(draft, key=column.metric)


def _regression_drafts(
    rule: RegressionRule, columns: Sequence[ScoreColumns], parts: ColumnParts, testing: Testing
) -> Iterator[Draft]:
    for whole in _regression_columns(rule, columns, testing.gate):
        for part, column in parts.select(rule.slices, whole):
            if whole.b:
                drafts = _draft_pairs(rule, column, testing)
                yield from (name_slice(draft, part) for draft in drafts)
            else:
                check = open_check(RuleKind.REGRESSION, column.metric, _drop_words(rule), 0)
                reason = "the run does not have this metric of the baseline"
                yield name_slice(Draft(replace(check, reason=reason)), part)


def _drop_words(rule: RegressionRule) -> str:
    return f"worse by {Threshold(rule.max_drop, is_floor=False)}"


def _draft_pairs(rule: RegressionRule, column: ScoreColumns, testing: Testing) -> Iterator[Draft]:
    """Yield a draft per scale of the rows scored in both runs."""
    threshold = Threshold(rule.max_drop, is_floor=False)
    check = open_check(RuleKind.REGRESSION, column.metric, _drop_words(rule), 0)
    paired = pair_scores(column)
    if not paired.pairs:
        yield Draft(replace(check, reason="no row is scored in both runs"), is_small=True)
    for pairs in paired.pairs:
        part = replace(check, metric=_label(column, pairs.scale), rows=len(pairs.rows))
        worsening = Measured(
            pairs.worsening(column.direction),
            pairs.groups,
            threshold,
            pairs.difference_bounds,
            judge=testing.judge_variances.get(column.metric),
            is_serial=is_serial(pairs.in_order(column.b, pairs.differences)),
            repeated=len(column.repeated.intersection(pairs.rows)),
            weights=pairs.weights,
        )
        missing = find_missing_scores(column, pairs, paired.counts, testing.seed)
        drop = rule.max_drop if column.direction is Direction.LOWER else -rule.max_drop
        yield replace(
            draft_test(part, worsening, testing),
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
    others = (other for other in gate.regression if other.slices == rule.slices)
    named = {_resolve_metric(name, columns).metric for other in others for name in other.metrics or ()}
    for column in columns:
        can_be_worse = column.direction is not Direction.NEITHER and not _has_categories(column.a)
        if _is_scored(column.a) and can_be_worse and column.metric not in named:
            yield column


def _coverage_drafts(rule: CoverageRule, columns: Sequence[ScoreColumns], parts: ColumnParts) -> Iterator[Draft]:
    is_each = rule.slices is not None and rule.slices.values is None
    for whole in _coverage_columns(rule, columns):
        for part, column in parts.select(rule.slices, whole):
            if (column.a if rule.count is Count.PAIRED else column.b) or not is_each:
                yield name_slice(_draft_coverage(rule, column), part)


def _draft_coverage(rule: CoverageRule, column: ScoreColumns) -> Draft:
    if rule.count is Count.PAIRED:
        rows = sum(cell.status == Status.SCORED for cell in column.a.values())
        counted = pair_scores(column).counts.paired
    else:
        rows = len(column.b)
        counted = sum(cell.status.value == rule.count.value for cell in column.b.values())
    check = open_check(RuleKind.COVERAGE, column.metric, f"share {rule.count} {rule.threshold}", rows)
    return decide_fact(check, counted / rows if rows else None, rule.threshold, f"{counted} of {rows} rows")


def _coverage_columns(rule: CoverageRule, columns: Sequence[ScoreColumns]) -> Iterable[ScoreColumns]:
    """Return the columns that a rule applies to: those it names, or all of the run (of the baseline for `PAIRED`)."""
    if rule.metrics is not None:
        return [_resolve_metric(name, columns) for name in rule.metrics]
    if rule.count is Count.PAIRED:
        return [column for column in columns if _is_scored(column.a)]
    return [column for column in columns if column.b]


def _label(column: ScoreColumns, scale: str | None) -> str:
    return column.metric if scale is None else f"{column.metric} on {scale}"


def _is_scored(cells: Mapping[str, Score]) -> bool:
    return any(cell.status == Status.SCORED for cell in cells.values())


def _has_categories(cells: Mapping[str, Score]) -> bool:
    return any(cell.status == Status.SCORED and cell.value is None for cell in cells.values())


def check_metric_names(gate: Gate, keys: Collection[str]) -> None:
    """Check that a run has every metric that a gate names.

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
