"""Agreement of judges, against values from the literature and values computed by hand."""

import pytest

from metric_core.statistics.agreement import (
    Labels,
    interval_alpha,
    krippendorff_alpha,
    measure_agreement,
)


def test_krippendorff_alpha_with_missing_labels() -> None:
    observers = ("123321412...", "1233224125.3", ".3332342251.", "12332441251.")
    items = [[label for label in unit if label != "."] for unit in zip(*observers, strict=True)]
    compared = [labels for labels in items if len(labels) > 1]
    assert krippendorff_alpha(compared) == pytest.approx(0.743, abs=5e-4)
    assert interval_alpha([list(map(float, labels)) for labels in compared]) == pytest.approx(0.849, abs=5e-4)
    assert interval_alpha([[1.0, 1.0]]) is None


def test_two_judges_by_hand() -> None:
    # yes/yes 4, no/no 2, yes/no 1, no/yes 1; 10 yes and 6 no of 16.
    pairs = [("yes", "yes")] * 4 + [("no", "no")] * 2 + [("yes", "no"), ("no", "yes")]
    found = measure_agreement([{"one": a, "two": b} for a, b in pairs])
    assert found.agreement == 0.75
    # Expected disagreement without replacement: 2 * 10 * 6 / (16 * 15) = 0.5; observed 0.25.
    assert found.alpha == pytest.approx(1 - 0.25 / 0.5)


def test_a_label_that_is_missing_is_counted_and_left_out() -> None:
    items: list[Labels] = [
        {"one": "yes", "two": "yes", "three": None},
        {"one": "no", "two": None, "three": None},
        {"one": "yes", "two": "no", "three": "yes"},
        {"one": "yes", "two": "yes"},
    ]
    found = measure_agreement(items)
    assert (found.judges, found.items, found.compared) == (("one", "two", "three"), 4, 3)
    assert found.agreement == pytest.approx((1 + 1 / 3 + 1) / 3)
    assert found.unlabelled == {"one": 0, "two": 1, "three": 2}


@pytest.mark.parametrize("items", [[], [{"one": "yes", "two": None}]])
def test_nothing_to_compare_has_no_agreement(items: list[Labels]) -> None:
    found = measure_agreement(items)
    assert (found.compared, found.agreement, found.alpha) == (0, None, None)


def test_alpha_is_undefined_if_all_labels_are_equal() -> None:
    found = measure_agreement([{"one": "yes", "two": "yes"}] * 3)
    assert (found.agreement, found.alpha) == (1.0, None)
