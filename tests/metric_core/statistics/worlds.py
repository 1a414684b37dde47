"""Worlds from which scores are drawn, each with its true mean: what intervals and tests are measured against."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Draw = Callable[[np.random.Generator], Floats]

GROUP_ROWS = 4


@dataclass(frozen=True, slots=True)
class World:
    """Where scores come from.

    Args:
        name: Name of the test id.
        draw: Function that draws the scores of a run.
        mean: True mean of the scores.
        groups: Group of each row; None if rows are independent.
    """

    name: str
    draw: Draw
    mean: float
    groups: tuple[str, ...] | None = None


def _clustered(generator: np.random.Generator) -> Floats:
    """Thirty groups of four rows that share most of their value."""
    shared = np.repeat(generator.normal(0.02, 0.2, size=30), GROUP_ROWS)
    return np.asarray(shared + generator.normal(0.0, 0.1, size=30 * GROUP_ROWS))


_GROUPS = tuple(f"group {i // GROUP_ROWS}" for i in range(30 * GROUP_ROWS))

SCORES = (
    World("binary", lambda g: (g.random(100) < 0.8).astype(np.float64), 0.8),
    World("skewed", lambda g: g.beta(4.0, 0.4, size=80), 4.0 / 4.4),
    World("clustered", _clustered, 0.02, _GROUPS),
)
"""Scores of one run."""

DIFFERENCES = (
    World("binary", lambda g: g.choice([-1.0, 0.0, 1.0], p=[0.1, 0.78, 0.12], size=100), 0.02),
    World("skewed", lambda g: g.exponential(0.3, size=60) - 0.28, 0.02),
    World("mostly unchanged", lambda g: (g.random(100) < 0.3) * g.uniform(-0.5, 0.5 + 0.4 / 3, size=100), 0.02),
    World("clustered", _clustered, 0.02, _GROUPS),
)
"""Differences of pairs, with a true mean of 0.02."""
