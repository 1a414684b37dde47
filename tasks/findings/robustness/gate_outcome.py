"""Find out what the outcome of a gate hangs on.

Only what moves a mean by about as much as its rule needs is left out for another decision of the whole gate. Rules
about coverage, corrected means and the judge stay as they are, since no row moves a mean of theirs.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from metric_core.gates.rules import Check, GateResult, Outcome, RuleKind, Statistic, Threshold
from metric_core.records import Status
from metric_core.statistics.pairs import Pairs, ScoreColumns
from metric_core.statistics.resampling import Floats
from metric_core.statistics.robustness import (
    OutcomeWithout,
    Part,
    Robustness,
    SecondOpinion,
    few_rows,
    fewest_rows,
    turning_parts,
)
from metric_core.statistics.second_judge import judge_columns
from tasks.findings.comparison import CheckedGate, ComparedRows
from tasks.findings.robustness.row_parts import leave_out
from tasks.findings.robustness.second_verdicts import SecondVerdicts

_ENOUGH = 0.7
"""Share of the way to another outcome of a rule from which on the gate is applied again."""
_QUANTILES = tuple(str(statistic) for statistic in Statistic if statistic.share is not None)
_LEAST_WAY = 1e-9
_MOST_ORDERS = 4


@dataclass(frozen=True)
class TestedRows:
    """The rows that a rule is about.

    Args:
        metric: Key of the metric.
        are_changes: True if the values are changes from a baseline.
        outcome: Outcome of the rule.
        places: Name of a row -> its place.
        values: Values of the rows: the higher, the nearer is the rule to being met.
        weights: Weight of each row.
        down: Distance that the mean has to fall for a worse outcome.
        up: Distance that it has to rise for a better one.
    """

    __test__ = False

    metric: str
    are_changes: bool
    outcome: Outcome
    places: dict[str, int]
    values: Floats
    weights: Floats
    down: float
    up: float

    @property
    def pulls(self) -> Floats:
        """Weighted distance of each row above the mean."""
        pulls: Floats = self.weights * (self.values - np.average(self.values, weights=self.weights))
        return pulls

    def ways(self, left_out: Collection[str]) -> tuple[float, float]:
        """Return which shares of the ways down and up the mean goes without some rows."""
        out = [self.places[row] for row in left_out if row in self.places]
        if not out or len(out) == len(self.values):
            return 0.0, 0.0
        shift = -float(self.pulls[out].sum() / (self.weights.sum() - self.weights[out].sum()))
        return -shift / max(self.down, _LEAST_WAY), shift / max(self.up, _LEAST_WAY)


@dataclass(frozen=True)
class GateRules:
    """The rules that decide a gate.

    Args:
        worst: The most severe outcome of a rule.
        tested: Rules about means and quantiles.
        rising: Those that all have to get better for a better outcome of the gate; empty if others have to, too.
    """

    worst: Outcome
    tested: Sequence[TestedRows]
    rising: Sequence[TestedRows]

    @classmethod
    def from_rules(cls, rows: ComparedRows, result: GateResult) -> "GateRules":
        """Return the rules of a gate with its result."""
        tested = list(_tested_rows(rows, result))
        worst = max((check.outcome for check in result.checks), key=list(Outcome).index)
        rising = [each for each in tested if each.outcome is worst]
        is_alone = len(rising) == sum(check.outcome is worst for check in result.checks)
        return cls(worst, tested, rising if is_alone and worst is not Outcome.PASSED else [])

    def way(self, left_out: Collection[str]) -> float:
        """Return which share of the way to another outcome the gate goes without some rows."""
        up = min((each.ways(left_out)[1] for each in self.rising), default=0.0)
        down = 0.0 if self.worst is Outcome.FAILED else max(each.ways(left_out)[0] for each in self.tested)
        return max(up, down)

    def ways_of(self, rule: TestedRows) -> tuple[float, float]:
        """Return how far the mean of a rule has to fall, and to rise, for another outcome of the gate."""
        down = np.inf if self.worst is Outcome.FAILED else rule.down
        return down, rule.up if any(each is rule for each in self.rising) else np.inf

    def orders(self, few: int) -> list[list[str]]:
        """Return a few rows for each way to another outcome, those that count most first."""
        found = []
        for each in self.tested if self.worst is not Outcome.FAILED else ():
            names = list(each.places)
            found.append([names[place] for place in np.argsort(-each.pulls, kind="stable")[:few]])
        pulls: dict[str, float] = {}
        for each in self.rising:
            away = -each.pulls / max(each.up, _LEAST_WAY)
            for row, place in each.places.items():
                pulls[row] = pulls.get(row, 0.0) + float(away[place])
        return [*found, sorted(pulls, key=lambda row: -pulls[row])[:few]] if pulls else found


def check_gate_outcome(
    rows: ComparedRows, gate: CheckedGate, parts: Sequence[Part], second: SecondVerdicts | None
) -> Robustness | None:
    """Return what the outcome of a gate hangs on; None if no rule tests a mean or a quantile.

    Args:
        parts: Rows by topic, document or group.
        second: Scores of a second judge; None without any.
    """
    rules, count, outcome = GateRules.from_rules(rows, gate.result), len(rows.pair.b.keys), gate.result.outcome
    if not rules.tested or count < 2:
        return None
    few = min(few_rows(count), count - 1)
    named = {check.metric.partition(" on ")[0] for check in gate.result.checks}

    def decide(left_out: Collection[str]) -> str:
        columns = [leave_out(each, left_out) if each.metric in named else each for each in rows.columns]
        return gate.check(columns).outcome

    sliced = {check.slice.column for check in gate.result.checks if check.slice is not None}
    chosen = [part for part in parts if 2 * len(part.rows) <= count and not _is_of(part, sliced)]
    likely = [(way, part) for part in chosen if (way := rules.way(part.rows)) >= _ENOUGH]
    return Robustness(
        outcome=outcome,
        few=few,
        rows=_turning_rows(rules, few, outcome, decide),
        parts=turning_parts(likely, outcome, decide),
        has_parts=bool(chosen),
        by_judge=_by_judge(gate, rules.worst),
        second=None if second is None else _ask_second(rows, gate, named, second),
    )


def _ask_second(
    rows: ComparedRows, gate: CheckedGate, named: Collection[str], second: SecondVerdicts
) -> SecondOpinion | None:
    """Return the outcome of a gate with the scores of a second judge; None without any about its metrics."""
    asked = [metric for metric in second.scores if metric in named]
    columns = [
        judge_columns(column, _pairs(rows, column.metric), second.scores[column.metric])
        if column.metric in asked
        else column
        for column in rows.columns
    ]
    return second.give_opinion(asked, lambda: gate.check(columns).outcome is not gate.result.outcome)


def _pairs(rows: ComparedRows, metric: str) -> Sequence[Pairs]:
    return rows.paired[metric].paired.pairs if metric in rows.paired else ()


def _is_of(part: Part, columns: Collection[str]) -> bool:
    """Return whether a part is a slice of one of some columns: a rule about it would have nothing to test."""
    return any(part.name.startswith(f"{column} ") for column in columns)


def _turning_rows(rules: GateRules, few: int, outcome: str, decide: OutcomeWithout) -> tuple[str, ...]:
    """Return the fewest rows without which a gate has another outcome; none if it stays."""
    found: tuple[str, ...] = ()
    ways = sorted(((rules.way(order), order) for order in rules.orders(few)), key=lambda each: -each[0])
    for way, order in ways[:_MOST_ORDERS]:
        if way >= _ENOUGH:
            turned = fewest_rows(order, outcome, decide, max(1, int(few / way)))
            found = min((each for each in (found, turned) if each), key=len, default=())
    return found


def _by_judge(gate: CheckedGate, worst: Outcome) -> bool | None:
    """Return whether the gate may have another outcome if the judge is asked again; None if that is not known."""
    checks = gate.result.checks
    is_failed = any(check.outcome is Outcome.FAILED and not check.is_unsettled for check in checks)
    if any(check.is_unsettled for check in checks) and not (worst is Outcome.FAILED and is_failed):
        return True
    return False if gate.is_judge_known else None


def _tested_rows(rows: ComparedRows, result: GateResult) -> Iterator[TestedRows]:
    slices = {each.column: each.values for each in rows.pair.slices}
    for check in result.checks:
        if check.threshold is None:
            continue
        name, _, scale = check.metric.partition(" on ")
        column = next(each for each in rows.columns if each.metric == name)
        values = dict(_values(rows, column, scale or None, check))
        if check.slice is not None:
            of = slices[check.slice.column]
            values = {row: value for row, value in values.items() if of.get(row) == check.slice.value}
        if values:
            weights = column.weights_of(values)
            yield _measure(check, check.threshold, values, np.ones(len(values)) if weights is None else weights)


def _values(rows: ComparedRows, column: ScoreColumns, scale: str | None, check: Check) -> Iterator[tuple[str, float]]:
    """Yield the values of rows that a rule tests."""
    if check.kind is RuleKind.ABSOLUTE:
        for row, cell in column.b.items():
            if cell.status is Status.SCORED and cell.value is not None and cell.label == scale:
                yield row, cell.value
        return
    pairs, _ = rows.paired[column.metric].on_scale(scale)
    yield from zip(pairs.rows, map(float, pairs.worsening(column.direction)), strict=True)


def _measure(check: Check, threshold: Threshold, values: dict[str, float], weights: Floats) -> TestedRows:
    """Return the rows of a rule, and how far it is from other outcomes."""
    sign = 1.0 if threshold.is_floor else -1.0
    numbers = sign * np.array(list(values.values()))
    down = up = 0.0
    if check.interval is not None and not check.rule.startswith(_QUANTILES):
        low, high = sorted((sign * check.interval.low, sign * check.interval.high))
        wanted = sign * threshold.value
        ways = {
            Outcome.PASSED: (low - wanted, np.inf),
            Outcome.INCONCLUSIVE: (high - wanted, wanted - low),
            Outcome.FAILED: (np.inf, wanted - high),
        }
        down, up = ways[check.outcome]
    return TestedRows(
        metric=check.metric.partition(" on ")[0],
        are_changes=check.kind is not RuleKind.ABSOLUTE,
        outcome=check.outcome,
        places={row: place for place, row in enumerate(values)},
        values=numbers,
        weights=weights,
        down=down,
        up=up,
    )
