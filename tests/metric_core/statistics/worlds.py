"""Worlds from which scores are drawn, each with its true mean: what intervals and tests are measured against."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from metric_core.statistics.resampling import Units

Floats = NDArray[np.float64]
Draw = Callable[[np.random.Generator, int], Floats]


@dataclass(frozen=True, slots=True)
class World:
    """Where scores, or differences of scores, come from.

    Args:
        name: Name of the world.
        draw: Function that draws the values of a number of rows, or of all rows of a number of groups.
        mean: True mean of the values.
        rows_per_group: Number of consecutive rows that belong together; 1 if rows are independent.
        is_narrow: True if hardly any value is near the bounds, so that an interval that allows for such rows is wide.
        is_discrete: True if values are 0 and 1.
    """

    name: str
    draw: Draw
    mean: float
    rows_per_group: int = 1
    is_narrow: bool = False
    is_discrete: bool = False

    def groups(self, units: int) -> list[str] | None:
        """Return the group of each row; None if rows are independent."""
        if self.rows_per_group == 1:
            return None
        return [f"group {i // self.rows_per_group}" for i in range(units * self.rows_per_group)]


def _mostly_ones(share: float) -> World:
    """Rows score 1 with a probability, else 0, 1/4, 1/2 or 3/4."""
    mean = share + (1 - share) * 0.375
    return World(
        f"{share:g} of rows score 1, the others a fraction",
        lambda g, n: np.where(g.random(n) < share, 1.0, g.integers(0, 4, n) / 4),
        mean,
    )


def _binary(share: float) -> World:
    return World(f"0/1, mean {share:g}", lambda g, n: (g.random(n) < share).astype(np.float64), share, is_discrete=True)


def _beta(a: float, b: float, is_narrow: bool = False) -> World:
    return World(f"beta({a:g}, {b:g})", lambda g, n: g.beta(a, b, n), a / (a + b), is_narrow=is_narrow)


def _grouped(mean: float, correlation: float, *, is_discrete: bool) -> World:
    """Five rows per document, whose scores are correlated."""
    strength = 1 / correlation - 1

    def draw(generator: np.random.Generator, groups: int) -> Floats:
        shared = np.repeat(generator.beta(mean * strength, (1 - mean) * strength, groups), 5)
        if is_discrete:
            return (generator.random(5 * groups) < shared).astype(np.float64)
        return np.where(
            generator.random(5 * groups) < 0.5, shared, generator.beta(mean * 4, (1 - mean) * 4, 5 * groups)
        )

    kind = "0/1" if is_discrete else "graded"
    return World(f"{kind}, mean {mean:g}, correlation {correlation:g}", draw, mean, 5, is_discrete=is_discrete)


MIDDLING = (_beta(2, 2), World("uniform", lambda g, n: g.random(n), 0.5), _beta(8, 2), _binary(0.5))
"""Worlds in which a bootstrap of 100 rows or more holds, too."""

SCORES = (
    *map(_mostly_ones, (0.9, 0.95, 0.98)),
    World(
        "normal around 0.9, 4 % zeros",
        lambda g, n: np.where(g.random(n) < 0.04, 0.0, np.clip(g.normal(0.9, 0.03, n), 0, 1)),
        0.96 * 0.9,
        is_narrow=True,
    ),
    *map(_binary, (0.8, 0.9, 0.95, 0.98)),
    *MIDDLING,
    _beta(4, 0.4),
    _beta(80, 20, is_narrow=True),
    World("30 % zeros, else uniform", lambda g, n: np.where(g.random(n) < 0.3, 0.0, g.random(n)), 0.35),
)
"""Scores of one run, from 0 to 1."""

GROUPED_SCORES = (
    _grouped(0.7, 0.3, is_discrete=True),
    _grouped(0.7, 0.6, is_discrete=True),
    _grouped(0.95, 0.3, is_discrete=True),
    _grouped(0.7, 0.5, is_discrete=False),
    _grouped(0.95, 0.5, is_discrete=False),
)
"""Scores of one run with groups of five rows."""


def _shift(name: str, values: tuple[float, ...], shares: tuple[float, ...]) -> World:
    mean = float(np.dot(values, shares))
    return World(name, lambda g, n: g.choice(values, n, p=shares), mean)


DIFFERENCES = (
    _shift("5 % of rows fall by 1", (-1.0, 0.0), (0.05, 0.95)),
    _shift("2 % of rows fall by 1", (-1.0, 0.0), (0.02, 0.98)),
    _shift("10 % rise by 1, 12 % fall by 1", (-1.0, 0.0, 1.0), (0.12, 0.78, 0.1)),
    _shift("20 % of rows change by 0.5", (-0.5, 0.0, 0.5), (0.12, 0.8, 0.08)),
    _shift("85 % rise by 0.04, 15 % fall by 0.2267", (-0.04 * 0.85 / 0.15, 0.04), (0.15, 0.85)),
    World("normal, deviation 0.1", lambda g, n: np.clip(g.normal(-0.02, 0.1, n), -1, 1), -0.02, is_narrow=True),
    World("normal, deviation 0.3", lambda g, n: np.clip(g.normal(-0.02, 0.3, n), -1, 1), -0.02),
)
"""Differences of two runs, from -1 to 1."""

UNEVEN = {
    "one of 100 rows, 900 of 1": [100] + [1] * 900,
    "one of 40 rows, 160 of 1": [40] + [1] * 160,
    "three of 30 rows, 210 of 1": [30] * 3 + [1] * 210,
    "60 of 1 to 9 rows": [1 + i % 9 for i in range(60)],
    "one of 30 rows, 70 of 1": [30] + [1] * 70,
    "30, 20 and 10 rows, 40 of 1": [30, 20, 10] + [1] * 40,
    "Zipf, 60 customers": [max(1, round(64 / place)) for place in range(1, 61)],
    "40, lognormal": [max(1, round(float(np.exp(1 + z)))) for z in np.random.default_rng(1).standard_normal(40)],
}
"""Numbers of rows of groups of different sizes."""

TOO_UNEVEN = {
    "one of 60 rows, 40 of 1": [60] + [1] * 40,
    "one of 1,000 rows, 8 of 1": [1000] + [1] * 8,
}
"""Numbers of rows of groups so different that nothing can be said of others."""


def draw_groups(generator: np.random.Generator, sizes: Floats, mean: float, correlation: float) -> Units:
    """Return groups whose rows score 1 with a probability that they share."""
    strength = 1 / correlation - 1
    shared = generator.beta(mean * strength, (1 - mean) * strength, len(sizes))
    return Units(generator.binomial(sizes.astype(int), shared).astype(np.float64), sizes)
