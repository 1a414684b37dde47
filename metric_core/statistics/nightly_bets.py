"""Test over many nights of new rows whether the true mean meets a threshold.

Someone who does not believe that the mean is at least the threshold starts with 1 and stakes a part of the money on
each row of a night, as in `metric_core.statistics.betting`. The stake is chosen before the night: half of the money
goes on a drop that the first night could just show; the rest follows the mean of the nights since it was last at the
threshold, and stakes nothing before. As long as the true mean meets the threshold, the money gains on no night on
average, so it ever reaches 1 / error with a probability of at most `error`, over all nights together (Ville 1939;
Waudby-Smith and Ramdas, "Estimating means of bounded random variables by betting", 2024).

Of a night, the number of rows, their mean and deviation suffice: the money counts with the bound of Fan, Grama and Liu
("Exponential inequalities for martingales with applications", 2015), which is less than the bets pay. Rows have to be
new every night: the same rows again are no new evidence.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import exp, log, log1p, sqrt

import numpy as np

from metric_core.statistics.bounded_means import Bounds

_MOST_STAKED = 0.9


@dataclass(frozen=True, slots=True)
class Night:
    """The scores of a night.

    Args:
        rows: Number of rows with a score.
        mean: Mean of their scores.
        deviation: Sample standard deviation of their scores.
    """

    rows: int
    mean: float
    deviation: float


@dataclass(frozen=True, slots=True)
class _Losses:
    """The shortfalls of the rows of a night, as parts of the greatest that a row can exceed the threshold by.

    Args:
        mean: Their mean, above 0 if the mean violates the threshold.
        square: Mean of their squares.
    """

    rows: int
    mean: float
    square: float


def p_of_nights(
    nights: Sequence[Night], threshold: float, bounds: Bounds, error: float, *, is_floor: bool = True
) -> float:
    """Return a p-value of "the true mean met the threshold every night" that may be looked at after each night.

    Args:
        nights: Nights, of different rows each; the last one is the present one.
        threshold: Value between the bounds.
        error: Probability at which the first stake aims.
        is_floor: False if the mean has to be at most the threshold.

    >>> bad = [Night(200, 0.85, 0.357)] * 5
    >>> [round(p_of_nights(bad[:count], 0.9, Bounds(0.0, 1.0), 0.05), 4) for count in (1, 2, 5)]
    [0.2678, 0.0407, 0.0001]
    """
    reach = bounds.high - threshold if is_floor else threshold - bounds.low
    sign = -1 if is_floor else 1
    losses = [_losses(night, sign * (night.mean - threshold) / reach, reach) for night in nights if night.rows]
    if not losses:
        return 1.0
    greatest = (threshold - bounds.low) * (bounds.high - threshold) / reach**2
    first = min(0.5, sqrt(log(1 / error) / (losses[0].rows * greatest)))
    half = float(np.logaddexp(_gain(losses[0], first), 0.0)) - log(2)
    return exp(-max(0.0, half + sum(_gains(losses))))  # the rest stakes nothing on the first night


def _losses(night: Night, mean: float, reach: float) -> _Losses:
    return _Losses(night.rows, mean, mean**2 + (night.rows - 1) / night.rows * (night.deviation / reach) ** 2)


def _gains(nights: Sequence[_Losses]) -> Iterator[float]:
    """Yield the logarithm of the gain of each night, with the stake that the nights before it suggest."""
    rows, lost, squares = 0, 0.0, 0.0
    for night in nights:
        yield _gain(night, min(_MOST_STAKED, lost / (squares + lost))) if rows else 0.0
        rows, lost, squares = rows + night.rows, lost + night.rows * night.mean, squares + night.rows * night.square
        if lost <= 0:
            rows, lost, squares = 0, 0.0, 0.0


def _gain(night: _Losses, stake: float) -> float:
    """Return a lower bound of the logarithm of the product of `1 + stake * loss` over the rows."""
    return night.rows * (stake * night.mean + (log1p(-stake) + stake) * night.square)
