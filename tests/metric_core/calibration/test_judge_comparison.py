"""Comparison of judges on the same labels: paired differences, margins, errors in common and the cheapest judge."""

import numpy as np
import pytest

from metric_core.calibration.judge_comparison import LabelledRows, compare_judges, find_not_worse
from metric_core.calibration.labels import Scale
from tasks.reports.calibration.judges_text import comparison_rows, recommendation

LABELS = np.array([1.0, 0.0] * 100)


def flip(share: float, seed: int = 1) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
    """Return the labels, a share of them wrong."""
    wrong = np.random.default_rng(seed).random(len(LABELS)) < share
    return np.where(wrong, 1 - LABELS, LABELS)


def test_errors_in_common_do_not_widen_the_interval_of_a_difference() -> None:
    hard = flip(0.3)
    slightly = hard.copy()
    slightly[0] = 1 - slightly[0]
    paired = compare_judges(LabelledRows(Scale.BINARY, LABELS, {"a": hard, "b": slightly}), 0.05)
    interval = paired.judges[1].difference_interval
    assert interval is not None
    assert interval.high - interval.low < 0.06
    assert all(judge.is_not_worse for judge in paired.judges)
    unrelated = compare_judges(LabelledRows(Scale.BINARY, LABELS, {"a": hard, "b": flip(0.3, 2)}), 0.05)
    assert not unrelated.judges[1].is_not_worse
    [overlap] = paired.overlaps
    assert overlap.both + overlap.only_first == paired.judges[0].errors
    assert paired.wrong_for_all == overlap.both


def test_the_cheapest_judge_within_the_margin_is_recommended_and_unknown_costs_are_said() -> None:
    rows = LabelledRows(Scale.BINARY, LABELS, {"large": LABELS, "small": LABELS, "poor": flip(0.4)})
    found = compare_judges(rows, 0.05)
    assert found.cheapest({"large": 9.0, "small": 1.0, "poor": 0.0}) == "small"
    assert found.cheapest({"large": 9.0, "small": None, "poor": 0.0}) is None
    known = {"large": True, "small": False, "poor": True}
    assert "all answers of small were cached" in recommendation(found, None, "tokens", known)
    told = recommendation(found, "small", "money", known)
    assert told == (
        "recommended: small, the cheapest by money of those that are at most 0.05 worse than large: large, small"
    )
    assert [row[0] for row in comparison_rows(found)] == ["large", "small", "poor"]


def test_grades_agree_by_their_distance_and_few_rows_decide_nothing() -> None:
    labels = np.array([0.0, 0.5, 1.0])
    found = compare_judges(
        LabelledRows(Scale.GRADED, labels, {"a": labels, "b": labels + np.array([0.5, 0.0, 0.0])}), 0.5
    )
    assert [judge.agreement for judge in found.judges] == pytest.approx([1.0, 1 - 0.5 / 3])
    assert [judge.errors for judge in found.judges] == [0, 1]
    assert [judge.is_not_worse for judge in found.judges] == [False, False]
    assert found.cheapest({"a": 1.0, "b": 2.0}) is None
    assert recommendation(found, None, "tokens", {"a": True, "b": True}).startswith("no judge is recommended: a agrees")


def test_a_judge_that_is_truly_worse_is_seldom_recommended_however_many_are_compared() -> None:
    generator, margin, rows = np.random.default_rng(3), 0.1, 120
    labels = np.ones(rows)
    mistakes, found = 0, 0
    for _ in range(100):
        hard = generator.random(rows)
        noise = generator.random((4, rows))
        wrong = [0.5 * hard + 0.5 * of_judge < limit for of_judge, limit in zip(noise, _LIMITS, strict=True)]
        scores = {str(number): np.where(each, 0.0, 1.0) for number, each in enumerate(wrong)}
        able = find_not_worse(LabelledRows(Scale.BINARY, labels, scores), margin)
        mistakes += bool(able - {"0"})
        found += bool(able)
    assert mistakes <= 0.05 * 100 + 2 * np.sqrt(0.05 * 0.95 * 100)
    assert mistakes > 0  # three judges at the margin: the limit is nearly used
    assert found > mistakes


def test_rows_count_by_their_weights() -> None:
    labels = np.array([1.0] * 60)
    scores = {"a": np.append(np.zeros(10), np.ones(50)), "b": np.append(np.ones(50), np.zeros(10))}
    weights = np.append(np.full(10, 6.0), np.ones(50))
    plain, weighted = (
        compare_judges(LabelledRows(Scale.BINARY, labels, scores, None, w), 0.1) for w in (None, weights)
    )
    assert [judge.agreement for judge in plain.judges] == pytest.approx([50 / 60] * 2)
    assert {judge.name: judge.agreement for judge in weighted.judges} == pytest.approx({"b": 100 / 110, "a": 50 / 110})
    assert [judge.name for judge in weighted.judges if judge.is_not_worse] == ["b"]


def _limit_of_errors(share: float) -> float:
    """Return the limit below which the mean of two uniform numbers lies with a probability up to a half."""
    return float(np.sqrt(share / 2))


_LIMITS = [_limit_of_errors(0.1), *[_limit_of_errors(0.2)] * 3]
"""One judge errs on 10 % of the rows, three on 20 %: worse by exactly the margin."""
