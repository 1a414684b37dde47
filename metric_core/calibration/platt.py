"""A judge's probabilities mapped to what people say: Platt's two numbers, fitted through a metric's own formula.

People label answers, a judge gives a probability to each claim. So the map changes the probabilities of single
verdicts, and is fitted so that the metric that is made of them agrees with the labels best. It keeps their order.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Rows: TypeAlias = NDArray[np.intp]

NEAREST_TO_CERTAIN = 0.005
"""Where a judge says 0 or 1 it is taken to mean this far from it: below a hundredth, probabilities are not told."""

MOST_ROWS = 2000
"""Rows that a map is fitted to: two numbers do not become better by more."""

_LEAST_LOSS_MARGIN = 1e-6
_PRIOR_WEIGHT = 1.0
"""How many rows' worth of evidence it takes to leave the map that changes nothing."""


@dataclass(frozen=True, slots=True)
class ProbabilityMap:
    """p -> sigmoid(slope * logit(p) + intercept). A slope below 1 says that the judge is too sure of itself.

    Args:
        slope: above 0.
        intercept: above 0 where the judge says no too often.

    >>> round(ProbabilityMap(1.0, 0.0)(0.9), 3)
    0.9
    >>> round(ProbabilityMap(0.5, 0.0)(0.9), 3)
    0.75
    """

    slope: float
    intercept: float

    def __call__(self, probability: float) -> float:
        """The mapped probability, in (0, 1)."""
        kept = min(max(probability, NEAREST_TO_CERTAIN), 1 - NEAREST_TO_CERTAIN)
        return 1 / (1 + math.exp(-(self.slope * math.log(kept / (1 - kept)) + self.intercept)))


Predict: TypeAlias = Callable[[ProbabilityMap, Rows], Floats]
"""What a metric says of rows, on [0, 1], where the probabilities of their verdicts are mapped."""


def fit_map(labels: Floats, rows: Rows, predict: Predict) -> ProbabilityMap:
    """The map with which the predictions of these rows are most likely, given their labels.

    Args:
        labels: label of every row of the data, in [0, 1].
        rows: the rows to fit to; of more than `MOST_ROWS`, evenly spread ones.
        predict: what the metric says of rows under a map.
    """
    from scipy.optimize import minimize  # noqa: PLC0415 scipy loads slowly

    if len(rows) > MOST_ROWS:
        rows = rows[np.linspace(0, len(rows) - 1, MOST_ROWS).astype(np.intp)]
    wanted = labels[rows]

    def loss(parameters: Floats) -> float:
        predicted = predict(_fit(parameters), rows)
        kept = np.clip(predicted, _LEAST_LOSS_MARGIN, 1 - _LEAST_LOSS_MARGIN)
        surprise = -(wanted * np.log(kept) + (1 - wanted) * np.log(1 - kept)).sum()
        return float(surprise + _PRIOR_WEIGHT * (parameters**2).sum() / 2)

    found = minimize(loss, np.zeros(2), method="Nelder-Mead", options={"xatol": 1e-3, "fatol": 1e-4, "maxfev": 200})
    return _fit(found.x)


def predict_out_of_sample(labels: Floats, folds: Sequence[Rows], predict: Predict) -> Floats:
    """What the metric says of each row under a map that was fitted to the other folds."""
    found = np.empty(len(labels))
    for number, fold in enumerate(folds):
        others = np.sort(np.concatenate([rows for other, rows in enumerate(folds) if other != number]))
        found[fold] = predict(fit_map(labels, others, predict), fold)
    return found


def _fit(parameters: Floats) -> ProbabilityMap:
    return ProbabilityMap(float(np.exp(np.clip(parameters[0], -5.0, 5.0))), float(parameters[1]))
