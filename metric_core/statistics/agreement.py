"""How far several judges agree: the share of equal labels, and how much more that is than chance would give."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

Labels: TypeAlias = Mapping[str, str | None]
"""Judge -> its label of one item; None where it gave no usable one. A judge that was not asked is missing."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """How far judges agree on items. Labels count as equal or different, whatever scale they are on.

    Args:
        judges: who labelled, in the order in which they appear.
        items: items that were labelled.
        compared: of these, items with the labels of at least two judges.
        complete: of these, items with the labels of all judges.
        agreement: share of pairs of labels that are equal, mean over the compared items; None without any.
        kappa: Fleiss' kappa over the complete items; None without any, or where all labels are the same.
        alpha: Krippendorff's alpha (nominal) over the compared items; None as for kappa.
        unlabelled: judge -> items for which it gave no usable label.
    """

    judges: tuple[str, ...]
    items: int
    compared: int
    complete: int
    agreement: float | None
    kappa: float | None
    alpha: float | None
    unlabelled: dict[str, int]


def measure_agreement(items: Sequence[Labels]) -> Agreement:
    """The agreement of judges on items.

    >>> found = measure_agreement([{"a": "yes", "b": "yes"}, {"a": "no", "b": "no"}, {"a": "yes", "b": None}])
    >>> found.compared, found.agreement, found.kappa, found.unlabelled
    (2, 1.0, 1.0, {'a': 0, 'b': 1})
    """
    judges = tuple(dict.fromkeys(judge for item in items for judge in item))
    given = [[label for label in item.values() if label is not None] for item in items]
    compared = [labels for labels in given if len(labels) > 1]
    complete = [labels for labels in compared if len(labels) == len(judges)]
    return Agreement(
        judges=judges,
        items=len(items),
        compared=len(compared),
        complete=len(complete),
        agreement=pair_agreement(compared),
        kappa=fleiss_kappa(complete),
        alpha=krippendorff_alpha(compared),
        unlabelled={judge: sum(judge in item and item[judge] is None for item in items) for judge in judges},
    )


def pair_agreement(items: Sequence[Sequence[str]]) -> float | None:
    """Share of pairs of labels that are equal, mean over the items; None without items.

    Args:
        items: the labels of each item, at least two.

    >>> pair_agreement([["yes", "yes", "no"], ["no", "no", "no"]])
    0.666...
    """
    if not items:
        return None
    shares = [
        sum(n * (n - 1) for n in Counter(labels).values()) / (len(labels) * (len(labels) - 1)) for labels in items
    ]
    return sum(shares) / len(shares)


def fleiss_kappa(items: Sequence[Sequence[str]]) -> float | None:
    """Fleiss' kappa: agreement beyond chance, 1 at most, 0 for chance; None without items or with one label only.

    Source: Fleiss, "Measuring nominal scale agreement among many raters" (1971).

    Args:
        items: the labels of each item, as many for each.

    >>> fleiss_kappa([["yes", "yes"], ["no", "no"], ["yes", "no"], ["no", "yes"]])
    0.0
    """
    labels = sorted({label for item in items for label in item})
    if len(labels) < 2:
        return None
    from statsmodels.stats.inter_rater import fleiss_kappa as kappa  # noqa: PLC0415 loads pandas

    return float(kappa([[item.count(label) for label in labels] for item in map(list, items)]))


def krippendorff_alpha(items: Sequence[Sequence[str]]) -> float | None:
    """Krippendorff's alpha for nominal labels, where items may have different numbers of labels; None as for kappa.

    Source: Krippendorff, "Computing Krippendorff's Alpha-Reliability" (2011).

    Args:
        items: the labels of each item, at least two.

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
