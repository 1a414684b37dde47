"""Test "there is no difference" on pairs of scores, by a method for the kind of values.

All are tests about the mean difference, the number that a comparison reports. Binary scores: McNemar's test with mid-p,
which rejects about as often as it says; the exact test rejects far less. Other scores: a permutation test of the signs
of the differences. Grouped rows: a permutation test of the signs of the groups.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metric_core.statistics.pairs import Pairs
from metric_core.statistics.resampling import Floats

_ROUNDING = 1e-12
_MOST_ENUMERATED = 13
"""Number of values up to which all combinations of signs are tried."""
_MOST_PERMUTED = 1000
_PERMUTATIONS = 9999
_BATCH = 1000


class TestKind(StrEnum):
    """Name of a test."""

    __test__ = False

    MCNEMAR = "McNemar, mid-p"
    PERMUTATION = "sign permutation"
    GROUP_PERMUTATION = "sign permutation of groups"


@dataclass(frozen=True, slots=True)
class PairedTest:
    """A two-sided test of "there is no difference"."""

    kind: TestKind
    p: float


def paired_test(pairs: Pairs, seed: int, values: Floats | None = None) -> PairedTest:
    """Apply the test that suits the values.

    Args:
        pairs: Scores of at least two rows or groups.
        values: Differences less what earlier runs predict; None for the differences alone.

    >>> pairs = Pairs(None, ("u", "v", "w", "x"), np.ones(4), np.zeros(4), None)
    >>> paired_test(pairs, seed=1)
    PairedTest(kind=<TestKind.MCNEMAR: 'McNemar, mid-p'>, p=0.0625)
    """
    differences = pairs.differences if values is None else values
    if pairs.groups is not None:
        return PairedTest(TestKind.GROUP_PERMUTATION, _sign_permutation(pairs.units(differences).sums, seed))
    is_binary = pairs.are_binary and bool(np.isin(differences, (-1.0, 0.0, 1.0)).all())
    if is_binary and pairs.weights is None:
        gained, lost = int((differences > 0).sum()), int((differences < 0).sum())
        return PairedTest(TestKind.MCNEMAR, mcnemar_mid_p(gained, lost))
    return PairedTest(TestKind.PERMUTATION, _sign_permutation(pairs.units(differences).sums, seed))


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values adjusted for multiple testing by Holm's step-down method (1979).

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    order = np.argsort(p_values, kind="stable")
    adjusted = np.empty(len(order))
    adjusted[order] = np.maximum.accumulate(np.asarray(p_values)[order] * np.arange(len(order), 0, -1))
    return [float(p) for p in np.minimum(adjusted, 1.0)]


def mcnemar_mid_p(gained: int, lost: int) -> float:
    """Return the p-value of McNemar's test with mid-p: only half of the probability of the observed counts is added.

    Source: Fagerland, Lydersen and Laake, "The McNemar test for binary matched-pairs data: mid-p and asymptotic are
    better than exact conditional" (2013).

    Args:
        gained: Number of pairs that changed from 0 to 1.
        lost: Number of pairs that changed from 1 to 0.

    >>> mcnemar_mid_p(5, 0), mcnemar_mid_p(3, 3)
    (0.03125, 1.0)
    """
    if not gained and not lost:
        return 1.0
    from scipy.special import bdtr  # noqa: PLC0415 scipy loads slowly

    fewer, changed = min(gained, lost), gained + lost
    below = float(bdtr(fewer - 1, changed, 0.5)) if fewer else 0.0
    return min(1.0, below + float(bdtr(fewer, changed, 0.5)))


def _sign_permutation(values: Floats, seed: int) -> float:
    """Return the p-value of the sum under random signs: exact for few values, by the normal limit for many."""
    changed = values[np.abs(values) > _ROUNDING]
    if len(changed) < 2:  # both signs of a single value are equally extreme
        return 1.0
    if len(changed) > _MOST_PERMUTED:
        from scipy.special import ndtr  # noqa: PLC0415 scipy loads slowly

        return float(2 * ndtr(-abs(changed.sum()) / np.sqrt((changed**2).sum())))
    count = len(changed)
    if count <= _MOST_ENUMERATED:
        every = (np.arange(2**count)[:, None] >> np.arange(count)) & 1
        return float((np.abs(_signed_sums(changed, every)) >= abs(changed.sum()) - _ROUNDING).mean())
    generator = np.random.default_rng(seed)
    extreme = 0
    for start in range(0, _PERMUTATIONS, _BATCH):
        size = (min(_BATCH, _PERMUTATIONS - start), (count + 7) // 8)
        positive = np.unpackbits(generator.integers(0, 256, size=size, dtype=np.uint8), axis=1)[:, :count]
        extreme += int((np.abs(_signed_sums(changed, positive)) >= abs(changed.sum()) - _ROUNDING).sum())
    p = (extreme + 1) / (_PERMUTATIONS + 1)
    return p if extreme else min(p, _bound_signed_sum(changed))


def _bound_signed_sum(values: Floats) -> float:
    """Return an upper bound of the probability that the sum under random signs is as extreme (Chernoff's bound).

    A sample of permutations cannot distinguish small probabilities, which matters where many tests share the chance of
    an error. Every exponent gives a bound; the least one is close to the probability.

    Args:
        values: Values, not all 0.

    >>> _bound_signed_sum(np.ones(30)) < 1.1 * 2 * 0.5**30
    True
    """
    size, total = np.abs(values), abs(values.sum())
    exponents = total / (values**2).sum() * np.geomspace(0.5, 100, 200)
    scaled = exponents[:, None] * size
    logarithms = (scaled + np.log1p(np.exp(-2 * scaled)) - np.log(2)).sum(axis=1) - exponents * total
    return float(min(1.0, 2 * np.exp(logarithms.min())))


def _signed_sums(values: Floats, positive: NDArray[np.integer[Any]]) -> Floats:
    """Return a sum per row of `positive`, in which 1 leaves the sign of a value and 0 changes it."""
    sums: Floats = 2 * (positive @ values) - values.sum()
    return sums
