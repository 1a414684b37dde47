"""Rules about slices: a check for each, corrected together; slices with too few rows; slices that are not there."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from metric_core.errors import ConfigError
from metric_core.gates.checks import GateFacts, check_gate
from metric_core.gates.rules import (
    AbsoluteRule,
    Count,
    CoverageRule,
    Gate,
    GateResult,
    Outcome,
    RegressionRule,
    SliceSelection,
    Statistic,
    Threshold,
)
from metric_core.records import Direction, Score
from metric_core.statistics.bounded_means import BoundedMean
from metric_core.statistics.pairs import ScoreColumns
from metric_core.statistics.slices import NO_VALUE, Slice, divide_rows

TOPIC = SliceSelection("topic")


def run_of(means: Mapping[str | None, float], sizes: Mapping[str | None, int]) -> dict[str, Score]:
    """Return rows of 0 and 1 with these means by topic."""
    return {
        f"{topic} {i}": Score.scored(float(i < round(means[topic] * size)))
        for topic, size in sizes.items()
        for i in range(size)
    }


def apply(gate: Gate, b: Mapping[str, Score], a: Mapping[str, Score] | None = None) -> GateResult:
    before = a or {}
    column = ScoreColumns(metric="faithfulness", direction=Direction.HIGHER, a=before, b=b, bounds=(0.0, 1.0))
    topics = {row: None if row.startswith("None") else row.split()[0] for row in (*before, *b)}
    return check_gate(gate, [column], facts=GateFacts(slices=[divide_rows("topic", topics)]))


def mean_rule(least: float, slices: SliceSelection | None = TOPIC) -> AbsoluteRule:
    return AbsoluteRule("faithfulness", Statistic.MEAN, Threshold(least), slices)


def outcomes(result: GateResult) -> dict[str, Outcome]:
    return {check.subject: check.outcome for check in result.checks}


MEANS: dict[str | None, float] = {"travel": 0.95, "leave": 0.5, "few": 1.0, None: 0.95}
SIZES: dict[str | None, int] = {"travel": 100, "leave": 100, "few": 4, None: 60}


def test_every_slice_of_a_column_has_a_check_of_its_own() -> None:
    result = apply(Gate(absolute=(mean_rule(0.8), mean_rule(0.7, None))), run_of(MEANS, SIZES))
    assert outcomes(result) == {
        "faithfulness, topic leave": Outcome.FAILED,
        "faithfulness, topic travel": Outcome.PASSED,
        "faithfulness, topic few": Outcome.INCONCLUSIVE,
        "faithfulness, no topic": Outcome.PASSED,
        "faithfulness": Outcome.PASSED,
    }
    assert result.outcome is Outcome.FAILED
    assert [check.slice for check in result.checks][-1] is None
    assert {check.slice for check in result.checks} >= {Slice("topic", "leave"), Slice("topic", NO_VALUE)}


def test_a_rule_may_name_slices() -> None:
    rule = mean_rule(0.8, SliceSelection("topic", ("travel", "gone")))
    result = apply(Gate(absolute=(rule,)), run_of(MEANS, SIZES))
    assert outcomes(result) == {
        "faithfulness, topic travel": Outcome.PASSED,
        "faithfulness, topic gone": Outcome.INCONCLUSIVE,
    }
    assert result.checks[1].reason == "no row of the slice has a score"


def test_small_slices_are_left_out_where_the_gate_says_so_and_are_named() -> None:
    gate = Gate(absolute=(mean_rule(0.8),), skips_small_slices=True)
    sizes = {**SIZES, "leave": 29}
    result = apply(gate, run_of(MEANS, sizes))
    assert result.outcome is Outcome.PASSED
    assert list(outcomes(result)) == ["faithfulness, topic travel", "faithfulness, no topic"]
    assert result.left_out == (
        "faithfulness, mean at least 0.8: left out for too few rows: topic leave (29), topic few (4)",
    )


def test_a_rule_with_small_slices_only_has_decided_nothing() -> None:
    gate = Gate(absolute=(mean_rule(0.8),), skips_small_slices=True)
    result = apply(gate, run_of(MEANS, dict.fromkeys(SIZES, 10)))
    assert result.outcome is Outcome.INCONCLUSIVE
    [check] = result.checks
    assert (check.subject, check.reason) == ("faithfulness", "every slice of topic has too few rows")


def test_all_slices_count_for_the_correction() -> None:
    """A slice that fails by itself is inconclusive among forty others that are just as likely to be bad by chance."""
    one: dict[str | None, float] = {"t0": 0.65}
    many: dict[str | None, float] = one | {f"t{i}": 0.8 for i in range(1, 40)}
    gate = Gate(absolute=(mean_rule(0.8),))
    alone = apply(gate, run_of(one, dict.fromkeys(one, 40)))
    among = apply(gate, run_of(many, dict.fromkeys(many, 40)))
    assert outcomes(alone)["faithfulness, topic t0"] is Outcome.FAILED
    assert outcomes(among)["faithfulness, topic t0"] is Outcome.INCONCLUSIVE
    [check] = [check for check in among.checks if check.slice == Slice("topic", "t0")]
    assert check.reason.startswith("violates the threshold, but with this many rules that may be chance")


def test_a_collapsed_slice_fails_among_many_with_scores_of_any_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    """The p-value is not limited by the number of draws: of 499 draws, 30 checks need one of less than 0.002."""
    monkeypatch.setattr(BoundedMean.__init__, "__defaults__", ("", 499))
    topics = {f"t{i} {j}": 0.1 + j / 400 if i == 0 else 0.85 + j / 400 for i in range(30) for j in range(40)}
    result = apply(Gate(absolute=(mean_rule(0.8),)), {row: Score.scored(value) for row, value in topics.items()})
    assert outcomes(result)["faithfulness, topic t0"] is Outcome.FAILED


def test_a_regression_is_found_in_its_slice() -> None:
    b = run_of(MEANS, SIZES)
    a = run_of({**MEANS, "leave": 0.95}, SIZES)
    gate = Gate(regression=(RegressionRule(None, 0.1, TOPIC), RegressionRule(("faithfulness",), 0.4)))
    result = apply(gate, b, a)
    assert outcomes(result) == {
        "faithfulness, topic leave": Outcome.FAILED,
        "faithfulness, topic travel": Outcome.PASSED,
        "faithfulness, topic few": Outcome.INCONCLUSIVE,
        "faithfulness, no topic": Outcome.PASSED,
        "faithfulness": Outcome.PASSED,
    }


def test_a_slice_of_one_run_alone_is_not_passed_over() -> None:
    both: dict[str | None, int] = {"travel": 100}
    a, b = run_of(MEANS, both | {"leave": 100}), run_of(MEANS, both | {"few": 100})
    gate = Gate(regression=(RegressionRule(None, 0.1, TOPIC),))
    result = apply(gate, b, a)
    assert outcomes(result)["faithfulness, topic leave"] is Outcome.INCONCLUSIVE
    assert outcomes(result)["faithfulness, topic few"] is Outcome.INCONCLUSIVE
    assert result.checks[1].reason == "no row is scored in both runs"
    skipped = apply(replace(gate, skips_small_slices=True), b, a)
    assert (skipped.outcome, len(skipped.left_out)) == (Outcome.PASSED, 1)
    absolute = apply(Gate(absolute=(mean_rule(0.8),)), b, a)
    assert list(outcomes(absolute)) == ["faithfulness, topic few", "faithfulness, topic travel"]


def test_coverage_is_a_fact_about_each_slice() -> None:
    cells = run_of(MEANS, SIZES) | {f"leave {i}": Score.failed("no usable reply") for i in range(20)}
    rule = CoverageRule(None, Count.FAILED, Threshold(0.1, is_floor=False), TOPIC)
    result = apply(Gate(coverage=(rule,)), cells)
    found = {check.subject: (check.outcome, check.observed) for check in result.checks}
    assert found["faithfulness, topic leave"] == (Outcome.FAILED, 0.2)
    assert found["faithfulness, topic few"] == (Outcome.PASSED, 0.0)


def test_rows_that_are_not_sliced_by_the_column_of_a_rule_are_refused() -> None:
    with pytest.raises(ConfigError, match="a rule about slices by customer, but the rows are sliced by: topic"):
        apply(Gate(absolute=(mean_rule(0.8, SliceSelection("customer")),)), run_of(MEANS, SIZES))
