"""Agreement of judges with people on the same labelled rows."""

import numpy as np
import pytest

from metric_core.calibration.judge_comparison import LabelledRows, compare_agreements
from metric_core.calibration.labels import Scale


def test_grades_agree_by_their_distance_and_few_rows_have_no_interval() -> None:
    labels = np.array([0.0, 0.5, 1.0])
    rows = LabelledRows(Scale.GRADED, labels, {"a": labels + np.array([0.5, 0.0, 0.0]), "b": labels})
    found = compare_agreements(rows)
    assert [judge.name for judge in found] == ["b", "a"]
    assert [judge.agreement for judge in found] == pytest.approx([1.0, 1 - 0.5 / 3])
    assert [judge.interval for judge in found] == [None, None]


def test_rows_count_by_their_weights() -> None:
    labels = np.array([1.0] * 60)
    scores = {"a": np.append(np.zeros(10), np.ones(50)), "b": np.append(np.ones(50), np.zeros(10))}
    weights = np.append(np.full(10, 6.0), np.ones(50))
    plain, weighted = (
        {each.name: each for each in compare_agreements(LabelledRows(Scale.BINARY, labels, scores, None, w))}
        for w in (None, weights)
    )
    assert [plain[name].agreement for name in "ab"] == pytest.approx([50 / 60] * 2)
    assert [weighted[name].agreement for name in "ab"] == pytest.approx([50 / 110, 100 / 110])
    interval = plain["a"].interval
    assert interval is not None
    assert interval.low < 50 / 60 < interval.high
