"""Slices: how rows are divided, and which slices are worse than the other rows."""

from collections.abc import Mapping

import numpy as np
import pytest

from metric_core.gates.checks import GateFacts, check_gate
from metric_core.gates.rules import AbsoluteRule, Gate, Outcome, SliceSelection, Statistic, Threshold
from metric_core.records import Direction, Score
from metric_core.statistics.bounded_means import BoundedMean
from metric_core.statistics.comparison import ChangeOutcome
from metric_core.statistics.pairs import ScoreColumns
from metric_core.statistics.slice_comparison import compare_slices
from metric_core.statistics.slice_summary import ColumnSummary, SlicedCells, summarize_slices
from metric_core.statistics.slices import NO_VALUE, OTHER_VALUES, Slice, divide_rows

SIZES = {"good": 60, "poor": 60, "few": 3, None: 8}


def topics(sizes: Mapping[str | None, int]) -> dict[str, str | None]:
    return {f"{value} {i}": value for value, size in sizes.items() for i in range(size)}


def summarize(
    means: Mapping[str | None, float],
    sizes: Mapping[str | None, int],
    direction: Direction = Direction.HIGHER,
    group_size: int = 1,
) -> ColumnSummary:
    """Summarize rows of 0 and 1 whose means by topic are as given."""
    rows = topics(sizes)
    slices = [divide_rows("topic", rows)]
    cells = SlicedCells("faithfulness", direction, (0.0, 1.0), is_grouped=group_size > 1)
    counted = []
    for value, size in sizes.items():
        ones = round(means[value] * size)
        counted += [(f"{value} {i}", Score.scored(float(i < ones)), f"{value} {i // group_size}") for i in range(size)]
    cells.add_all(counted, slices)
    [column] = summarize_slices([cells], slices)
    return column


def test_rows_without_a_value_are_a_slice_of_their_own_and_come_last() -> None:
    sliced = divide_rows("topic", topics(SIZES) | {"blank": " ", "padded": " few "})
    assert sliced.sizes == {"good": 60, "poor": 60, "few": 4, NO_VALUE: 9}
    assert sliced.find("None 1") == Slice("topic", NO_VALUE)
    assert sliced.find("unknown") is None
    assert sliced.distinct == 3


def test_the_rarest_values_are_one_slice_if_there_are_too_many() -> None:
    sliced = divide_rows("topic", topics({f"t{i}": 9 - i for i in range(8)} | {None: 2}), most=4)
    assert sliced.sizes == {"t0": 9, "t1": 8, "t2": 7, NO_VALUE: 2, OTHER_VALUES: 6 + 5 + 4 + 3 + 2}
    assert (sliced.merged, sliced.distinct) == (5, 8)


def test_of_equally_frequent_values_the_first_in_the_alphabet_are_kept() -> None:
    for order in ("abcd", "dcba"):
        sliced = divide_rows("topic", {letter: letter for letter in order}, most=3)
        assert set(sliced.sizes) == {"a", "b", OTHER_VALUES}


def test_a_slice_is_named_in_one_short_line() -> None:
    assert str(Slice("topic", "a\nb")) == "topic a b"
    assert str(Slice("topic", "x" * 500)) == f"topic {'x' * 80}…"
    assert str(Slice("topic", OTHER_VALUES)) == "other values of topic"


def test_data_that_hold_the_reserved_words_belong_to_these_slices() -> None:
    sliced = divide_rows("topic", {"a": NO_VALUE, "b": None, "c": "x"})
    assert sliced.sizes == {"x": 1, NO_VALUE: 2}
    assert sliced.distinct == 1


@pytest.mark.parametrize(("direction", "worse"), [(Direction.HIGHER, "poor"), (Direction.LOWER, "good")])
def test_a_slice_is_worse_in_the_direction_of_the_metric(direction: Direction, worse: str) -> None:
    column = summarize({"good": 0.95, "poor": 0.6, "few": 0.7, None: 0.75}, SIZES, direction)
    rests = {one.value: one.metrics[0].rest for one in column.slices}
    assert [value for value, rest in rests.items() if rest is not None and rest.is_worse] == [worse]
    assert rests["few"] is None
    found = rests[worse]
    assert found is not None
    assert found.p < 0.01


def test_small_slices_are_called_small_and_have_intervals_that_hold() -> None:
    column = summarize({"good": 1.0, "poor": 1.0, "few": 1.0, None: 1.0}, SIZES)
    assert {one.value: one.is_small for one in column.slices} == {
        "good": False,
        "poor": False,
        "few": True,
        NO_VALUE: True,
    }
    distributions = {one.value: one.metrics[0].distribution for one in column.slices}
    few, none = distributions["few"], distributions[NO_VALUE]
    assert few is not None
    assert none is not None
    assert few.interval is None
    assert none.interval is not None
    assert (round(none.interval.low, 2), none.interval.high) == (0.69, 1.0)


def test_one_bad_slice_of_many_that_are_alike_needs_more_evidence() -> None:
    """One test of this slice alone would say worse; over forty slices it may be chance."""
    means: dict[str | None, float] = {f"t{i}": 0.9 if i else 0.75 for i in range(40)}
    column = summarize(means, dict.fromkeys(means, 40))
    rest = column.slices[0].metrics[0].rest
    assert rest is not None
    assert not rest.is_worse
    few: dict[str | None, float] = {"t0": 0.75, "t1": 0.9}
    [first, _] = summarize(few, {"t0": 40, "t1": 1560}).slices[::-1]
    assert first.value == "t0"
    assert first.metrics[0].rest is not None
    assert first.metrics[0].rest.is_worse


