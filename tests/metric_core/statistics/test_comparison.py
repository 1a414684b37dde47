"""Comparisons of two runs: pairing, direction, determinism, and what they must never say."""

import json
import math
from collections import Counter
from dataclasses import asdict
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from metric_core.records import Direction, Score
from metric_core.statistics.comparison import ChangeOutcome, MetricComparison, compare_metrics
from metric_core.statistics.pairs import ScoreColumns

Cells = dict[str, Score]


def cells(values: list[float]) -> Cells:
    return {f"row {i:03}": Score.scored(value) for i, value in enumerate(values)}


def columns(a: Cells, b: Cells, direction: Direction = Direction.HIGHER, **more: object) -> ScoreColumns:
    return ScoreColumns(metric=str(more.get("metric", "faithfulness")), direction=direction, a=a, b=b, bounds=(0, 1))


def only(found: list[MetricComparison]) -> MetricComparison:
    [comparison] = found
    return comparison


LOW, HIGH = cells([0.2, 0.3, 0.4, 0.1] * 10), cells([0.8, 0.7, 0.9, 0.6] * 10)


@pytest.mark.parametrize(
    ("direction", "up", "down"),
    [
        (Direction.HIGHER, ChangeOutcome.BETTER, ChangeOutcome.WORSE),
        (Direction.LOWER, ChangeOutcome.WORSE, ChangeOutcome.BETTER),
        (Direction.NEITHER, ChangeOutcome.DIFFERENT, ChangeOutcome.DIFFERENT),
    ],
)
def test_what_is_better_follows_the_direction(direction: Direction, up: ChangeOutcome, down: ChangeOutcome) -> None:
    risen = only(compare_metrics([columns(LOW, HIGH, direction)]))
    fallen = only(compare_metrics([columns(HIGH, LOW, direction)]))
    assert (risen.verdict, fallen.verdict) == (up, down)
    assert risen.difference is not None
    assert risen.difference.mean > 0
    gained = risen.difference.worsened if direction is Direction.LOWER else risen.difference.improved
    assert gained == 40


def test_only_rows_scored_in_both_count_and_all_others_are_counted() -> None:
    a = {
        "both": Score.scored(0.5),
        "only a": Score.scored(0.0),
        "lost": Score.scored(0.0),
        "won": Score.failed("no usable reply"),
        "neither": Score.undefined("no claims"),
        "moved": Score.scored(3, "1-5"),
    }
    b = {
        "both": Score.scored(1.0),
        "only b": Score.scored(0.0),
        "lost": Score.failed("no usable reply"),
        "won": Score.scored(0.0),
        "neither": Score.undefined("no claims"),
        "moved": Score.scored(3, "1-3"),
    }
    found = only(compare_metrics([columns(a, b)]))
    rows = asdict(found.rows)
    assert rows == dict.fromkeys(rows, 1)
    assert found.difference is not None
    assert (found.difference.mean_a, found.difference.mean_b, found.difference.interval) == (0.5, 1.0, None)
    assert found.verdict is ChangeOutcome.NOT_COMPARED


@pytest.mark.simulation
def test_equally_many_missing_scores_of_different_rows_leave_a_difference_undecided() -> None:
    generator, counted = np.random.default_rng(5), Counter[ChangeOutcome]()
    for seed in range(12):
        quality = generator.beta(2, 2, 300)
        a, b = (np.clip(quality + generator.normal(0, 0.2, 300), 0, 1) for _ in range(2))
        gone_a, gone_b = a >= np.quantile(a, 0.7), b <= np.quantile(b, 0.3)
        cells = [
            {f"{i:03}": Score.failed("no reply") if gone[i] else Score.scored(values[i]) for i in range(300)}
            for values, gone in ((a, gone_a), (b, gone_b))
        ]
        both = ScoreColumns(
            metric="faithfulness", direction=Direction.HIGHER, a=cells[0], b=cells[1], bounds=(0.0, 1.0)
        )
        [found] = compare_metrics([both], seed)
        counted[found.verdict] += 1
        assert found.difference is not None
        assert found.difference.missing is not None
        assert found.difference.missing.p > 0.05
    assert counted[ChangeOutcome.UNDECIDED] == 12


