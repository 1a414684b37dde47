"""Test whether labelled rows can be a random sample of a run."""

import numpy as np

from metric_core.calibration.sampled_labels import SampledLabels
from metric_core.statistics.bounded_means import LEAST_UNITS


def p_random(sample: SampledLabels) -> float | None:
    """Return the p-value of "the labelled rows are a random sample": small if they score otherwise than the others.

    The rank-sum test (Mann and Whitney 1947) in its normal limit, with ties; of groups, their mean scores are compared.
    Rows with weights are claims, which are drawn one by one.

    Returns:
        The p-value; None if rows were drawn with different probabilities, or if fewer than `LEAST_UNITS` rows or groups
        are labelled, or have no label.

    >>> scores, labels = np.linspace(0, 1, 100), np.full(100, np.nan)
    >>> labels[:50] = 1.0
    >>> p_random(SampledLabels([str(number) for number in range(100)], scores, labels)) < 1e-15
    True
    """
    if sample.probabilities is not None and np.ptp(sample.probabilities[sample.labelled]) > 0:
        return None
    unit = sample.units()[1] if sample.weights is None else np.arange(len(sample.rows))
    counts = np.bincount(unit)
    scores = np.bincount(unit, weights=sample.scores) / counts
    is_labelled = np.bincount(unit, weights=np.isfinite(sample.labels)) > 0
    size, labelled = len(counts), int(is_labelled.sum())
    if min(labelled, size - labelled) < LEAST_UNITS:
        return None
    _, place, ties = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(ties) - (ties - 1) / 2)[place]
    variance = labelled * (size - labelled) / 12 * (size + 1 - float((ties**3 - ties).sum()) / (size * (size - 1)))
    if variance <= 0:
        return 1.0
    from scipy.special import ndtr  # noqa: PLC0415 scipy loads slowly

    return float(2 * ndtr(-abs(float(ranks[is_labelled].sum()) - labelled * (size + 1) / 2) / np.sqrt(variance)))