def test_rows_of_few_groups_are_not_compared_with_the_others() -> None:
    means: dict[str | None, float] = {"good": 1.0, "poor": 0.0}
    column = summarize(means, dict.fromkeys(means, 40), group_size=20)
    assert all(one.metrics[0].rest is None for one in column.slices)
    column = summarize(means, dict.fromkeys(means, 40), group_size=5)
    assert [one.value for one in column.slices if one.metrics[0].rest and one.metrics[0].rest.is_worse] == ["poor"]


def test_in_a_slice_of_one_group_the_rows_are_the_units() -> None:
    rows = topics({"acme": 60, "bosk": 20, "cato": 20})
    customers = {row: str(value) for row, value in rows.items()}
    cells = {row: Score.scored(float(not row.startswith("acme"))) for row in rows}
    sliced = divide_rows("customer", customers)
    columns = ScoreColumns(
        metric="faithfulness",
        direction=Direction.HIGHER,
        a=dict.fromkeys(rows, Score.scored(1.0)),
        b=cells,
        groups=customers,
        bounds=(0.0, 1.0),
    )
    verdicts = {each.slice.value: each.comparison for each in compare_slices([columns], [sliced])}
    assert verdicts["acme"].verdict is ChangeOutcome.WORSE
    rule = AbsoluteRule("faithfulness", Statistic.MEAN, Threshold(0.5), SliceSelection("customer", ("acme",)))
    [check] = check_gate(Gate(absolute=(rule,)), [columns], facts=GateFacts(slices=(sliced,))).checks
    assert check.outcome is Outcome.FAILED
    counted = SlicedCells("faithfulness", Direction.HIGHER, (0.0, 1.0), is_grouped=True)
    counted.add_all(((row, cells[row], customers[row]) for row in rows), [sliced])
    [column] = summarize_slices([counted], [sliced])
    [acme] = [one for one in column.slices if one.value == "acme"]
    assert acme.metrics[0].distribution is not None
    assert acme.metrics[0].distribution.interval is not None


def test_metrics_without_a_direction_bounds_or_one_scale_are_summarized_only() -> None:
    rows = topics({"x": 20, "y": 20})
    slices = [divide_rows("topic", rows)]
    scores = {
        "neither": Score.scored(0.5),
        "unbounded": Score.scored(7.0),
        "category": Score.labelled("formal"),
        "scales": Score.scored(4.0, "1/5"),
        "failed": Score.failed("no usable reply"),
    }
    counted = []
    for metric, score in scores.items():
        direction = Direction.NEITHER if metric == "neither" else Direction.HIGHER
        cells = SlicedCells(metric, direction, None if metric == "unbounded" else (0.0, 1.0))
        cells.add_all(((row, score, "") for row in rows), slices)
        counted.append(cells)
    [column] = summarize_slices(counted, slices)
    for one in column.slices:
        assert all(metric.rest is None for metric in one.metrics)
        by_metric = {metric.metric: metric for metric in one.metrics}
        assert by_metric["category"].categories == {"formal": 20}
        assert by_metric["scales"].scales["1/5"].count == 20
        assert by_metric["failed"].failed == 20


def test_the_same_rows_give_the_same_numbers_in_any_order() -> None:
    generator = np.random.default_rng(1)
    rows = topics({"x": 60, "y": 60})
    scored = [(row, Score.scored(float(value)), "") for row, value in zip(rows, generator.random(120), strict=True)]
    found = []
    for order in (scored, scored[::-1]):
        slices = [divide_rows("topic", rows)]
        cells = SlicedCells("faithfulness", Direction.HIGHER, (0.0, 1.0))
        cells.add_all(order, slices)
        found.append(summarize_slices([cells], slices))
    assert found[0][0].slices[0].metrics[0].rest == found[1][0].slices[0].metrics[0].rest


RUNS, SLICES, ROWS = 100, 10, 30


def least_p(kind: str, seed: int) -> float:
    """Return the least corrected p-value over slices of rows of 0 and 1 with a mean of 0.9, of which none is bad."""
    generator = np.random.default_rng([seed, len(kind)])
    rows = {f"{i:03}": f"s{i % SLICES}" for i in range(SLICES * ROWS)}
    sliced = divide_rows("slice", rows)
    a, b = ({row: Score.scored(float(generator.random() < 0.9)) for row in rows} for _ in range(2))
    if kind == "summary":
        cells = SlicedCells("m", Direction.HIGHER, (0.0, 1.0))
        cells.add_all(((row, score, "") for row, score in b.items()), [sliced])
        [column] = summarize_slices([cells], [sliced])
        return min(one.metrics[0].rest.p for one in column.slices if one.metrics[0].rest)
    before = a if kind == "comparison" else {}
    columns = ScoreColumns(metric="m", direction=Direction.HIGHER, a=before, b=b, bounds=(0.0, 1.0))
    if kind == "comparison":
        differences = [part.comparison.difference for part in compare_slices([columns], [sliced], seed)]
        return min(found.p_adjusted for found in differences if found and found.p_adjusted is not None)
    rule = AbsoluteRule("m", Statistic.MEAN, Threshold(0.9), SliceSelection("slice"))
    checks = check_gate(Gate(absolute=(rule,)), [columns], seed, GateFacts(slices=[sliced])).checks
    return min(check.p for check in checks if check.p is not None)


@pytest.mark.simulation
@pytest.mark.parametrize("kind", ["gate", "comparison", "summary"])
def test_any_slice_is_called_bad_by_chance_in_at_most_5_of_100_runs(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("metric_core.gates.drafts._advise_rows", lambda *_: "")
    monkeypatch.setattr(BoundedMean.__init__, "__defaults__", ("", 499))
    least = np.array([least_p(kind, seed) for seed in range(RUNS)])
    assert (least <= 0.05).mean() <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / RUNS)
    assert (least / SLICES <= 0.05).mean() >= 0.12, "without the correction it would be far more"
