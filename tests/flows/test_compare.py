"""Comparisons of two run folders, by function and by the flow on a real Prefect server."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from prefect.client.orchestration import get_client

from flows.compare import Comparison, compare
from flows.config.gate_file import GateSettings
from flows.publishing.artifacts import COMPARISON_ARTIFACT
from flows.results import comparison_result
from flows.results.gated_comparison import CompareOptions, apply_gate, compare_runs
from flows.results.run_result import RunResult
from metric_core.errors import ConfigError, NotComparableError, RunFolderError
from metric_core.gates.rules import Outcome
from metric_core.statistics.comparison import ChangeOutcome
from tasks.comparison.run_comparison import RunComparison, comparison_to_dict
from tasks.comparison.run_pair import Matching
from tests.tasks import compared

REGRESSION = GateSettings.model_validate({"regression": {"max_drop": 0.08}})
ABSOLUTE = GateSettings.model_validate({"absolute": ["faithfulness >= 0.5"]})


@pytest.fixture
def runs(tmp_path: Path) -> tuple[Path, Path, Path]:
    """Return a good run, a poor run, and a good run with a different judge."""
    judge = {"backend": "server", "model": "other", "revision": "", "note": "", "language_model": True}
    good, poor = compared.write_run(tmp_path / "good", 0.8), compared.write_run(tmp_path / "poor", 0.2)
    return good, poor, compared.write_run(tmp_path / "other", 0.8, judge=judge)


def verdicts(found: RunComparison) -> dict[str, ChangeOutcome]:
    return {metric.metric: metric.verdict for metric in found.metrics}


def test_worse_run_is_worse_for_metrics_of_either_direction(runs: Sequence[Path]) -> None:
    found = compare_runs(runs[0], runs[1], CompareOptions())
    expected = {
        "faithfulness": ChangeOutcome.WORSE,
        "noise_sensitivity": ChangeOutcome.WORSE,
        "nv_accuracy": ChangeOutcome.NOT_COMPARED,
    }
    assert verdicts(found) == expected
    back = compare_runs(runs[1], runs[0], CompareOptions())
    assert set(verdicts(back).values()) == {ChangeOutcome.BETTER, ChangeOutcome.NOT_COMPARED}


def test_content_is_json_without_nan(runs: Sequence[Path]) -> None:
    options = CompareOptions(gate=REGRESSION, matching=Matching(by="topic"))
    content = json.loads(json.dumps(comparison_to_dict(compare_runs(runs[0], runs[1], options)), allow_nan=False))
    assert content["like_for_like"] is True
    assert content["gate"]["outcome"] == "failed"
    assert content["metrics"][0]["difference"]["groups"] == 10


def test_regression_is_refused_for_incomparable_runs(runs: Sequence[Path]) -> None:
    with pytest.raises(NotComparableError, match=r"judge model: linear in A, other in B(.|\n)*--allow-different"):
        compare_runs(runs[0], runs[2], CompareOptions(gate=REGRESSION))
    allowed = compare_runs(runs[0], runs[2], CompareOptions(gate=REGRESSION, allow_different=True))
    assert allowed.gate is not None
    assert allowed.gate.outcome is Outcome.PASSED
    assert allowed.not_alike


def test_absolute_rules_do_not_depend_on_the_baseline(runs: Sequence[Path]) -> None:
    found = compare_runs(runs[0], runs[2], CompareOptions(gate=ABSOLUTE))
    assert found.gate is not None
    assert found.gate.outcome is Outcome.PASSED


def test_gate_of_absolute_rules_needs_one_run(runs: Sequence[Path]) -> None:
    outcomes = [apply_gate(run, CompareOptions(gate=ABSOLUTE)).gate for run in runs[:2]]
    assert [gate.outcome for gate in outcomes if gate] == [Outcome.PASSED, Outcome.FAILED]
    with pytest.raises(ConfigError, match="assay compare BASELINE RUN --gate FILE"):
        apply_gate(runs[0], CompareOptions(gate=REGRESSION))
    with pytest.raises(ConfigError, match="cannot be compared with itself"):
        apply_gate(runs[0], CompareOptions())


@pytest.mark.parametrize("outcome", ["passed", "failed", "inconclusive"])
def test_inconclusive_checks_count_as_the_gate_specifies(runs: Sequence[Path], outcome: str) -> None:
    gate = GateSettings.model_validate({"absolute": ["faithfulness >= 0.5"], "min_rows": 99, "inconclusive": outcome})
    found = apply_gate(runs[0], CompareOptions(gate=gate)).gate
    assert found is not None
    assert (found.outcome.value, found.checks[0].outcome) == (outcome, Outcome.INCONCLUSIVE)


def test_comparison_is_shown_in_a_notebook(runs: Sequence[Path], tmp_path: Path) -> None:
    gate = tmp_path / "gate.toml"
    gate.write_text("regression = { max_drop = 0.02 }", encoding="utf-8")
    found = comparison_result.compare(runs[0], RunResult(runs[1]), gate=gate, by="topic")
    assert found.outcome == "failed"
    [first, *_] = found.metrics().to_pylist()
    assert (first["metric"], round(first["difference"], 3), first["outcome"]) == ("faithfulness", -0.6, "worse")
    assert found.metrics().to_pandas().shape == (3, 10)
    assert found._repr_markdown_() == found.markdown()
    assert "Rows that changed most" in found.report(tmp_path / "page.html").read_text(encoding="utf-8")
    with pytest.raises(RunFolderError, match="cannot be written"):
        found.report(tmp_path / "page.html" / "page.html")


def test_folder_without_a_run_is_refused(tmp_path: Path, runs: Sequence[Path]) -> None:
    with pytest.raises(RunFolderError, match="is not a run folder"):
        compare_runs(tmp_path, runs[0], CompareOptions())


def calibration_of(kappa: float) -> dict[str, Any]:
    """Return the entry in run.json of a judge that was calibrated on faithfulness."""
    figures = {"kappa": {"value": kappa, "low": kappa - 0.1, "high": kappa + 0.1}}
    facts = {"created": "2026-11-21T16:04:00+00:00", "source": "labels.jsonl", "compared": 150, "figures": figures}
    return {"metrics": {"faithfulness": facts}, "not_covered": []}


TRUSTED: dict[str, Any] = {"absolute": ["faithfulness >= 0.5"], "judge": {"min_agreement": 0.6}}


@pytest.mark.parametrize(
    ("calibration", "outcome"),
    [
        (None, Outcome.INCONCLUSIVE),
        (calibration_of(0.65), Outcome.INCONCLUSIVE),
        (calibration_of(0.75), Outcome.PASSED),
    ],
)
@pytest.mark.parametrize("otherwise", ["inconclusive", "passed"])
def test_gate_passes_only_if_the_judge_agrees_with_people(
    tmp_path: Path, calibration: dict[str, Any] | None, outcome: Outcome, otherwise: str
) -> None:
    run = compared.write_run(tmp_path / "run", 0.8, calibration=calibration)
    gate = GateSettings.model_validate({**TRUSTED, "inconclusive": otherwise})
    found = apply_gate(run, CompareOptions(gate=gate)).gate
    assert found is not None
    assert found.outcome is outcome


def test_too_few_rows_may_pass_if_the_judge_is_trusted(tmp_path: Path) -> None:
    run = compared.write_run(tmp_path / "run", 0.8, calibration=calibration_of(0.75))
    gate = GateSettings.model_validate({**TRUSTED, "min_rows": 99, "inconclusive": "passed"})
    found = apply_gate(run, CompareOptions(gate=gate)).gate
    assert found is not None
    assert found.outcome is Outcome.PASSED


def test_baseline_needs_a_calibration_only_if_its_judge_differs(tmp_path: Path) -> None:
    rules = {"regression": {"max_drop": 0.08, "metrics": ["faithfulness"]}, "judge": {"min_agreement": 0.6}}
    options = CompareOptions(gate=GateSettings.model_validate(rules), allow_different=True)
    judge = {"backend": "server", "model": "other", "revision": "", "note": "", "language_model": True}
    run = compared.write_run(tmp_path / "run", 0.8, calibration=calibration_of(0.75))
    same = compared.write_run(tmp_path / "same", 0.8)
    unknown = compared.write_run(tmp_path / "unknown", 0.8, judge=judge)
    known = compared.write_run(tmp_path / "known", 0.8, judge=judge, calibration=calibration_of(0.8))
    gates = [compare_runs(baseline, run, options).gate for baseline in (same, unknown, known)]
    assert [gate.outcome for gate in gates if gate] == [Outcome.PASSED, Outcome.INCONCLUSIVE, Outcome.PASSED]
    assert [len(gate.checks) for gate in gates if gate] == [2, 3, 3]


@pytest.mark.prefect
def test_flow_creates_an_artifact_and_fails_with_the_gate(
    prefect_server: str, runs: Sequence[Path], tmp_path: Path
) -> None:
    gate = tmp_path / "gate.toml"
    gate.write_text("regression = { max_drop = 0.02 }", encoding="utf-8")
    given = {"gate": str(gate)}
    improved = Comparison.model_validate({**given, "baseline": str(runs[1]), "run": str(runs[0])})
    better: Any = compare(improved, return_state=True)
    assert better.is_completed(), prefect_server
    worsened = Comparison.model_validate({**given, "baseline": str(runs[0]), "run": str(runs[1])})
    worse: Any = compare(worsened, return_state=True)
    assert (worse.is_failed(), worse.message) == (True, "the gate failed")
    assert "**🔴 gate failed**" in _artifact()


def _artifact() -> str:
    with get_client(sync_client=True) as client:
        found = client.read_latest_artifacts()
    return next(str(artifact.data) for artifact in found if artifact.key == COMPARISON_ARTIFACT)
