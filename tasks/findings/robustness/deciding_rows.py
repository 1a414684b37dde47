"""Choose the rows on which outcomes hang, for a second judge."""

from collections.abc import Collection, Iterator

import numpy as np

from metric_core.stages import Stage
from metric_core.statistics.resampling import Floats
from metric_core.statistics.second_judge import Candidates, choose_rows, most_rows, order_by_change
from tasks.comparison.run_pair import RunRows
from tasks.findings.comparison import ComparedRows
from tasks.findings.robustness.compared_outcomes import decided_differences
from tasks.findings.robustness.gate_outcome import GateRules, TestedRows
from tasks.runs.row_grouping import ROW_ID

_ENOUGH = 0.7
"""Share of the way to another outcome of a rule that the rows must be able to go."""


def choose_deciding_rows(rows: ComparedRows, metrics: Collection[str]) -> dict[str, list[str]]:
    """Return metric -> names of the rows that could change an outcome, at most a tenth of all rows.

    Args:
        metrics: Keys of the metrics that a judge scores.
    """
    most = most_rows(len(rows.pair.b.keys))
    candidates = [*_of_comparison(rows), *_of_gate(rows, most)]
    return choose_rows([each for each in candidates if each.metric in metrics and each.rows], most)


def _of_comparison(rows: ComparedRows) -> Iterator[Candidates]:
    """Yield the rows whose score changed, for each outcome that could be another without some of the changes."""
    for number, decided in decided_differences(rows):
        if decided.may_turn():
            compared = rows.metrics[number]
            yield Candidates(compared.metric, order_by_change(rows.pairs_of(compared)[0]))


def _of_gate(rows: ComparedRows, most: int) -> Iterator[Candidates]:
    """Yield the rows of each rule that could change the outcome of the gate.

    Args:
        most: Largest number of rows.
    """
    if rows.gate is None:
        return
    rules, unsure = GateRules.from_rules(rows, rows.gate.result), dict[str, float]()
    for rule in rules.tested:
        names, (down, up) = [*rule.places], rules.ways_of(rule)
        if rule.are_changes:
            changed = [names[place] for place in np.argsort(rule.values, kind="stable") if rule.values[place]]
            falls, rises = np.maximum(rule.values, 0.0), np.maximum(-rule.values, 0.0)
            if _reaches(rule, falls, down, len(names)) or _reaches(rule, rises, up, len(names)):
                yield Candidates(rule.metric, changed)
            continue
        unsure = unsure or _unsure_rows(rows.pair.b)
        falls, rises = rule.values - rule.values.min(), rule.values.max() - rule.values
        chosen = np.zeros(len(names), dtype=bool)
        for moves, way in ((falls, down), (rises, up)):
            if _reaches(rule, moves, way, most):
                chosen |= moves > 0
        pulls = np.abs(rule.pulls)
        order = sorted((unsure.get(names[place], 0.5), -pulls[place], place) for place in np.flatnonzero(chosen))
        yield Candidates(rule.metric, [names[place] for _, _, place in order], are_even=False)


def _reaches(rule: TestedRows, moves: Floats, way: float, most: int) -> bool:
    """Return whether so many rows could move the mean of a rule far enough."""
    largest = np.sort(rule.weights * moves)[::-1][:most]
    return bool(largest.sum() / rule.weights.sum() >= _ENOUGH * way)


def _unsure_rows(rows: RunRows) -> dict[str, float]:
    """Return how far from one half the least certain verdict about each row is; none without probabilities."""
    table = rows.run.rows(Stage.VERDICTS, rows.keys)
    found: dict[str, float] = {}
    for row, probability in zip(table[ROW_ID].to_pylist(), table["probability"].to_pylist(), strict=True):
        if probability is not None:
            name = rows.keys[row]
            found[name] = min(found.get(name, 0.5), abs(probability - 0.5))
    return found
