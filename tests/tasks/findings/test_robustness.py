"""A comparison and a gate say what their outcomes hang on, in terminal, Markdown, page and JSON."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from flows.config.gate_file import GateSettings
from flows.results.gated_comparison import CompareOptions, apply_gate, compare_runs
from metric_core.gates.rules import Outcome
from metric_core.statistics.robustness import Robustness
from tasks.comparison.run_comparison import RunComparison, comparison_to_dict
from tasks.findings.robustness.gate_outcome import TestedRows
from tasks.findings.robustness.robustness_finding import (
    ComparedRobustness,
    MetricRobustness,
    gate_sentences,
    metric_sentences,
)
from tasks.reports.comparison.comparison_document import comparison_markdown
from tasks.reports.comparison.comparison_page import comparison_page
from tests.tasks import sliced


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Return a good run, and one whose rows about travel are poor."""
    folder = tmp_path_factory.mktemp("robustness")
    return sliced.write_run(folder / "a", poor=()), sliced.write_run(folder / "b", seed=2)


@pytest.fixture(scope="module")
def comparison(runs: tuple[Path, Path]) -> RunComparison:
    return compare_runs(*runs, CompareOptions(gate=gate("faithfulness >= 0.5")))


def gate(*rules: str) -> GateSettings:
    return GateSettings.model_validate({"absolute": list(rules)})


def gate_found(run: Path, *rules: str) -> tuple[Outcome | None, str]:
    checked = apply_gate(run, CompareOptions(gate=gate(*rules)))
    return checked.gate.outcome if checked.gate else None, " ".join(gate_sentences(checked))


def test_metrics_that_are_worse_for_one_topic_hang_on_it(comparison: RunComparison) -> None:
    first, second = metric_sentences(comparison)
    assert first.startswith("faithfulness (worse), context_recall (worse), answer_relevancy (worse): hangs")
    assert second == "noise_sensitivity (worse): hangs on topic travel: without it the outcome is another"


def test_many_robust_outcomes_are_counted(runs: tuple[Path, Path]) -> None:
    same = compare_runs(runs[0], runs[0], CompareOptions())
    assert [*metric_sentences(same)] == []  # nothing changed: no test has anything to decide
    robust = Robustness(outcome="worse", few=3)
    found = ComparedRobustness(tuple(MetricRobustness(f"m{number}", robust) for number in range(4)))
    assert [*metric_sentences(replace(same, findings=(found,)))] == [
        "4 of 4 outcomes: robust: the same without any 3 rows; the judge was not asked again"
    ]


def test_every_place_has_the_sentences(comparison: RunComparison) -> None:
    for text in (comparison_markdown(comparison), comparison_page(comparison)):
        assert "hangs on topic travel" in text
        assert "robust: the same without any one topic or document and without any 3 rows" in text
    assert len([*gate_sentences(comparison)]) == 1
    found = comparison_to_dict(comparison)["robustness"]
    assert found["gate"]["is_robust"] is True
    assert found["metrics"][0] == {
        "metric": "faithfulness",
        "is_robust": False,
        "sentence": "hangs on topic travel: without it the outcome is another",
        "outcome": "worse",
        "few": 3,
        "rows": (),
        "parts": ("topic travel",),
        "has_parts": True,
        "by_judge": None,
        "second": None,
    }


def test_a_gate_of_one_run_hangs_on_what_moves_its_means(runs: tuple[Path, Path]) -> None:
    _, poor = runs
    outcome, sentence = gate_found(poor, "faithfulness >= 0.8")
    assert outcome is Outcome.INCONCLUSIVE
    assert sentence == (
        "the outcome of the gate (inconclusive): hangs on topic travel: without it the outcome is another"
    )
    outcome, sentence = gate_found(poor, "faithfulness >= 0.87")
    assert outcome is Outcome.FAILED
    assert "hangs on topic travel" in sentence


def test_a_gate_near_its_threshold_hangs_on_rows(runs: tuple[Path, Path]) -> None:
    _, poor = runs
    checked = apply_gate(poor, CompareOptions(gate=gate("faithfulness >= 0.5")))
    assert checked.gate is not None
    (check,) = checked.gate.checks
    assert check.interval is not None
    outcome, sentence = gate_found(poor, f"faithfulness >= {check.interval.low - 0.0002:.4f}")
    assert outcome is Outcome.PASSED
    assert "hangs on 1 row (" in sentence or "hangs on 2 rows (" in sentence


def test_rules_that_test_no_mean_have_no_sentence(runs: tuple[Path, Path]) -> None:
    checked = apply_gate(runs[0], CompareOptions(gate=gate("faithfulness.least >= 0.0")))
    assert checked.find(ComparedRobustness) is None


def test_slices_of_a_column_with_rules_are_not_left_out(runs: tuple[Path, Path]) -> None:
    _, poor = runs
    _, sentence = gate_found(poor, "faithfulness >= 0.7 for each topic")
    assert "topic travel" not in sentence


def test_rows_of_a_rule_count_by_their_weight() -> None:
    values, weights = np.array([1.0, 1.0, 0.0, 0.0]), np.array([4.0, 1.0, 1.0, 2.0])
    rows = TestedRows(
        metric="m",
        are_changes=False,
        outcome=Outcome.PASSED,
        places=dict(zip("abcd", range(4), strict=True)),
        values=values,
        weights=weights,
        down=0.1,
        up=0.1,
    )
    mean, without = 5 / 8, 1 / 4
    assert np.isclose(rows.ways({"a"}), (10 * (mean - without), 10 * (without - mean))).all()
    assert "abcd"[int(np.argmax(rows.pulls))] == "a"
