"""Measure tests, missing scores, detectable drops and serial order of two runs, for `benchmarks/coverage.py`."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from unittest.mock import patch

import numpy as np
from scipy.special import betainc
from scipy.stats import binomtest, wilcoxon

from metric_core.records import Direction, Score
from metric_core.statistics import bounded_means, paired_tests
from metric_core.statistics.bounded_means import BoundedMean, Bounds
from metric_core.statistics.comparison import ChangeOutcome, compare_metrics
from metric_core.statistics.nightly_bets import Night, p_of_nights
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
        yield from earlier_table(runs // 2)
    yield from new_rows_table(runs // 2)


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


ROWS, BEFORE = 300, 9


@dataclass(frozen=True)
class Nights:
    """Nights of an evaluation of 300 rows, nine before the two that are compared.

    Args:
        name: Name in the table.
        score: Function from a generator to a function that draws the scores of a night.
        drop: True drop of the last night.
        shift: Shift that all rows share on Saturdays and Sundays; the last night is a Saturday.
        deviation: Standard deviation of a shift that all rows of a night share.
        offset: Shift of the night that is compared with, for good.
    """

    name: str
    score: Callable[[np.random.Generator], Callable[[], Floats]]
    drop: float = 0.0
    shift: float = 0.0
    deviation: float = 0.0
    offset: float = 0.0

    def draw(self, generator: np.random.Generator) -> Floats:
        """Return the scores as nights x rows."""
        score, nights = self.score(generator), BEFORE + 2
        values = np.array([score() for _ in range(nights)])
        days = np.arange(5 - nights + 1, 6) % 7
        moved = generator.normal(0, self.deviation, nights) + np.where(days >= 5, self.shift, 0.0)
        moved[-2:] += self.offset
        falls = generator.random(ROWS) < self.drop / max(float(values[-1].mean()), 0.1)
        values[-1] = np.where(falls, 0.0, values[-1])
        return np.clip(values + moved[:, None], 0, 1) if moved.any() else values


def _unsure(generator: np.random.Generator) -> Callable[[], Floats]:
    """Draw scores of 0 and 1, a sixth of which come out either way."""
    chance = generator.choice([0.0, 0.5, 1.0], ROWS, p=[0.17, 0.17, 0.66])
    return lambda: (generator.random(ROWS) < chance) * 1.0


def _lasting(generator: np.random.Generator) -> Callable[[], Floats]:
    """Draw scores of 0 and 1, a fifth of which are answered again every night."""
    chance, scores = generator.beta(3, 0.6, ROWS), np.empty(0)

    def draw() -> Floats:
        nonlocal scores
        new = (generator.random(ROWS) < chance) * 1.0
        scores = np.where(generator.random(ROWS) < 0.2, new, scores) if len(scores) else new
        return scores

    return draw


def _graded(generator: np.random.Generator) -> Callable[[], Floats]:
    """Draw scores that vary by 0.11 around the level of their row."""
    level = generator.beta(4, 2, ROWS) * 0.6 + 0.2
    return lambda: level + generator.normal(0, 0.11, ROWS)


NIGHTS = (
    Nights("0/1, a sixth of the rows come out either way", _unsure),
    Nights("the same, a drop of 0.037", _unsure, drop=0.037),
    Nights("0/1, a fifth of the rows are answered again", _lasting),
    Nights("the same, a drop of 0.037", _lasting, drop=0.037),
    Nights("graded", _graded),
    Nights("graded, all rows fall by 0.01 at weekends", _graded, shift=-0.01),
    Nights("graded, all rows fall by 0.02 at weekends", _graded, shift=-0.02),
    Nights("graded, all rows of a night move by 0.01", _graded, deviation=0.01),
    Nights("graded, all rows of a night move by 0.02", _graded, deviation=0.02),
    Nights("the same, a drop of 0.04", _graded, drop=0.04, deviation=0.01),
    Nights("graded, A and B are lower by 0.01 than the runs before", _graded, offset=-0.01),
    Nights("graded, A and B are lower by 0.02 than the runs before", _graded, offset=-0.02),
)


def earlier_table(runs: int) -> Iterator[str]:
    """Yield a table of comparisons that know nine runs before the baseline."""
    yield "\n### Two runs of 300 rows, alone and with nine runs before A\n\n"
    yield "Called better or worse, and intervals that hold the true difference (95 %) with their width.\n\n"
    yield f"| nights | called, alone | interval | **called, with nine runs** | **interval** |\n|{'---|' * 5}\n"
    for number, world in enumerate(NIGHTS):
        cells = [earlier_runs(world, before, number, runs) for before in (0, BEFORE)]
        yield f"| {world.name} | {' | '.join(f'{called} | {holds}' for called, holds in cells)} |\n"


def earlier_runs(world: Nights, before: int, number: int, runs: int) -> tuple[Share, Share]:
    """Return how often two runs are called different, and how often the interval holds the difference."""
    called, holds = Share(), Share()
    for seed in range(runs):
        values = world.draw(np.random.default_rng([211, number, seed]))[BEFORE - before :]
        cells = [{f"{row:03}": Score.scored(float(value)) for row, value in enumerate(night)} for night in values]
        *known, a, b = cells
        columns = ScoreColumns(metric="m", direction=Direction.HIGHER, a=a, b=b, bounds=(0.0, 1.0), earlier=known)
        [found] = compare_metrics([columns], seed)
        assert found.difference is not None
        assert found.difference.interval is not None
        ends = found.difference.interval
        called.add(found.verdict in {ChangeOutcome.BETTER, ChangeOutcome.WORSE})
        holds.add(ends.low <= -world.drop <= ends.high, ends.high - ends.low)
    return called, holds


def new_rows_table(runs: int) -> Iterator[str]:
    """Yield a table of a gate over nights of new rows."""
    yield "\n### A gate at 0.9 over nights of 200 new rows, `looks = 366`: it has failed\n\n"
    yield "| true mean | nights | each night alone | **nights together** |\n|---|---|---|---|\n"
    worlds = (("0.85", (0.85,) * 5), ("0.95 for 60 nights, then 0.85", (0.95,) * 60 + (0.85,) * 5))
    for name, means in worlds:
        shares = [Share(), Share()]
        for seed in range(runs):
            for share, p in zip(shares, _nightly_p(means, 0.0, seed), strict=True):
                share.add(bool((p[-5:] <= 0.05).any()))
        yield f"| {name}: within five nights | {len(means)} | {' | '.join(map(str, shares))} |\n"
    for name, deviation in (("0.9", 0.0), ("0.9, all rows of a night move by 0.01", 0.01), ("... by 0.02", 0.02)):
        shares = [Share(), Share()]
        for seed in range(runs):
            for share, p in zip(shares, _nightly_p((0.9,) * 60, deviation, seed), strict=True):
                share.add(bool((p <= 0.05).any()))
        yield f"| {name}: on any night | 60 | {' | '.join(map(str, shares))} |\n"


def _nightly_p(means: Sequence[float], deviation: float, seed: int) -> tuple[Floats, Floats]:
    """Return the p-values of a failure after each night: of the night alone, and of the nights together."""
    generator, rows, bar = np.random.default_rng([223, seed]), 200, 0.9
    true = np.clip(np.array(means) + generator.normal(0, deviation, len(means)), 0, 1)
    counts = generator.binomial(rows, true)
    nights = [Night(rows, good / rows, float(np.sqrt(good * (rows - good) / rows / (rows - 1)))) for good in counts]
    alone = np.minimum(1.0, 366 * betainc(rows - counts, counts + 1, 1 - bar))
    together = [p_of_nights(nights[: last + 1], bar, SCORE, 0.05) for last in range(len(nights))]
    return alone, np.where(counts < bar * rows, together, 1.0)


def _pairs(values: Floats) -> Pairs:
    return Pairs(None, tuple(map(str, range(len(values)))), np.zeros(len(values)), values, None)
