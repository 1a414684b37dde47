"""Test whether labelled rows can be a random sample of a run, and whether people are equally strict."""

from collections.abc import Mapping, Sequence

import numpy as np

from metric_core.calibration.sampled_labels import SampledLabels
from metric_core.calibration.weighted_statistics import Booleans
from metric_core.statistics.bounded_means import LEAST_UNITS
from metric_core.statistics.resampling import Floats

_STRICTER = 0.01


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
    if min(is_labelled.sum(), (~is_labelled).sum()) < LEAST_UNITS:
        return None
    return p_same(scores, is_labelled)


def p_same(values: Floats, is_first: Booleans) -> float:
    """Return the two-sided p-value of "the first values are as large as the others": rank sums, with ties.

    >>> p_same(np.arange(6.0), np.array([True, False] * 3)) > 0.5
    True
    """
    size, first = len(values), int(is_first.sum())
    _, place, ties = np.unique(values, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(ties) - (ties - 1) / 2)[place]
    variance = first * (size - first) / 12 * (size + 1 - float((ties**3 - ties).sum()) / (size * (size - 1)))
    if variance <= 0:
        return 1.0
    from scipy.special import ndtr  # noqa: PLC0415 scipy loads slowly

    return float(2 * ndtr(-abs(float(ranks[is_first].sum()) - first * (size + 1) / 2) / np.sqrt(variance)))


def describe_strictness(annotators: Mapping[str, Sequence[float]]) -> str:
    """Return a warning if one person gives other labels than the rest do; else an empty text.

    Different people get different items at random, so that their labels differ by chance only if they are equally
    strict. The smallest p-value counts, times the number of people.

    Args:
        annotators: Labels by who gave them.

    >>> describe_strictness({"anna": [1.0] * 45 + [0.0] * 5, "ben": [1.0] * 25 + [0.0] * 25})
    "'anna' gives 0.90 on average, the others 0.50 (p = 1.4e-05): let them label some of the same items, and settle..."
    >>> describe_strictness({"anna": [1.0, 0.0] * 20, "ben": [0.0, 1.0] * 20})
    ''
    """
    known = {name: labels for name, labels in annotators.items() if len(labels) >= LEAST_UNITS}
    if len(known) < 2:
        return ""
    values = np.concatenate([np.array(labels, dtype=np.float64) for labels in known.values()])
    names = np.repeat(np.arange(len(known)), [len(labels) for labels in known.values()])
    tests = [(p_same(values, names == number), number) for number in range(len(known) if len(known) > 2 else 1)]
    p, number = min(tests)
    p = min(1.0, len(tests) * p)
    if p > _STRICTER:
        return ""
    own, others = (float(values[part].mean()) for part in (names == number, names != number))
    return (
        f"{list(known)[number]!r} gives {own:.2f} on average, the others {others:.2f} (p = {p:.2g}): let them label "
        "some of the same items, and settle what they disagree on"
    )
