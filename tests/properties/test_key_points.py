"""Properties of key point recall: the formulas of TREC, a point more in the answer, and the order of points."""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metric_core.evidence import BY_RESPONSE, Evidence
from metric_core.metrics.registry import resolve
from metric_core.records import Importance, Sample, Score, Side, Status, VerdictKind

LEVELS = ("not", "partial", "support")
SCORES: list[dict[str, Any]] = [
    {"strict": strict, "importance": counted} for strict in (True, False) for counted in ("vital", "all", "weighted")
]

Point = tuple[str, Importance]
points = st.lists(st.tuples(st.sampled_from(LEVELS), st.sampled_from(list(Importance))), min_size=1, max_size=12)


def score(found: Sequence[Point], strict: bool, importance: str) -> Score:
    """Return the recall of a row whose points have these levels and importances."""
    ids = [f"{Side.KEY_POINT}:{i}" for i in range(len(found))]
    verdicts = {}
    for claim, (level, _) in zip(ids, found, strict=True):
        verdicts[VerdictKind.SUPPORT, claim, BY_RESPONSE] = float(level == "support")
        verdicts[VerdictKind.PARTIAL_SUPPORT, claim, BY_RESPONSE] = float(level != "not")
    importances = dict(zip(ids, (each for _, each in found), strict=True))
    sample = Sample("row", response="It rains.", key_points=())
    evidence = Evidence(sample, {Side.KEY_POINT: dict.fromkeys(ids, "")}, verdicts, importances=importances)
    return resolve("key_point_recall").request({"strict": strict, "importance": importance}).score(evidence)


def trec(found: Sequence[Point], strict: bool, importance: str) -> Fraction | None:
    """Return V, A or W of Pradeep et al. (2024), strict or not; None without a point that counts."""
    okay = {"vital": Fraction(0), "all": Fraction(1), "weighted": Fraction(1, 2)}[importance]
    credit_of = {"support": Fraction(1), "partial": Fraction(0) if strict else Fraction(1, 2), "not": Fraction(0)}
    weights = [Fraction(1) if each is Importance.VITAL else okay for _, each in found]
    earned = sum((weight * credit_of[level] for weight, (level, _) in zip(weights, found, strict=True)), Fraction(0))
    return earned / sum(weights) if sum(weights) else None


@given(points)
def test_scores_are_those_of_trec(found: list[Point]) -> None:
    for parameters in SCORES:
        expected, cell = trec(found, **parameters), score(found, **parameters)
        assert (cell.status is Status.SCORED) == (expected is not None)
        assert expected is None or cell.value == pytest.approx(float(expected), abs=1e-9)


@given(points, st.data())
def test_a_point_more_in_the_answer_never_lowers_the_score_and_the_order_is_nothing(
    found: list[Point], data: st.DataObject
) -> None:
    place = data.draw(st.integers(0, len(found) - 1))
    level, importance = found[place]
    better = data.draw(st.sampled_from(LEVELS[LEVELS.index(level) :]))
    more = [*found[:place], (better, importance), *found[place + 1 :]]
    shuffled = data.draw(st.permutations(found))
    for parameters in SCORES:
        before = score(found, **parameters)
        assert (score(more, **parameters).value or 0.0) >= (before.value or 0.0)
        assert score(shuffled, **parameters).value == pytest.approx(before.value, abs=1e-12)
