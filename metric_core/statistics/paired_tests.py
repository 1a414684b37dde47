"""Tests of "there is no difference" on pairs of scores, each fitted to the values it is about.

Scores that are 0 or 1 throughout: McNemar's exact test. Others: Wilcoxon's signed ranks where many rows differ, else a
permutation of the differences' signs. Rows that belong together: a permutation of the groups' signs.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from metric_core.statistics.pairs import Pairs
from metric_core.statistics.resampling import Floats, Units

FEW_DIFFERENCES = 50
"""With fewer rows that differ, the normal approximation of Wilcoxon's test under ties is not to be trusted."""

_ROUNDING = 1e-12
_MOST_PERMUTED = 1000
_PERMUTATIONS = 9999


class TestKind(StrEnum):
    """Which test gave a p-value."""

    __test__ = False

    MCNEMAR = "McNemar, exact"
    WILCOXON = "Wilcoxon signed-rank"
    PERMUTATION = "sign permutation"
    GROUP_PERMUTATION = "sign permutation of groups"


@dataclass(frozen=True, slots=True)
class PairedTest:
    """A two-sided test of "there is no difference".

    Args:
        kind: which test.
        p: its p-value.
    """

    kind: TestKind
    p: float


def paired_test(pairs: Pairs, seed: int) -> PairedTest:
    """The test that fits the values.

    Args:
        pairs: the scores of the rows, at least two, or two groups.
        seed: where random permutations start.

    >>> pairs = Pairs(None, ("u", "v", "w", "x"), np.ones(4), np.zeros(4), None)
    >>> paired_test(pairs, seed=1)
    PairedTest(kind=<TestKind.MCNEMAR: 'McNemar, exact'>, p=0.125)
    """
    differences = pairs.differences
    if pairs.groups is not None:
        return PairedTest(TestKind.GROUP_PERMUTATION, _sign_permutation(Units.of(differences, pairs.groups).sums, seed))
    if pairs.are_binary:
        return PairedTest(TestKind.MCNEMAR, _mcnemar(differences))
    if np.count_nonzero(differences) < FEW_DIFFERENCES:
        return PairedTest(TestKind.PERMUTATION, _sign_permutation(differences, seed))
    return PairedTest(TestKind.WILCOXON, _wilcoxon(differences))


def holm(p_values: Sequence[float]) -> list[float]:
    """The p-values as they count among each other, by Holm's step-down method (1979).

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
    """P-value of the sum under signs drawn by lot; by the normal limit of that distribution where units are many."""
    changed = values[np.abs(values) > _ROUNDING]
    if len(changed) < 2:  # either sign is as extreme as the other
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
