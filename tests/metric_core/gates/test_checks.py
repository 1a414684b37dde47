"""Gates: the outcomes of every kind of rule, and of rules together."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import beta

from metric_core.errors import ConfigError
from metric_core.gates.checks import GateFacts, check_gate
from metric_core.gates.rules import (
    AbsoluteRule,
    Check,
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
from metric_core.gates.thresholds import Confidence, check_mean, check_quantile
from metric_core.records import Direction, Score
from metric_core.statistics.bounded_means import Bounds
from metric_core.statistics.judge_variance import JudgeVariance
from metric_core.statistics.pairs import ScoreColumns
from metric_core.statistics.resampling import Units
from metric_core.statistics.slices import divide_rows
from metric_core.statistics.summary import RowValues

Cells = dict[str, Score]


def cells(values: list[float]) -> Cells:
    return {f"row {i:03}": Score.scored(value) for i, value in enumerate(values)}


GOOD, FAIR, POOR = (cells([level, level + 0.1] * 30) for level in (0.85, 0.75, 0.4))


def columns(b: Cells, a: Cells | None = None, direction: Direction = Direction.HIGHER) -> ScoreColumns:
    return ScoreColumns(metric="faithfulness", direction=direction, a=a or {}, b=b, bounds=(0.0, 1.0))


def apply_gate(gate: Gate, *found: ScoreColumns) -> list[Check]:
    return list(check_gate(gate, found).checks)


def mean_rule(threshold: float, is_floor: bool = True) -> Gate:
    return Gate(absolute=(AbsoluteRule("faithfulness", Statistic.MEAN, Threshold(threshold, is_floor)),))


@pytest.mark.parametrize(
    ("b", "outcome"), [(GOOD, Outcome.PASSED), (FAIR, Outcome.INCONCLUSIVE), (POOR, Outcome.FAILED)]
)
def test_a_mean_passes_fails_or_straddles_its_threshold(b: Cells, outcome: Outcome) -> None:
    result = check_gate(mean_rule(0.8), [columns(b)])
    assert result.outcome is outcome
    [check] = result.checks
    assert check.interval is not None
    assert check.interval.low <= (check.observed or 0) <= check.interval.high


def test_a_ceiling_is_a_floor_turned_over() -> None:
    found = ScoreColumns(metric="noise_sensitivity", direction=Direction.LOWER, a={}, b=POOR, bounds=(0, 1))
    rule = AbsoluteRule("noise_sensitivity", Statistic.MEAN, Threshold(0.2, is_floor=False))
    assert check_gate(Gate(absolute=(rule,)), [found]).outcome is Outcome.FAILED


def test_too_few_rows_tell_nothing() -> None:
    few = dict(list(POOR.items())[:29])
    [check] = apply_gate(mean_rule(0.8), columns(few))
    assert (check.outcome, check.reason) == (Outcome.INCONCLUSIVE, "29 rows, wanted at least 30 rows")


def test_all_ones_are_no_proof_of_a_high_bar_when_rows_are_few() -> None:
    ones = cells([1.0] * 30)
    assert check_gate(mean_rule(0.95), [columns(ones)]).outcome is Outcome.INCONCLUSIVE
    assert check_gate(mean_rule(0.9), [columns(ones)]).outcome is Outcome.PASSED
    assert check_gate(mean_rule(1.0), [columns(ones)]).outcome is Outcome.PASSED
    assert check_gate(mean_rule(1.0), [columns({**ones, "row 000": Score.scored(0)})]).outcome is Outcome.FAILED


def test_the_exact_limits_of_a_share_against_published_values() -> None:
    # Clopper and Pearson: 8 of 10 at 95 % two-sided are 0.444 to 0.975, so each end alone holds at 97.5 %.
    units = Units.from_values(np.array([1.0] * 8 + [0.0] * 2))
    found = check_mean(units, Threshold(0.5), Confidence(0.975), Bounds(0.0, 1.0))
    assert found.interval is not None
    assert (found.interval.low, found.interval.high) == pytest.approx((0.4439, 0.9748), abs=1e-4)


def test_looks_share_the_error_of_failure_alone() -> None:
    """Of 200 rows, 172 are good: a sure failure of a bar of 0.91 at one look, but not at one of 366."""
    found = columns(cells([1.0] * 172 + [0.0] * 28))
    rule = AbsoluteRule("faithfulness", Statistic.MEAN, Threshold(0.91))
    [once] = apply_gate(Gate(absolute=(rule,)), found)
    [nightly] = apply_gate(Gate(absolute=(rule,), looks=366), found)
    assert (once.outcome, nightly.outcome) == (Outcome.FAILED, Outcome.INCONCLUSIVE)
    assert nightly.reason.startswith("violates the threshold, but with this many looks that may be chance")
    assert once.p is not None
    assert nightly.p == pytest.approx(min(1.0, 366 * once.p))
    assert once.interval is not None
    assert nightly.interval == once.interval
    assert once.interval.high == pytest.approx(beta.ppf(0.95, 173, 28), abs=1e-6)  # Clopper and Pearson
    [passed] = apply_gate(Gate(absolute=(replace(rule, threshold=Threshold(0.8)),), looks=366), found)
    assert passed.outcome is Outcome.PASSED


def test_the_noise_of_the_judge_decides_nothing() -> None:
    """170 of 200 rows are good: a gate at 0.8 that takes inconclusive as failed is just passed."""
    found = columns(cells([1.0] * 170 + [0.0] * 30))
    noisy = JudgeVariance(60, 0.02, None, 0.0, 0.02)  # of a mean of 200 rows: 0.023 to both sides

    def check(threshold: float, undecided: Outcome, variance: JudgeVariance | None = noisy) -> Check:
        rule = AbsoluteRule("faithfulness", Statistic.MEAN, Threshold(threshold))
        facts = GateFacts(judge_variances={} if variance is None else {"faithfulness": variance})
        gate = Gate(absolute=(rule,), undecided=undecided)
        return check_gate(gate, [found], facts=facts).checks[0]

    assert check(0.8, Outcome.FAILED, None).outcome is Outcome.PASSED
    refused = check(0.8, Outcome.FAILED)
    assert (refused.outcome, refused.is_noise) == (Outcome.INCONCLUSIVE, True)
    assert refused.reason.startswith("within the judge's noise: judged again, the same answers may pass or fail")
    assert check(0.75, Outcome.FAILED).outcome is Outcome.PASSED
    for undecided in (Outcome.PASSED, Outcome.INCONCLUSIVE):
        kept = check(0.8, undecided)
        assert (kept.outcome, kept.is_noise) == (Outcome.PASSED, False)
        assert "; within the judge's noise: judged again, it may be inconclusive" in kept.reason


def test_a_second_judgment_settles_a_gate_that_the_noise_of_the_judge_could_turn() -> None:
    """Of 200 rows 170 are good, which is at least 0.802 of all; the noise is 0.023, and 0.016 of two judgments."""
    found = columns(cells([1.0] * 170 + [0.0] * 30))
    topics = divide_rows("topic", {row: "travel" if row < "row 190" else "other" for row in found.b})
    rules = (
        AbsoluteRule("faithfulness", Statistic.MEAN, Threshold(0.784)),
        AbsoluteRule("faithfulness", Statistic.MEAN, Threshold(0.3), SliceSelection("topic", ("travel",))),
    )
    facts = GateFacts(judge_variances={"faithfulness": JudgeVariance(60, 0.02, None, 0.0, 0.02)}, slices=[topics])

    def apply(column: ScoreColumns) -> GateResult:
        return check_gate(Gate(absolute=rules, undecided=Outcome.FAILED), [column], facts=facts)

    once = apply(found)
    assert (once.outcome, once.unsettled) == (Outcome.INCONCLUSIVE, (("faithfulness", None),))
    again = {row: (cell.value or 0.0, cell.value or 0.0) for row, cell in found.b.items()}
    twice = apply(found.average(again))
    assert (twice.outcome, twice.unsettled) == (Outcome.PASSED, ())
    assert apply(found.average(dict(list(again.items())[:20]))).outcome is Outcome.INCONCLUSIVE
    worse = apply(found.average({row: (first, 0.0) for row, (first, _) in again.items()}))
    assert worse.checks[0].observed == pytest.approx(0.425)
    assert worse.outcome is Outcome.FAILED


def test_limits_are_the_same_however_many_looks_share_the_error() -> None:
    units = Units.from_values(np.linspace(0.5, 1.0, 120))
    once, often = (
        check_mean(units, Threshold(0.8), Confidence(0.95, looks=looks), Bounds(0.0, 1.0)) for looks in (1, 366)
    )
    assert once == often
    assert once.interval is not None
    for threshold, is_significant in ((once.interval.high + 0.001, True), (once.interval.high - 0.001, False)):
        assert (check_mean(units, Threshold(threshold), Confidence(0.95), Bounds(0, 1)).p_met <= 0.05) is is_significant


def test_the_least_value_is_a_fact() -> None:
    rule = AbsoluteRule("faithfulness", Statistic.LEAST, Threshold(0.5))
    found = {**dict(list(GOOD.items())[:3]), "bad": Score.scored(0.1)}
    [check] = apply_gate(Gate(absolute=(rule,)), columns(found))
    assert (check.outcome, check.observed, check.interval) == (Outcome.FAILED, 0.1, None)


@pytest.mark.parametrize(
    ("a", "b", "direction", "outcome"),
    [
        (GOOD, GOOD, Direction.HIGHER, Outcome.PASSED),
        (GOOD, POOR, Direction.HIGHER, Outcome.FAILED),
        (POOR, GOOD, Direction.HIGHER, Outcome.PASSED),
        (POOR, GOOD, Direction.LOWER, Outcome.FAILED),
        (GOOD, POOR, Direction.LOWER, Outcome.PASSED),
    ],
)
def test_a_regression_is_what_is_worse(a: Cells, b: Cells, direction: Direction, outcome: Outcome) -> None:
    gate = Gate(regression=(RegressionRule(None, 0.06),))
    assert check_gate(gate, [columns(b, a, direction)]).outcome is outcome


def test_equal_rows_are_no_proof_of_a_small_margin_when_they_are_few() -> None:
    """If 5 % of all rows fell by 1, 60 rows without any change would still come about in 5 of 100 runs."""
    for margin, outcome in ((0.0, Outcome.INCONCLUSIVE), (0.02, Outcome.INCONCLUSIVE), (0.06, Outcome.PASSED)):
        gate = Gate(regression=(RegressionRule(None, margin),))
        assert check_gate(gate, [columns(GOOD, GOOD)]).outcome is outcome, margin


def test_an_inconclusive_rule_says_how_many_rows_would_decide_it() -> None:
    [check] = apply_gate(Gate(regression=(RegressionRule(None, 0.02),)), columns(GOOD, GOOD))
    assert check.reason.endswith("too few rows to decide; needs about 148 rows if the mean stays at 0.000")
    enough = cells([0.9] * 160)
    assert (
        apply_gate(Gate(regression=(RegressionRule(None, 0.02),)), columns(enough, enough))[0].outcome is Outcome.PASSED
    )


def test_a_median_is_tested_by_the_share_of_rows_beyond_it() -> None:
    rule = AbsoluteRule("faithfulness", Statistic.MEDIAN, Threshold(0.8))
    for share, outcome in (
        (0.45, Outcome.INCONCLUSIVE),
        (0.55, Outcome.INCONCLUSIVE),
        (0.7, Outcome.PASSED),
        (0.2, Outcome.FAILED),
    ):
        found = cells([0.9 if i < share * 100 else 0.5 for i in range(100)])
        [check] = apply_gate(Gate(absolute=(rule,)), columns(found))
        assert check.outcome is outcome, share
        assert check.interval is not None


def test_the_limits_of_a_median_are_order_statistics() -> None:
    # Of 20 values, the 6th and the 15th bound the median, each at 97.9 %; the 7th would hold at 94.2 % only.
    rows = RowValues(np.arange(1.0, 21.0), groups=None, weights=None)
    found = check_quantile(rows, Threshold(5.0), Confidence(0.95), 0.5)
    assert found.interval is not None
    assert (found.interval.low, found.interval.high) == (6.0, 15.0)


def test_scores_that_one_run_lacks_leave_a_regression_open() -> None:
    b = GOOD | {f"row {i:03}": Score.failed("no usable reply") for i in range(12)}
    gate = Gate(regression=(RegressionRule(None, 0.07),))
    [check] = apply_gate(gate, columns(b, GOOD))
    assert check.outcome is Outcome.INCONCLUSIVE
    assert "lack scores of different numbers of rows" in check.reason
    one_lost = GOOD | {"row 000": Score.failed("no usable reply")}
    assert check_gate(gate, [columns(one_lost, GOOD)]).outcome is Outcome.PASSED


def test_rows_prove_nothing_without_bounds() -> None:
    unbounded = ScoreColumns(metric="faithfulness", direction=Direction.HIGHER, a={}, b=cells([0.8, 1.0] * 20))
    [check] = apply_gate(mean_rule(0.8), unbounded)
    assert check.outcome is Outcome.INCONCLUSIVE
    assert check.observed == pytest.approx(0.9)
    assert "the metric has no bounds" in check.reason


def test_rows_of_few_groups_tell_nothing() -> None:
    groups = {row: f"group {i % 4}" for i, row in enumerate(GOOD)}
    grouped = ScoreColumns(
        metric="faithfulness", direction=Direction.HIGHER, a={}, b=GOOD, groups=groups, bounds=(0.0, 1.0)
    )
    [check] = apply_gate(mean_rule(0.5), grouped)
    assert (check.outcome, check.reason) == (
        Outcome.INCONCLUSIVE,
        "60 rows of 4 groups, wanted rows of at least 5 groups",
    )


def test_a_noisy_small_drop_is_inconclusive() -> None:
    generator = np.random.default_rng(1)
    b = cells(list(np.array([0.85, 0.95] * 30) - generator.normal(0.02, 0.1, size=60)))
    gate = Gate(regression=(RegressionRule(None, 0.02),))
    assert check_gate(gate, [columns(b, GOOD)]).outcome is Outcome.INCONCLUSIVE


def test_a_rule_of_its_own_replaces_that_for_all() -> None:
    gate = Gate(regression=(RegressionRule(None, 0.02), RegressionRule(("faithfulness",), 0.9)))
    found = apply_gate(gate, columns(POOR, GOOD))
    assert [(check.rule, check.outcome) for check in found] == [("worse by at most 0.9", Outcome.PASSED)]


def test_a_metric_of_the_baseline_that_went_missing_does_not_pass() -> None:
    gate = Gate(regression=(RegressionRule(None, 0.02),))
    assert check_gate(gate, [columns({}, GOOD)]).outcome is Outcome.INCONCLUSIVE


def test_metric_without_scores_is_no_regression() -> None:
    undefined = {row: Score.undefined("needs a language-model judge") for row in GOOD}
    gate = Gate(regression=(RegressionRule(None, 0.02),))
    assert apply_gate(gate, columns(undefined, undefined)) == []


def test_coverage_counts_rows() -> None:
    b: Cells = {**GOOD, "f": Score.failed("no usable reply"), "u": Score.undefined("no claims")}
    rules = (
        CoverageRule(None, Count.SCORED, Threshold(0.99)),
        CoverageRule(None, Count.FAILED, Threshold(0.02, is_floor=False)),
        CoverageRule(None, Count.PAIRED, Threshold(0.5)),
    )
    found = apply_gate(Gate(coverage=rules), columns(b, {**GOOD, "gone": Score.scored(1.0)}))
    assert [(check.outcome, check.reason) for check in found] == [
        (Outcome.FAILED, "60 of 62 rows"),
        (Outcome.PASSED, "1 of 62 rows"),
        (Outcome.PASSED, "60 of 61 rows"),
    ]


def test_pairs_are_counted_of_every_metric_that_the_baseline_has_scored() -> None:
    gate = Gate(coverage=(CoverageRule(None, Count.PAIRED, Threshold(0.5)),))
    [missing] = apply_gate(gate, columns({}, GOOD))
    assert (missing.outcome, missing.observed, missing.reason) == (Outcome.FAILED, 0.0, "0 of 60 rows")
    assert apply_gate(gate, columns(GOOD)) == []


def test_rounding_does_not_violate_a_threshold() -> None:
    b = cells([0.1 + 0.2] * 60)  # 0.30000000000000004
    statistics = set(Statistic) - {Statistic.CORRECTED}
    rules = tuple(AbsoluteRule("faithfulness", statistic, Threshold(0.3, is_floor=False)) for statistic in statistics)
    outcomes = {check.rule.split()[0]: check.outcome for check in apply_gate(Gate(absolute=rules), columns(b))}
    # A mean that is just at its threshold is not known to meet it.
    assert outcomes.pop("mean") is Outcome.INCONCLUSIVE
    assert set(outcomes.values()) == {Outcome.PASSED}


def test_aliases_name_a_metric() -> None:
    found = ScoreColumns(metric="answer_similarity", direction=Direction.HIGHER, a={}, b=GOOD, bounds=(0, 1))
    rule = AbsoluteRule("semantic_similarity", Statistic.MEAN, Threshold(0.8))
    assert check_gate(Gate(absolute=(rule,)), [found]).outcome is Outcome.PASSED


@pytest.mark.parametrize(
    "gate",
    [
        Gate(absolute=(AbsoluteRule("context_recall", Statistic.MEAN, Threshold(0.8)),)),
        Gate(regression=(RegressionRule(("faithfullness",), 0.1),)),
        Gate(coverage=(CoverageRule(("nothing",), Count.SCORED, Threshold(0.5)),)),
    ],
)
def test_a_rule_about_a_metric_that_is_not_there_is_an_error(gate: Gate) -> None:
    with pytest.raises(ConfigError, match="the run has only: faithfulness"):
        check_gate(gate, [columns(GOOD, GOOD)])


def test_what_has_no_better_or_number_cannot_be_gated() -> None:
    labels = {row: Score.labelled("formal") for row in GOOD}
    with pytest.raises(ConfigError, match="values are categories"):
        check_gate(mean_rule(0.5), [columns(labels)])
    with pytest.raises(ConfigError, match="no better and worse values"):
        check_gate(Gate(regression=(RegressionRule(("faithfulness",), 0.1),)), [columns(GOOD, GOOD, Direction.NEITHER)])


def test_any_failure_fails_the_gate_and_else_any_doubt_leaves_it_open() -> None:
    gate = Gate(
        absolute=(
            AbsoluteRule("faithfulness", Statistic.MEAN, Threshold(0.8)),
            AbsoluteRule("faithfulness", Statistic.LEAST, Threshold(0.7)),
        )
    )
    assert check_gate(gate, [columns(FAIR)]).outcome is Outcome.INCONCLUSIVE
    failing = Gate(absolute=(*gate.absolute, AbsoluteRule("faithfulness", Statistic.LEAST, Threshold(0.8))))
    assert check_gate(failing, [columns(FAIR)]).outcome is Outcome.FAILED


def test_the_same_seed_gives_the_same_result() -> None:
    gate = Gate(regression=(RegressionRule(None, 0.02),))
    generator = np.random.default_rng(1)
    b = cells(list(generator.random(60)))
    assert check_gate(gate, [columns(b, GOOD)], 3) == check_gate(gate, [columns(dict(reversed(b.items())), GOOD)], 3)