def test_missing_scores_may_turn_a_difference_around_together_with_chance() -> None:
    rows = [f"{i:02}" for i in range(80)]
    generator = np.random.default_rng(4)
    a = {row: Score.scored(float(value)) for row, value in zip(rows, generator.uniform(0.2, 0.6, 80), strict=True)}
    b = {row: Score.scored(min(1.0, (a[row].value or 0) + generator.uniform(0, 0.3))) for row in rows}
    b |= {row: Score.failed("no usable reply") for row in rows[:21]}
    groups = {row: str(number // 2) for number, row in enumerate(rows)}
    compared = {}
    for name, known in (("rows", None), ("groups", groups)):
        columns = ScoreColumns(metric="m", direction=Direction.HIGHER, a=a, b=b, groups=known, bounds=(0.0, 1.0))
        [compared[name]] = compare_metrics([columns])
        difference = compared[name].difference
        assert difference is not None
        assert difference.missing is not None
        missing = difference.missing
        assert missing.worst_case is not None
        assert missing.limits is not None
        # Filled with the worst scores, the mean is still above 0; the mean of other such rows need not be.
        assert missing.limits.low < 0 < missing.worst_case.low < missing.worst_case.high < missing.limits.high
        assert compared[name].verdict is ChangeOutcome.UNDECIDED


def test_scales_of_their_own_are_never_mixed() -> None:
    a = {"x": Score.scored(1, "1-5"), "y": Score.scored(0, "0-1"), "z": Score.scored(3, "1-5")}
    b = {"x": Score.scored(5, "1-5"), "y": Score.scored(1, "0-1"), "z": Score.scored(3, "1-5")}
    found = compare_metrics([columns(a, b)])
    assert [(part.scale, part.rows.paired) for part in found] == [("0-1", 1), ("1-5", 2)]
    assert [part.difference.mean for part in found if part.difference] == [1.0, 2.0]


def test_categories_are_counted_not_averaged() -> None:
    a = {"x": Score.labelled("formal"), "y": Score.labelled("formal")}
    b = {"x": Score.labelled("formal"), "y": Score.labelled("casual")}
    found = only(compare_metrics([columns(a, b)]))
    assert found.difference is None
    assert (found.categories, found.relabelled) == ({"casual": (0, 1), "formal": (2, 1)}, 1)
    assert found.verdict is ChangeOutcome.NOT_COMPARED


def test_p_values_are_corrected_over_all_metrics() -> None:
    alone = only(compare_metrics([columns(LOW, HIGH)]))
    several = compare_metrics(
        [columns(LOW, HIGH, metric="a"), columns(LOW, LOW, metric="b"), columns(LOW, LOW, metric="c")]
    )
    assert alone.difference is not None
    assert alone.difference.test is not None
    adjusted = several[0].difference.p_adjusted if several[0].difference else None
    assert adjusted == pytest.approx(3 * alone.difference.test.p)


def test_the_rows_that_changed_most_come_first_and_unchanged_ones_never() -> None:
    a, b = cells([0.5] * 5), cells([0.5, 0.7, 0.0, 0.6, 0.5])
    found = only(compare_metrics([columns(a, b)], most_changed=10))
    assert found.difference is not None
    assert [row.row for row in found.difference.most_changed] == ["row 002", "row 001", "row 003"]


def test_a_constant_difference_has_an_interval() -> None:
    found = only(compare_metrics([columns(cells([0.1, 0.2, 0.3] * 5), cells([0.2, 0.3, 0.4] * 5))]))
    assert found.difference is not None
    assert found.difference.interval is not None
    assert found.difference.interval.low < 0.1 < found.difference.interval.high


def test_groups_widen_what_is_not_independent() -> None:
    a = cells([0.5] * 40)
    b = cells([0.9] * 10 + [0.4] * 10 + [0.8] * 10 + [0.5] * 10)
    groups = {row: f"document {i // 5}" for i, row in enumerate(a)}
    apart = only(compare_metrics([columns(a, b)]))
    grouped = ScoreColumns(metric="faithfulness", direction=Direction.HIGHER, a=a, b=b, groups=groups, bounds=(0, 1))
    together = only(compare_metrics([grouped]))
    assert (apart.verdict, together.verdict) == (ChangeOutcome.BETTER, ChangeOutcome.UNCLEAR)
    assert together.difference is not None
    assert together.difference.groups == 8


VALUES = st.lists(st.sampled_from([0.0, 0.25, 1 / 3, 0.5, 1.0]), min_size=2, max_size=12)


@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(before=VALUES, after=VALUES, seed=st.integers(0, 2**31), shuffle=st.randoms(use_true_random=False))
def test_the_order_of_rows_changes_nothing_and_the_seed_decides_all(
    before: list[float], after: list[float], seed: int, shuffle: object
) -> None:
    a, b = cells(before), cells(after)
    found = compare_metrics([columns(a, b)], seed)
    mixed = list(a.items())
    shuffle.shuffle(mixed)  # type: ignore[attr-defined]
    assert compare_metrics([columns(dict(mixed), dict(reversed(b.items())))], seed) == found
    assert compare_metrics([columns(a, b)], seed) == found


@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(before=VALUES, after=VALUES, grouped=st.booleans())
def test_nothing_is_ever_nan_and_the_interval_holds_the_difference(
    before: list[float], after: list[float], grouped: bool
) -> None:
    a, b = cells(before), cells(after)
    groups = {row: row[-1] for row in a} if grouped else None
    both = ScoreColumns(metric="m", direction=Direction.LOWER, a=a, b=b, groups=groups, bounds=(0, 1))
    found = only(compare_metrics([both]))
    json.dumps(asdict(found), allow_nan=False)
    assert found.difference is not None
    if found.difference.interval is not None:
        ends = (found.difference.interval.low, found.difference.mean, found.difference.interval.high)
        assert all(left <= right + 1e-9 for left, right in pairwise(ends))
        assert all(map(math.isfinite, ends))


def test_other_metrics_do_not_change_an_interval() -> None:
    generator = np.random.default_rng(4)
    a, b = (cells(list(generator.random(30))) for _ in range(2))
    alone = only(compare_metrics([columns(a, b)]))
    beside = compare_metrics([columns(b, a, metric="other"), columns(a, b)])[1]
    assert alone.difference is not None
    assert beside.difference is not None
    assert alone.difference.interval == beside.difference.interval
