"""Compute with verdicts (0, 1 or probabilities), including failed ones."""

from collections.abc import Iterable, Sequence
from math import fsum
from statistics import fmean

from metric_core import reasons
from metric_core.records import Score, Support


def all_known(supports: Iterable[Support]) -> list[float] | None:
    """Return the supports as numbers; None if any is missing: a failed verdict is not a verdict against the claim.

    >>> all_known([1, 0.5]), all_known([1, None])
    ([1, 0.5], None)
    """
    given = list(supports)
    known = [support for support in given if support is not None]
    return known if len(known) == len(given) else None


def mean_support(supports: Sequence[Support], no_claims: Score) -> Score:
    """Return the share of supported claims, which is the mean of the supports.

    Args:
        supports: Support of each claim, in [0, 1].

    Returns:
        A score in [0, 1]; `no_claims` without claims; failed if a verdict failed.

    >>> mean_support([1, 0, 1, 1], Score.undefined("no claims")).value
    0.75
    >>> mean_support([1, None], Score.undefined("no claims")).reason
    'no usable verdict from the judge'
    """
    if not supports:
        return no_claims
    known = all_known(supports)
    return Score.failed(reasons.NO_USABLE_VERDICT) if known is None else Score.scored(fmean(known))


def f_beta(true_positives: float, false_positives: float, false_negatives: float, beta: float = 1.0) -> float:
    """Return F-beta of (expected) counts, in [0, 1]; 0 without true positives.

    Args:
        true_positives: Number of correct items found, at least 0.
        false_positives: Number of wrong items found, at least 0.
        false_negatives: Number of correct items missed, at least 0.
        beta: Weight of recall relative to precision, at least 0.

    >>> f_beta(1, 1, 1)
    0.5
    """
    if true_positives == 0:
        return 0.0
    weighted = (1 + beta**2) * true_positives
    return weighted / (weighted + beta**2 * false_negatives + false_positives)


def count_supported(supports: Iterable[float]) -> tuple[float, float]:
    """Return the expected numbers of supported and of unsupported claims.

    >>> count_supported([1, 0, 1])
    (2.0, 1.0)
    """
    known = list(supports)
    return fsum(known), fsum(1 - support for support in known)
