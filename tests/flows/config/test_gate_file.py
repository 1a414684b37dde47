"""Gate files: the two forms of a rule, and messages about mistakes."""

import re
from pathlib import Path

import pytest

from flows.config.gate_file import GateSettings, load_gate
from metric_core.errors import ConfigError
from metric_core.gates.rules import (
    AbsoluteRule,
    Count,
    CoverageRule,
    JudgeRule,
    RegressionRule,
    SliceSelection,
    Statistic,
    Threshold,
)

EXAMPLE = Path(__file__).parents[3] / "examples" / "gate.toml"


def gate_file(folder: Path, text: str) -> Path:
    path = folder / "gate.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_rules_have_a_short_and_a_long_form(tmp_path: Path) -> None:
    gate = load_gate(
        gate_file(
            tmp_path,
            """
            absolute = [
                "faithfulness.mean >= 0.8",
                "noise_sensitivity(mode=irrelevant) <= .2",
                { metric = "context_recall", statistic = "least", at_least = 0.1 },
            ]
            regression = { max_drop = 0.02, metrics = "all" }
            coverage = { failed_at_most = 0.01 }
            """,
        )
    ).gate()
    assert gate.absolute == (
        AbsoluteRule("faithfulness", Statistic.MEAN, Threshold(0.8)),
        AbsoluteRule("noise_sensitivity(mode=irrelevant)", Statistic.MEAN, Threshold(0.2, is_floor=False)),
        AbsoluteRule("context_recall", Statistic.LEAST, Threshold(0.1)),
    )
    assert gate.regression == (RegressionRule(None, 0.02),)
    assert gate.coverage == (CoverageRule(None, Count.FAILED, Threshold(0.01, is_floor=False)),)


def test_the_documented_gate_can_be_read(tmp_path: Path) -> None:
    text = (EXAMPLE.parents[1] / "docs" / "gates.md").read_text(encoding="utf-8")
    written, sliced = re.findall(r"```toml\n(.*?)```", text, re.DOTALL)
    assert [rule.slices for rule in load_gate(gate_file(tmp_path, sliced)).gate().regression] == [
        None,
        SliceSelection("customer"),
    ]
    settings = load_gate(gate_file(tmp_path, written))
    assert (len(settings.gate().absolute), settings.inconclusive) == (6, "failed")


def test_tables_may_be_repeated(tmp_path: Path) -> None:
    text = '[[regression]]\nmax_drop = 0.02\n[[regression]]\nmax_drop = 0.5\nmetrics = ["rubrics"]\n'
    assert len(load_gate(gate_file(tmp_path, text)).gate().regression) == 2


def test_gate_may_require_agreement_of_the_judge_with_people(tmp_path: Path) -> None:
    rule = 'absolute = ["faithfulness >= 0.8"]\n'
    gate = load_gate(gate_file(tmp_path, f"{rule}[judge]\nmin_agreement = 0.6\nmetrics = ['faithfulness']")).gate()
    assert gate.judge == JudgeRule(("faithfulness",), Threshold(0.6), 100)
    assert load_gate(gate_file(tmp_path, rule)).gate().judge is None
    steady = load_gate(gate_file(tmp_path, f"{rule}[judge]\nmax_flip = 0.03")).gate().judge
    assert steady == JudgeRule(None, None, 100, Threshold(0.03, is_floor=False))
    with pytest.raises(ConfigError, match=r"judge: requires nothing of the judge"):
        load_gate(gate_file(tmp_path, f"{rule}[judge]\nmin_rows = 50"))
    with pytest.raises(ConfigError, match="has no rule"):
        load_gate(gate_file(tmp_path, "[judge]\nmin_agreement = 0.6"))


def test_zero_is_a_valid_ceiling() -> None:
    [rule] = GateSettings.model_validate({"absolute": [{"metric": "m", "at_most": 0.0}]}).gate().absolute
    assert rule.threshold == Threshold(0.0, is_floor=False)


