"""Gates that ask for a judge that agrees with people: rules about numbers of another one neither pass nor fail."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from metric_core.errors import ConfigError
from metric_core.gates.checks import GateFacts, check_gate
from metric_core.gates.rules import (
    AbsoluteRule,
    Check,
    Count,
    CoverageRule,
    Gate,
    GateResult,
    JudgeAgreement,
    JudgeFlips,
    JudgeRule,
    Outcome,
    RegressionRule,
    RuleKind,
    Statistic,
    Threshold,
)
from metric_core.records import Direction, Score
from metric_core.statistics.pairs import ScoreColumns
from metric_core.statistics.resampling import Interval

CELLS = {f"row {i:03}": Score.scored(0.85 + i % 2 / 10) for i in range(60)}
COLUMNS = [
    ScoreColumns(metric=metric, direction=Direction.HIGHER, a=CELLS, b=CELLS, bounds=(0.0, 1.0))
    for metric in ("faithfulness", "string_similarity")
]
ABSOLUTE = tuple(AbsoluteRule(column.metric, Statistic.MEAN, Threshold(0.8)) for column in COLUMNS)
GOOD = JudgeAgreement("Cohen's kappa", 0.75, Interval(0.65, 0.85), 200)
UNSURE = JudgeAgreement("Cohen's kappa", 0.7, Interval(0.5, 0.85), 120)
LOW = JudgeAgreement("Cohen's kappa", 0.4, Interval(0.25, 0.55), 200)
FEW = JudgeAgreement("Cohen's kappa", 0.9, Interval(0.8, 1.0), 40)
NO_FIGURE = JudgeAgreement("Cohen's kappa", None, None, 40)
NO_INTERVAL = JudgeAgreement("Cohen's kappa", 0.9, None, 200)


def apply_gate(gate: Gate, *known: JudgeAgreement | None) -> GateResult:
    return check_gate(gate, COLUMNS, facts=GateFacts(agreements={"faithfulness": known}))


def asking(metrics: tuple[str, ...] | None = None) -> Gate:
    return Gate(absolute=ABSOLUTE, judge=JudgeRule(metrics, Threshold(0.6), 100))


def outcomes(checks: Sequence[Check]) -> list[tuple[str, str, str]]:
    return [(check.kind.value, check.metric, check.outcome.value) for check in checks]


def test_numbers_of_a_judge_that_agrees_with_people_pass() -> None:
    result = apply_gate(asking(), GOOD)
    assert (result.outcome, result.is_trusted) == (Outcome.PASSED, True)
    judge = result.checks[0]
    assert (judge.kind, judge.observed, judge.rows) == (RuleKind.JUDGE, 0.75, 200)
    assert judge.rule == "agreement of the judge with people at least 0.6"
    assert judge.reason == "Cohen's kappa 0.750, 95 % interval 0.650 to 0.850"


def test_numbers_of_any_other_judge_tell_nothing() -> None:
    cases: list[tuple[JudgeAgreement | None, str]] = [
        (None, "was never measured, wanted at least 0.6 over at least 100 labelled rows; label rows, measure it with"),
        (
            UNSURE,
            "is Cohen's kappa 0.700, 95 % interval 0.500 to 0.850, over 120 labelled rows, wanted at least 0.6 at",
        ),
        (UNSURE, "label more rows (about 480 in all if it stays the same), for a narrower interval, measure it with"),
        (LOW, "is Cohen's kappa 0.400, 95 % interval 0.250 to 0.550, over 200 labelled rows, wanted at least 0.6 at"),
        (LOW, "choose a judge that agrees better, measure it with"),
        (FEW, "was measured on 40 labelled rows only (Cohen's kappa 0.900, 95 % interval 0.800 to 1.000), wanted at"),
        (NO_FIGURE, "was measured on 40 labelled rows only, wanted at least 100; label rows"),
        (NO_INTERVAL, "has no interval on 200 labelled rows (too few rows or groups, or too similar ones)"),
    ]
    for known, told in cases:
        result = apply_gate(asking(), known)
        assert (result.outcome, result.is_trusted) == (Outcome.INCONCLUSIVE, False), (known, told)
        assert outcomes(result.checks) == [
            ("judge", "faithfulness", "inconclusive"),
            ("absolute", "faithfulness", "inconclusive"),
            ("absolute", "string_similarity", "passed"),
        ], (known, told)
        assert told in result.checks[0].reason, (known, told)
        assert "`assay calibrate LABELS --label COLUMN --metric faithfulness`" in result.checks[0].reason, (known, told)
        assert result.checks[1].reason == "meets the threshold by more than chance, but the judge is not trusted", (
            known,
            told,
        )


def test_numbers_of_a_judge_that_is_not_trusted_do_not_fail_either() -> None:
    bad = Gate(
        absolute=(AbsoluteRule("faithfulness", Statistic.MEAN, Threshold(0.99)),),
        judge=JudgeRule(None, Threshold(0.6), 100),
    )
    assert apply_gate(bad, GOOD).outcome is Outcome.FAILED
    assert apply_gate(bad, LOW).outcome is Outcome.INCONCLUSIVE


def test_counts_are_facts_whoever_judged() -> None:
    lost = CoverageRule(("faithfulness",), Count.FAILED, Threshold(0.0))
    short = CoverageRule(("faithfulness",), Count.SCORED, Threshold(0.0, is_floor=False))
    for rule, outcome in ((lost, Outcome.PASSED), (short, Outcome.FAILED)):
        result = apply_gate(Gate(coverage=(rule,), judge=JudgeRule(None, Threshold(0.6), 100)), None)
        assert outcomes(result.checks) == [("coverage", "faithfulness", outcome.value)]


def test_a_gate_over_metrics_without_a_judge_needs_no_agreement() -> None:
    gate = Gate(absolute=ABSOLUTE[1:], judge=JudgeRule(None, Threshold(0.6), 100))
    assert outcomes(apply_gate(gate, None).checks) == [("absolute", "string_similarity", "passed")]


def test_the_rule_may_be_about_some_metrics_only() -> None:
    assert apply_gate(asking(("string_similarity",)), None).outcome is Outcome.PASSED
    assert apply_gate(asking(("faithfulness",)), None).outcome is Outcome.INCONCLUSIVE


def test_a_metric_that_is_named_is_looked_at_without_any_other_rule() -> None:
    gate = Gate(absolute=ABSOLUTE[1:], judge=JudgeRule(("faithfulness",), Threshold(0.6), 100))
    assert outcomes(apply_gate(gate, LOW).checks) == [
        ("judge", "faithfulness", "inconclusive"),
        ("absolute", "string_similarity", "passed"),
    ]
    with pytest.raises(ConfigError, match="the gate has a rule about 'rubrics', but the run has only"):
        apply_gate(asking(("rubrics",)), GOOD)


def test_beside_a_baseline_of_another_judge_both_have_to_be_known() -> None:
    gate = Gate(regression=(RegressionRule(("faithfulness",), 0.1),), judge=JudgeRule(None, Threshold(0.6), 100))
    assert apply_gate(gate, GOOD, GOOD).outcome is Outcome.PASSED
    result = apply_gate(gate, GOOD, LOW)
    assert [check.outcome.value for check in result.checks] == ["passed", "inconclusive", "inconclusive"]
    assert result.checks[1].rule == "agreement of the baseline's judge with people at least 0.6"


def test_the_judge_of_the_baseline_is_no_matter_to_bars_of_the_run() -> None:
    assert apply_gate(asking(), GOOD, LOW).outcome is Outcome.PASSED


STEADY = JudgeFlips(0.0, Interval(0.0, 0.016), 189, must_move=84)


def check_flips(*known: JudgeFlips | None) -> Check:
    rule = JudgeRule(("faithfulness",), None, 100, Threshold(0.03, is_floor=False))
    facts = GateFacts(flips={"faithfulness": known})
    return check_gate(Gate(absolute=ABSOLUTE, judge=rule), COLUMNS, facts=facts).checks[0]


def test_a_judge_whose_flip_rate_is_surely_low_passes_without_any_agreement() -> None:
    found = check_flips(STEADY)
    assert (found.kind, found.outcome, found.observed, found.rows) == (RuleKind.JUDGE, Outcome.PASSED, 0.0, 189)
    assert found.rule == "flip rate of the judge at most 0.03"
    assert found.reason == "flip rate 0.000 (95 % interval 0.000 to 0.016) of 189 verdicts"


@pytest.mark.parametrize(
    ("flips", "reason"),
    [
        (None, "has no certificate"),
        (replace(STEADY, share=0.02, interval=Interval(0.007, 0.05)), "ask more questions"),
        (
            replace(STEADY, share=0.2, interval=Interval(0.1, 0.3)),
            "wanted at most 0.03 at the upper end of the interval",
        ),
        (replace(STEADY, interval=None), "too few rows"),
        (replace(STEADY, must_move=0), "too few supported claims"),
        (replace(STEADY, faults=("number",)), "faults in its certificate (number)"),
    ],
)
def test_a_judge_that_is_not_shown_to_be_steady_is_not_trusted(flips: JudgeFlips | None, reason: str) -> None:
    found = check_flips(flips)
    assert found.outcome is Outcome.INCONCLUSIVE
    assert reason in found.reason
