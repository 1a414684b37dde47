"""Measure the agreement of several judges: the share of equal labels, and agreement beyond chance."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

Labels: TypeAlias = Mapping[str, str | None]
"""Judge -> its label of one item; None if it gave no usable label. Judges that were not asked are missing."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """Agreement of judges on items. Labels are nominal: they are either equal or different.

    Args:
        judges: Names of the judges, in order of appearance.
        compared: Number of items with the labels of at least two judges.
        agreement: Share of pairs of labels that are equal, averaged over the compared items; None without any.
        alpha: Krippendorff's alpha (nominal) over the compared items; None without any, or if all labels are the
            same.
        unlabelled: Judge -> number of items for which it gave no usable label.
    """

    judges: tuple[str, ...]
    items: int
    compared: int
    agreement: float | None
    alpha: float | None
    unlabelled: dict[str, int]


def measure_agreement(items: Sequence[Labels]) -> Agreement:
    """Return the agreement of judges on items.

    >>> agreement = measure_agreement([{"a": "yes", "b": "yes"}, {"a": "no", "b": "no"}, {"a": "yes", "b": None}])
    >>> agreement.compared, agreement.agreement, agreement.alpha, agreement.unlabelled
    (2, 1.0, 1.0, {'a': 0, 'b': 1})
    """
    judges = tuple(dict.fromkeys(judge for item in items for judge in item))
    given = [[label for label in item.values() if label is not None] for item in items]
    compared = [labels for labels in given if len(labels) > 1]
    return Agreement(
        judges=judges,
        items=len(items),
        compared=len(compared),
        agreement=pair_agreement(compared),
        alpha=krippendorff_alpha(compared),
        unlabelled={judge: sum(judge in item and item[judge] is None for item in items) for judge in judges},
    )


def pair_agreement(items: Sequence[Sequence[str]]) -> float | None:
    """Return the share of pairs of labels that are equal, averaged over the items; None without items.

    Args:
        items: Labels of each item, at least two.

    >>> pair_agreement([["yes", "yes", "no"], ["no", "no", "no"]])
    0.666...
    """
    if not items:
        return None
    shares = [
        sum(n * (n - 1) for n in Counter(labels).values()) / (len(labels) * (len(labels) - 1)) for labels in items
    ]
    return sum(shares) / len(shares)


def interval_alpha(items: Sequence[Sequence[float]]) -> float | None:
    """Return Krippendorff's alpha for numbers, in which large differences count more; None if all are the same.

    For labels of 0 and 1 it is that for nominal labels. Source: as for `krippendorff_alpha`.

    Args:
        items: Numbers given to each item, at least two.

    >>> interval_alpha([[1, 1], [0, 0], [1, 0], [0, 1]]), round(interval_alpha([[1, 2], [5, 5], [3, 3]]), 3)
    (0.125, 0.935)
    """
    values = np.array([value for item in items for value in item], dtype=np.float64)
    if len(values) < 2 or not np.ptp(values):
        return None
    observed = sum(2 * len(item) * float(np.var(item)) * len(item) / (len(item) - 1) for item in items)
    expected = 2 * len(values) ** 2 * float(values.var()) / (len(values) - 1)
    return 1 - observed / expected


def krippendorff_alpha(items: Sequence[Sequence[str]]) -> float | None:
    """Return Krippendorff's alpha for nominal labels; None with fewer than two different labels.

    Items can have different numbers of labels.

    Source: Krippendorff, "Computing Krippendorff's Alpha-Reliability" (2011).

    Args:
        items: Labels of each item, at least two.

    >>> krippendorff_alpha([["yes", "yes"], ["no", "no"], ["yes", "no"], ["no", "yes"]])
    0.125
    """
    totals = Counter(label for labels in items for label in labels)
    if len(totals) < 2:
        return None
    size = sum(totals.values())
    observed = sum(n * (len(labels) - n) / (len(labels) - 1) for labels in items for n in Counter(labels).values())
    expected = sum(n * (size - n) for n in totals.values()) / (size - 1)
    return 1 - observed / expected
