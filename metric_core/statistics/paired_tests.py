"""Tests of "there is no difference" on pairs of scores, chosen by the kind of values.

Binary scores: McNemar's exact test. Other scores: Wilcoxon's signed-rank test if many rows differ, else a permutation
test of the signs of the differences. Grouped rows: a permutation test of the signs of the groups.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from metric_core.statistics.pairs import Pairs
from metric_core.statistics.resampling import Floats, Units

FEW_DIFFERENCES = 50
"""Number of differing rows below which the normal approximation of Wilcoxon's test is unreliable under ties."""

_ROUNDING = 1e-12
_MOST_PERMUTED = 1000
_PERMUTATIONS = 9999


class TestKind(StrEnum):
    """Name of a test."""

    __test__ = False

    MCNEMAR = "McNemar, exact"
    WILCOXON = "Wilcoxon signed-rank"
    PERMUTATION = "sign permutation"
    GROUP_PERMUTATION = "sign permutation of groups"


@dataclass(frozen=True, slots=True)
class PairedTest:
    """A two-sided test of "there is no difference".

    Args:
        kind: Name of the test.
        p: P-value of the test.
    """

    kind: TestKind
    p: float


def paired_test(pairs: Pairs, seed: int) -> PairedTest:
    """Apply the test that suits the values.

    Args:
        pairs: Scores of at least two rows or groups.
        seed: Seed of random permutations.

    >>> pairs = Pairs(None, ("u", "v", "w", "x"), np.ones(4), np.zeros(4), None)
    >>> paired_test(pairs, seed=1)
    PairedTest(kind=<TestKind.MCNEMAR: 'McNemar, exact'>, p=0.125)
    """
    differences = pairs.differences
    if pairs.groups is not None:
        return PairedTest(
            TestKind.GROUP_PERMUTATION, _sign_permutation(Units.from_values(differences, pairs.groups).sums, seed)
        )
    if pairs.are_binary:
        return PairedTest(TestKind.MCNEMAR, _mcnemar(differences))
    if np.count_nonzero(differences) < FEW_DIFFERENCES:
        return PairedTest(TestKind.PERMUTATION, _sign_permutation(differences, seed))
    return PairedTest(TestKind.WILCOXON, _wilcoxon(differences))


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values adjusted for multiple testing by Holm's step-down method (1979).

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    if not p_values:
        return []
    from statsmodels.stats.multitest import multipletests  # noqa: PLC0415 loads pandas

    return [float(p) for p in multipletests(p_values, method="holm")[1]]


def _mcnemar(differences: Floats) -> float:
    from statsmodels.stats.contingency_tables import mcnemar  # noqa: PLC0415 loads pandas

    gained, lost = int((differences > 0).sum()), int((differences < 0).sum())
    return float(mcnemar([[0, lost], [gained, 0]], exact=True).pvalue) if gained or lost else 1.0


def _wilcoxon(differences: Floats) -> float:
    from scipy.stats import wilcoxon  # noqa: PLC0415 importing scipy.stats costs most of a second

    return float(wilcoxon(differences[differences != 0], method="asymptotic").pvalue)


def _sign_permutation(values: Floats, seed: int) -> float:
    """Return the p-value of the sum under random signs, by the normal limit if there are many values."""
    changed = values[np.abs(values) > _ROUNDING]
    if len(changed) < 2:  # both signs of a single value are equally extreme
        return 1.0
    if len(changed) > _MOST_PERMUTED:
        from scipy.special import ndtr  # noqa: PLC0415 scipy loads slowly

        return float(2 * ndtr(-abs(changed.sum()) / np.sqrt((changed**2).sum())))
    from scipy.stats import permutation_test  # noqa: PLC0415 importing scipy.stats costs most of a second

    result = permutation_test(
        (changed,),
        np.sum,
        permutation_type="samples",
        vectorized=True,
        n_resamples=_PERMUTATIONS,
        batch=1000,
        rng=np.random.default_rng(seed),
    )
    return float(result.pvalue)
