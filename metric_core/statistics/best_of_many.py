"""Rank several runs over the rows that all have, and find those that chance cannot tell from the best.

A run leaves the set of the best only if another run beats it by more than chance. The test takes the largest lead over
it of all other runs at once (multiple comparisons with the best; Hsu, "Constrained Simultaneous Confidence Intervals
for Multiple Comparisons with the Best", 1984). So whichever run is truly best stays in the set in 95 of 100 cases,
however many runs there are. The leads are differences of the same rows: what makes a row hard for all runs cancels out.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from metric_core.statistics.bounded_means import BoundedMean, Bounds, are_enough
from metric_core.statistics.resampling import LEVEL, SEED, Floats, Units

_DRAWS = 30_000
_PERMUTATIONS = 9_999
_MOST_UNITS = 1_000
"""Number of rows or groups above which leads under random signs are drawn from the limit of their distribution."""
_MOST_CELLS = 100_000_000
"""Number of weights to draw, above which each lead has its own interval, from the limit of its distribution."""
_BATCH_CELLS = 2_000_000
_ROUNDING, _DECIMALS = 1e-12, 12


@dataclass(frozen=True, slots=True)
class RankedRun:
    """A run among several.

    Args:
        mean: Mean over the rows that all runs have.
        behind: Difference to the highest mean, at least 0.
        at_most: Upper limit of how far the run truly is behind the best, for all runs at once; None for too few rows.
        p: P-value of "no run is better": that of the largest lead over it.
        may_be_best: True if chance cannot tell the run from the best.
        beaten_by: Position of the run that beats it most clearly; None if it may be the best.
    """

    mean: float
    behind: float
    at_most: float | None
    p: float
    may_be_best: bool
    beaten_by: int | None = None


@dataclass(frozen=True, slots=True)
class Ranking:
    """Runs compared with the best of them.

    Args:
        runs: The runs, in the order in which they were given.
        rows: Number of rows.
        groups: Number of groups of rows; None if rows are not grouped.
        luck: Amount by which chance alone would lift the highest mean of as many runs that are truly equal.
        is_decided: False for too few rows or groups, or a metric without bounds: then every run may be the best.
    """

    runs: tuple[RankedRun, ...]
    rows: int
    groups: int | None
    luck: float
    is_decided: bool

    @property
    def leader(self) -> int:
        """Position of the run with the highest mean."""
        return min(range(len(self.runs)), key=lambda place: self.runs[place].behind)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunValues:
    """Values of a metric in several runs.

    Args:
        values: Value of each row in each run, as rows x runs, of at least two runs.
        bounds: Bounds of the values; None if there are none.
        groups: Name of the group of each row; None if rows are not grouped.
        weights: Weight of each row; None if each counts once.
    """

    values: Floats
    bounds: Bounds | None
    lower_is_better: bool = False
    groups: Sequence[str] | None = None
    weights: Floats | None = None

    def units(self) -> list[Units]:
        """Return the units of each run; a higher value is better."""
        sign = -1.0 if self.lower_is_better else 1.0
        return [Units.from_values(sign * run, self.groups, self.weights) for run in self.values.T]


def rank_runs(runs: RunValues, error: float = 1 - LEVEL, seed: int = SEED) -> Ranking:
    """Rank runs by their means.

    Args:
        error: Chance that the truly best run is not among those that may be the best.

    >>> good, bad = np.tile([1.0, 1.0, 1.0, 0.0], 15), np.tile([1.0, 0.0, 0.0, 0.0], 15)
    >>> found = rank_runs(RunValues(values=np.column_stack([bad, good, good]), bounds=Bounds(0.0, 1.0)))
    >>> [run.may_be_best for run in found.runs], found.runs[0].behind, found.runs[0].beaten_by
    ([False, True, True], 0.5, 1)
    """
    columns, bounds = runs.units(), runs.bounds
    sums, counts = np.column_stack([column.sums for column in columns]), columns[0].counts
    means = sums.sum(axis=0) / counts.sum()
    is_decided = bounds is not None and are_enough(columns[0])
    p, beaten_by = np.ones(len(means)), np.zeros(len(means), dtype=int)
    at_most = np.zeros(len(means))
    if is_decided and bounds is not None:
        p, beaten_by = _test_leads(sums, seed)
        limits = _limit_leads(sums, counts, bounds.around(runs.values).of_differences.high, error, seed)
        np.fill_diagonal(limits, 0.0)
        at_most = np.maximum(limits[p > error].max(axis=0), 0.0)
    ranked = tuple(
        RankedRun(
            mean=columns[place].mean * (-1 if runs.lower_is_better else 1),
            behind=float(means.max() - means[place]),
            at_most=float(at_most[place]) if is_decided else None,
            p=float(p[place]),
            may_be_best=bool(p[place] > error),
            beaten_by=None if p[place] > error else int(beaten_by[place]),
        )
        for place in range(len(means))
    )
    luck = _expect_luck(sums, counts, seed)
    return Ranking(ranked, len(runs.values), None if runs.groups is None else len(counts), luck, is_decided)


def _test_leads(sums: Floats, seed: int) -> tuple[Floats, NDArray[np.intp]]:
    """Return the p-value of "no run is better" of each run, and the run with the largest lead over it.

    A lead is measured in units of its own spread, and compared with the largest one under random signs of the
    differences, which are the same for all runs, so runs with much the same answers count as hardly more than one.

    Args:
        sums: Sum of each unit in each run.
    """
    values = sums - sums.mean(axis=1, keepdims=True)
    generator = np.random.default_rng(seed)
    if len(values) > _MOST_UNITS:
        scatter = values.T @ values
        drawn = generator.multivariate_normal(np.zeros(len(scatter)), scatter, _PERMUTATIONS, method="eigh")
    else:
        signs = generator.integers(0, 2, size=(_PERMUTATIONS, len(values)), dtype=np.int8)
        drawn = (2.0 * signs - 1.0) @ values
    p, first = np.ones(values.shape[1]), np.zeros(values.shape[1], dtype=np.intp)
    for run in range(values.shape[1]):
        ahead = np.round(values - values[:, [run]], _DECIMALS)
        size = np.sqrt((ahead**2).sum(axis=0))
        others = np.flatnonzero(size)
        if len(others):
            leads = ahead.sum(axis=0)[others] / size[others]
            largest = ((drawn[:, others] - drawn[:, [run]]) / size[others]).max(axis=1)
            p[run] = (1 + (largest >= leads.max() - _ROUNDING).sum()) / (1 + _PERMUTATIONS)
            first[run] = others[leads.argmax()]
    return p, first


def _limit_leads(sums: Floats, counts: Floats, reach: float, error: float, seed: int) -> Floats:
    """Return the upper limit of the lead of each run over each other one: the end of its interval, by shared draws.

    Args:
        sums: Sum of each unit in each run.
        reach: Greatest possible difference of two values.
        error: Chance that the lead of a run over any other one lies above its limit.
    """
    units, runs = sums.shape
    tail = error / (runs - 1)
    if units * _DRAWS > _MOST_CELLS:
        pairs = [[Units(sums[:, i] - sums[:, j], counts) for j in range(runs)] for i in range(runs)]
        ends = Bounds(-reach, reach)
        return np.array([[BoundedMean(one, ends, seed).interval(1 - 2 * tail).high for one in row] for row in pairs])
    size = float(np.sqrt((counts**2).mean()))  # of the units at both ends of the range that were not seen
    generator, batch = np.random.default_rng(seed), max(1, _BATCH_CELLS // units)
    parts = []
    for start in range(0, _DRAWS, batch):
        drawn = generator.standard_exponential((min(batch, _DRAWS - start), units))
        ends_drawn = size * generator.standard_gamma(0.5, (len(drawn), 2))
        total = drawn @ counts + ends_drawn.sum(axis=1)
        pull = reach * (ends_drawn[:, 1] - ends_drawn[:, 0])
        parts.append(np.column_stack([drawn @ sums, pull]) / total[:, None])
    means = np.concatenate(parts)
    level = Units(sums[:, 0], counts).widen_tail(1 - tail)
    ahead = means[:, :-1] + means[:, -1:]
    return np.array([np.quantile(ahead[:, [run]] - means[:, :-1], level, axis=0) for run in range(runs)])


def _expect_luck(sums: Floats, counts: Floats, seed: int = SEED) -> float:
    """Return how far chance lifts the highest of the means above the truth, if the runs are truly equal.

    Rows are drawn again with replacement: near the end of the range, chance has less room upwards than downwards.

    >>> noise = np.random.default_rng(1).standard_normal((400, 2))  # two means with a standard error of 0.05
    >>> round(_expect_luck(noise, np.ones(400)), 2)
    0.03
    """
    means, units = sums.sum(axis=0) / counts.sum(), len(counts)
    pull = (sums - counts[:, None] * means) / counts.sum() * np.sqrt(units / max(units - 1, 1))
    if np.abs(pull).max() < _ROUNDING:
        return 0.0
    generator = np.random.default_rng(seed)
    if units > _MOST_UNITS:
        drawn = generator.multivariate_normal(np.zeros(len(means)), pull.T @ pull, _PERMUTATIONS, method="eigh")
    else:
        drawn = generator.multinomial(units, np.full(units, 1 / units), size=_PERMUTATIONS) @ pull
    return float(drawn.max(axis=1).mean())
