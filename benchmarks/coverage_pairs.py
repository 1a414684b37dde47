"""Measure tests, missing scores, detectable drops and serial order of two runs, for `benchmarks/coverage.py`."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from unittest.mock import patch

import numpy as np
from scipy.stats import binomtest, wilcoxon

from metric_core.records import Direction, Score
from metric_core.statistics import bounded_means, paired_tests
from metric_core.statistics.bounded_means import BoundedMean, Bounds
from metric_core.statistics.comparison import ChangeOutcome, compare_metrics
from metric_core.statistics.paired_tests import paired_test
from metric_core.statistics.pairs import Pairs, ScoreColumns
from metric_core.statistics.resampling import Floats, Units
from metric_core.statistics.sample_size import Moments, detectable_difference
from metric_core.statistics.serial_order import is_serial
from tasks.runtime.wording import format_percent
from tests.metric_core.statistics.worlds import DIFFERENCES, World

Lacks = Callable[[np.random.Generator, Floats, Floats], tuple[Floats, Floats]]

DRAWS = 999
SCORE = Bounds(0.0, 1.0)


@dataclass
class Share:
    """A share of runs, and the average width of their intervals."""

    hits: int = 0
    runs: int = 0
    width: float = 0.0

    def add(self, is_hit: bool, width: float = 0.0) -> None:
        """Count a run."""
        self.hits += is_hit
        self.runs += 1
        self.width += width

    def __str__(self) -> str:
        share = format_percent(self.hits / self.runs, 1)
        return f"{share} ({self.width / self.runs:.3f})" if self.width else share


def pair_tables(runs: int) -> Iterator[str]:
    """Yield tables of tests of two runs, with a fifth of the draws and a tenth of the permutations."""
    fewer = partial(BoundedMean, draws=DRAWS)
    with patch.object(bounded_means, "BoundedMean", fewer), patch.object(paired_tests, "_PERMUTATIONS", 999):
        yield from _pair_tables(runs)


def _pair_tables(runs: int) -> Iterator[str]:
    yield "### Tests of two runs of equal systems: p of at most 0.05 (nominal 5 %)\n\n"
    yield "| world | test | 30 rows | 100 rows | 300 rows |\n|---|---|---|---|---|\n"
    world = DIFFERENCES[4]
    cells = [p_values(world, size, runs) for size in (30, 100, 300)]
    for number, test in enumerate(("Wilcoxon signed-rank", "**sign permutation**")):
        yield f"| {world.name if not number else ''} | {test} | {' | '.join(str(cell[number]) for cell in cells)} |\n"
    yield "\n### Power: 0/1 scores, 20 % of rows fall and 5 % rise\n\n| test | 20 rows | 50 rows |\n|---|---|---|\n"
    powers = [mcnemar_power(size, runs) for size in (20, 50)]
    for number, test in enumerate(("McNemar, exact", "**McNemar, mid-p**")):
        yield f"| {test} | {' | '.join(str(cell[number]) for cell in powers)} |\n"
    yield "\n### Missing scores: B is called better\n\n"
    yield "| world | rule | 100 rows | 300 rows |\n|---|---|---|---|\n"
    for world, lacks in MISSING.items():
        missing = [missing_scores(lacks, size, runs) for size in (100, 300)]
        for number, rule in enumerate(("paired rows alone", "**undecided if missing scores can explain it**")):
            yield f"| {'' if number else world} | {rule} | {' | '.join(str(cell[number]) for cell in missing)} |\n"


def p_values(world: World, size: int, runs: int) -> list[Share]:
    """Return how often tests find a difference: Wilcoxon, sign permutation."""
    generator = np.random.default_rng([13, size])
    shares = [Share(), Share()]
    for seed in range(runs):
        values = world.draw(generator, size) - world.mean
        shares[0].add(wilcoxon(values[values != 0], method="asymptotic").pvalue <= 0.05)
        shares[1].add(paired_test(_pairs(values), seed).p <= 0.05)
    return shares


def mcnemar_power(size: int, runs: int) -> list[Share]:
    """Return how often tests find a fall: exact, mid-p."""
    generator = np.random.default_rng([17, size])
    shares = [Share(), Share()]
    for seed in range(runs):
        values = generator.choice([-1.0, 0.0, 1.0], size, p=[0.2, 0.75, 0.05])
        fell, changed = int((values < 0).sum()), int((values != 0).sum())
        shares[0].add(bool(changed) and binomtest(fell, changed).pvalue <= 0.05)
        a = (values < 0) * 1.0
        shares[1].add(paired_test(Pairs(None, tuple(map(str, range(size))), a, a + values, None), seed).p <= 0.05)
    return shares


def missing_scores(lacks: Lacks, size: int, runs: int) -> list[Share]:
    """Return how often a run is called better than another, if some scores of both are missing."""
    generator = np.random.default_rng([19, size])
    shares = [Share(), Share()]
    for seed in range(runs):
        quality = generator.beta(2, 2, size)
        a, b = (np.clip(quality + generator.normal(0, 0.2, size), 0, 1) for _ in range(2))
        a, b = lacks(generator, a, b)
        cells = [
            {
                f"{row:04}": Score.failed("no usable reply") if np.isnan(value) else Score.scored(float(value))
                for row, value in enumerate(values)
            }
            for values in (a, b)
        ]
        columns = ScoreColumns(metric="m", direction=Direction.HIGHER, a=cells[0], b=cells[1], bounds=(0.0, 1.0))
        [found] = compare_metrics([columns], seed)
        shares[1].add(found.verdict is ChangeOutcome.BETTER)
        shares[0].add(found.verdict in {ChangeOutcome.BETTER, ChangeOutcome.UNDECIDED})
    return shares


def _lose(generator: np.random.Generator, values: Floats, part: Floats, share: float = 0.5) -> Floats:
    """Return the values without a share of a part of them."""
    return np.where(part.astype(bool) & (generator.random(len(values)) < share), np.nan, values)


def _low(values: Floats) -> Floats:
    return values <= np.quantile(values, 0.34)


MISSING: dict[str, Lacks] = {
    "equal systems, B lacks 17 %, low ones": lambda g, a, b: (a, _lose(g, b, _low(b))),
    "equal systems, A lacks 17 %, high ones, and B 17 %, low ones": lambda g, a, b: (
        _lose(g, a, _low(-a)),
        _lose(g, b, _low(b)),
    ),
    "equal systems, both lack 17 %, low ones": lambda g, a, b: (_lose(g, a, _low(a)), _lose(g, b, _low(b))),
    "B is better by 0.1 (right), both lack 15 % by chance": lambda g, a, b: (
        _lose(g, a, np.ones(len(a)), 0.15),
        _lose(g, np.minimum(b + 0.1, 1.0), np.ones(len(b)), 0.15),
    ),
}
"""Worlds of missing scores: NaN for those that are missing."""


def _drop_binary(noise: float, drop: float, generator: np.random.Generator, size: int) -> Floats:
    return generator.choice([-1.0, 0.0, 1.0], size, p=[noise + drop, 1 - 2 * noise - drop, noise])


DROPS: dict[str, Callable[[float, np.random.Generator, int], Floats]] = {
    "0/1, 5 % of rows rise and 5 % fall": lambda drop, g, n: _drop_binary(0.05, drop, g, n),
    "0/1, 1 % of rows rise and 1 % fall": lambda drop, g, n: _drop_binary(0.01, drop, g, n),
    "normal, deviation 0.3, all rows fall alike": lambda drop, g, n: np.clip(g.normal(-drop, 0.3, n), -1, 1),
}
"""Differences of two runs, by the true drop."""


def detectable_table(runs: int) -> Iterator[str]:
    """Yield a table of how often a drop is found that comparisons of equal systems call detectable."""
    yield "\n### Detectable drops (median of 100 comparisons of equal systems, in parentheses): found (80 %)\n\n"
    yield "| differences | metrics | 50 rows | 100 rows | 300 rows |\n|---|---|---|---|---|\n"
    for name, draw in DROPS.items():
        for metrics in (1, 11):
            cells = " | ".join(detectable(draw, size, metrics, runs) for size in (50, 100, 300))
            yield f"| {name} | {metrics} | {cells} |\n"


def detectable(draw: Callable[[float, np.random.Generator, int], Floats], size: int, metrics: int, runs: int) -> str:
    """Return how often a detectable drop is found, and the drop."""
    generator, bounds, share = np.random.default_rng([29, size]), SCORE.of_differences, Share()
    drops = []
    for _ in range(100):
        values = draw(0.0, generator, size)
        moments = Moments.of_differences(Units.from_values(values), values, bounds)
        drops.append(detectable_difference(moments, size, bounds, metrics) or 1.0)
    drop = float(np.median(drops))
    for seed in range(runs):
        values = draw(drop, generator, size)
        binary = np.isin(values, (-1.0, 0.0, 1.0)).all()
        a = (values < 0) * 1.0 if binary else np.zeros(size)
        p = paired_test(Pairs(None, tuple(map(str, range(size))), a, a + values, None), seed).p
        found = p * metrics <= 0.05
        share.add(bool(found and BoundedMean(Units.from_values(values), bounds, seed, draws=DRAWS).interval().high < 0))
    return f"{share} ({drop:.3f})"


def serial_table(runs: int) -> Iterator[str]:
    """Yield a table of how often rows are said to be in serial order."""
    yield "\n### Rows in serial order: called so (independent rows: at most 0.1 %)\n\n"
    yield "| correlation of consecutive rows | scores | 100 rows | 300 rows |\n|---|---|---|---|\n"
    for correlation in (0.0, 0.2, 0.5, 0.8):
        for name, cut in (("normal", None), ("0/1, mean 0.9", 1.2816), ("0/1, mean 0.5", 0.0)):
            cells = " | ".join(str(serial(correlation, cut, size, runs)) for size in (100, 300))
            yield f"| {correlation:g} | {name} | {cells} |\n"


def serial(correlation: float, cut: float | None, size: int, runs: int) -> Share:
    """Return how often rows are called serial; scores are 1 below the cut."""
    generator, share = np.random.default_rng([31, size]), Share()
    for _ in range(runs):
        values = generator.standard_normal(size)
        for row in range(1, size):
            values[row] = correlation * values[row - 1] + np.sqrt(1 - correlation**2) * values[row]
        share.add(is_serial(values if cut is None else (values < cut).astype(np.float64)))
    return share


def _pairs(values: Floats) -> Pairs:
    return Pairs(None, tuple(map(str, range(len(values)))), np.zeros(len(values)), values, None)