def test_example_is_valid() -> None:
    assert load_gate(EXAMPLE).gate().needs_baseline


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "has no rule"),
        ("min_rows = 10", "has no rule"),
        ("[coverage]", "has no rule"),
        ('absolute = ["faithfulness > 0.8"]', "metric.mean >= 0.8"),
        ('absolute = ["faithfulness >= high"]', "absolute.0.at_least"),
        ('absolute = ["faithfulness >= nan"]', "finite number"),
        ('absolute = [{ metric = "m", at_least = 1, at_most = 2 }]', "either at_least or at_most"),
        ('absolute = [{ metric = "m" }]', "either at_least or at_most"),
        ("regression = { max_drop = -1 }", "regression.0.max_drop"),
        ("regression = { max_fall = 1 }", "max_fall"),
        ("coverage = { scored_at_least = 90 }", "coverage.0.scored_at_least"),
        ("level = 95", "level"),
        ("absolute = [", "cannot be read"),
    ],
)
def test_mistakes_are_reported_with_their_location(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load_gate(gate_file(tmp_path, text))


def test_missing_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"there is no gate file .*gate\.toml"):
        load_gate(tmp_path / "gate.toml")


def test_rules_may_be_about_slices_in_each_form(tmp_path: Path) -> None:
    gate = load_gate(
        gate_file(
            tmp_path,
            """
            absolute = [
                "faithfulness >= 0.8 for each topic",
                "faithfulness.median <= 0.9 for customer = Blue = Co",
                { metric = "faithfulness", at_least = 0.7, slices = ["topic", "customer"] },
                { metric = "faithfulness", at_least = 0.6, slices = { topic = "travel", customer = [7, "b"] } },
            ]
            regression = { max_drop = 0.1, slices = "topic" }
            coverage = { scored_at_least = 0.5, failed_at_most = 0.1, slices = { topic = ["travel"] } }
            small_slices = "skip"
            """,
        )
    ).gate()
    selections = [(rule.threshold.value, rule.slices) for rule in gate.absolute]
    assert selections == [
        (0.8, SliceSelection("topic")),
        (0.9, SliceSelection("customer", ("Blue = Co",))),
        (0.7, SliceSelection("topic")),
        (0.7, SliceSelection("customer")),
        (0.6, SliceSelection("topic", ("travel",))),
        (0.6, SliceSelection("customer", ("7", "b"))),
    ]
    assert gate.absolute[1].statistic is Statistic.MEDIAN
    assert [rule.slices for rule in gate.regression] == [SliceSelection("topic")]
    assert {rule.slices for rule in gate.coverage} == {SliceSelection("topic", ("travel",))}
    assert gate.slice_columns == ("topic", "customer")
    assert gate.slice_values == {"topic": ("travel",), "customer": ("Blue = Co", "7", "b")}
    assert gate.skips_small_slices


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ('"faithfulness >= 0.8 for topic"', 'may end with "for each column" or "for column = value", got'),
        ('{ metric = "m", at_least = 1, statistic = "corrected", slices = "topic" }', "leave out slices"),
        ('{ metric = "m", at_least = 1, slices = { topic = [] } }', "slices need a column, and at least one value"),
        ('{ metric = "m", at_least = 1, slices = " " }', "slices need a column"),
        ('{ metric = "m", at_least = 1, slices = 3 }', r"absolute\.0\.slices"),
    ],
)
def test_slices_that_mean_nothing_are_refused(tmp_path: Path, rule: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load_gate(gate_file(tmp_path, f"absolute = [{rule}]"))


@pytest.mark.parametrize(
    ("coverage", "share"),
    [
        ((), 0.9),
        ({"scored_at_least": 0.5}, 0.9),
        ({"paired_at_least": 0.4}, 0.4),
        ({"paired_at_least": 0.0}, 0.0),
        ([{"paired_at_least": 0.4}, {"paired_at_least": 0.6, "metrics": ["faithfulness"]}], 0.6),
        ({"paired_at_least": 0.4, "slices": "topic"}, 0.9),
    ],
)
def test_a_gate_says_how_many_rows_of_the_baseline_a_monitored_run_needs(coverage: object, share: float) -> None:
    assert GateSettings.model_validate({"coverage": coverage}).kept_at_least == share
