"""Assertions of gates: what passes, and what the message of a failure says."""

from pathlib import Path
from typing import Any

import pytest

from flows.results.gate_assertion import assert_gate
from flows.results.run_result import open_run
from metric_core.errors import ConfigError, NotComparableError
from tests.tasks.compared import write_run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a run whose faithfulness is 0.5 to 0.6."""
    return write_run(tmp_path_factory.mktemp("runs") / "run", 0.5)


@pytest.mark.parametrize(
    "gate", [["faithfulness >= 0.4"], {"absolute": ["faithfulness >= 0.4"], "coverage": {"scored_at_least": 0.0}}]
)
def test_a_gate_that_is_passed_returns_its_result(run: Path, gate: Any) -> None:
    found = assert_gate(open_run(run), gate)
    assert found.outcome == "passed"
    assert found.found.a is None


def test_a_failure_names_each_rule_that_is_not_passed_with_its_numbers(run: Path) -> None:
    with pytest.raises(AssertionError) as caught:
        assert_gate(run, ["faithfulness >= 0.8", "faithfulness.greatest <= 1", "noise_sensitivity <= 0.35"])
    first, *lines = str(caught.value).splitlines()
    assert first == f"the gate failed for {run}:"
    assert lines[0].startswith("  failed: faithfulness, mean at least 0.8: ")
    assert lines[1].startswith("    observed 0.549, interval ")
    assert lines[2].startswith("  inconclusive: noise_sensitivity, ")
    assert lines[4:] == ["  1 of 3 checks passed"]


def test_a_gate_that_cannot_decide_does_not_pass_unless_it_says_so(run: Path) -> None:
    gate = {"absolute": ["faithfulness >= 0.5485"]}
    with pytest.raises(AssertionError, match="the gate is inconclusive"):
        assert_gate(run, gate)
    assert assert_gate(run, {**gate, "inconclusive": "passed"}).outcome == "passed"


def test_a_regression_is_found_against_the_baseline(run: Path, tmp_path: Path) -> None:
    gate = tmp_path / "gate.toml"
    gate.write_text("[regression]\nmax_drop = 0.02\nmetrics = ['faithfulness']\n", encoding="utf-8")
    better = write_run(tmp_path / "better", 0.7)
    assert assert_gate(better, gate, baseline=run).metrics().columns
    with pytest.raises(AssertionError, match="failed: faithfulness"):
        assert_gate(run, str(gate), baseline=open_run(better))
    with pytest.raises(ConfigError, match="compares with a baseline"):
        assert_gate(run, gate)


def test_runs_that_are_not_like_for_like_are_refused_unless_allowed(run: Path, tmp_path: Path) -> None:
    other = write_run(
        tmp_path / "other",
        0.7,
        config={"metrics": ["faithfulness"], "thinking": True},
        judge={"backend": "builtin", "model": "m", "revision": "2"},
    )
    gate = {"regression": {"max_drop": 0.02, "metrics": ["faithfulness"]}}
    with pytest.raises(NotComparableError):
        assert_gate(other, gate, baseline=run)
    assert assert_gate(other, gate, baseline=run, allow_different=True).outcome == "passed"


@pytest.mark.parametrize(
    ("gate", "problem"),
    [([], "the gate has no rule"), (["faithfulness > high"], "the gate cannot be used"), ("no.toml", "no gate file")],
)
def test_a_gate_that_cannot_be_used_is_refused(run: Path, gate: Any, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        assert_gate(run, gate)
