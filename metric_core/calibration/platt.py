"""Fit a Platt map of a judge's probabilities to labels of people, through the formula of a metric.

People label responses, while a judge gives a probability for each claim. The map therefore changes the probabilities of
single verdicts, preserving their order, and is fitted so that the resulting metric agrees best with the labels.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Rows: TypeAlias = NDArray[np.intp]

NEAREST_TO_CERTAIN = 0.005
"""Distance from 0 and 1 to which probabilities are clipped: judges do not resolve probabilities below a hundredth."""

MOST_ROWS = 2000
"""Maximum number of rows to fit a map to: two parameters do not improve with more."""

_LEAST_LOSS_MARGIN = 1e-6
_PRIOR_WEIGHT = 1.0
"""Weight of the prior, in rows."""


@dataclass(frozen=True, slots=True)
class ProbabilityMap:
    """The map p -> sigmoid(slope * logit(p) + intercept). A slope below 1 corrects an overconfident judge.

    Args:
        slope: Slope, above 0.
        intercept: Intercept, above 0 if the judge says no too often.

    >>> round(ProbabilityMap(1.0, 0.0)(0.9), 3)
    0.9
    >>> round(ProbabilityMap(0.5, 0.0)(0.9), 3)
    0.75
    """

    slope: float
    intercept: float

    def __call__(self, probability: float) -> float:
        """Return the mapped probability, in (0, 1)."""
        clipped = min(max(probability, NEAREST_TO_CERTAIN), 1 - NEAREST_TO_CERTAIN)
        return 1 / (1 + math.exp(-(self.slope * math.log(clipped / (1 - clipped)) + self.intercept)))


Predict: TypeAlias = Callable[[ProbabilityMap, Rows], Floats]
"""Function from a map and rows to the scores of these rows, in [0, 1], under mapped probabilities."""


def fit_map(labels: Floats, rows: Rows, predict: Predict) -> ProbabilityMap:
    """Return the most probable map given the labels of these rows and a prior that favors the identity.

    Args:
        labels: Label of every row of the data, in [0, 1].
        rows: Rows to fit to; if there are more than `MOST_ROWS`, an evenly spaced subset is used.
        predict: Function that computes the scores of rows under a map.
    """
    from scipy.optimize import minimize  # noqa: PLC0415 scipy loads slowly

    if len(rows) > MOST_ROWS:
        rows = rows[np.linspace(0, len(rows) - 1, MOST_ROWS).astype(np.intp)]
    targets = labels[rows]

    def loss(parameters: Floats) -> float:
        predicted = predict(_build_map(parameters), rows)
        clipped = np.clip(predicted, _LEAST_LOSS_MARGIN, 1 - _LEAST_LOSS_MARGIN)
        likelihood = (targets * np.log(clipped) + (1 - targets) * np.log(1 - clipped)).sum()
        return float(-likelihood + _PRIOR_WEIGHT * (parameters**2).sum() / 2)

    result = minimize(loss, np.zeros(2), method="Nelder-Mead", options={"xatol": 1e-3, "fatol": 1e-4, "maxfev": 200})
    return _build_map(result.x)


def _build_map(parameters: Floats) -> ProbabilityMap:
    return ProbabilityMap(float(np.exp(np.clip(parameters[0], -5.0, 5.0))), float(parameters[1]))
