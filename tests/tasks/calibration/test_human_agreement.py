"""Agreement of a judge with people, as read from the manifest of a run."""

from typing import Any

from metric_core.gates.rules import JudgeAgreement
from metric_core.statistics.resampling import Interval
from tasks.calibration.human_agreement import read_agreements
from tasks.documents.calibration.calibration_text import agreement_lines
from tasks.record.run_record import RunRecord
from tests.run_records import make_record


def manifest(figures: dict[str, Any] | None = None, **metrics: str) -> dict[str, Any]:
    """Return the manifest of a run with these metrics (key and name), whose judge was calibrated on the first."""
    entries = [{"key": key, "name": name, "parameters": {}} for key, name in metrics.items()]
    facts = {"compared": 120, "figures": figures}
    known = {} if figures is None else {"metrics": {next(iter(metrics)): facts}, "not_covered": []}
    return {"metrics": entries, "calibration": known}


def _record(figures: Any, **names: str) -> RunRecord:
    return make_record(manifest(figures, **names))


def figure(value: float) -> dict[str, float]:
    return {"value": value, "low": value - 0.1, "high": value + 0.1}


def test_of_yes_and_no_it_is_kappa_and_of_grades_spearmans_correlation() -> None:
    binary = manifest({"auroc": figure(0.9), "kappa": figure(0.5), "agreement": figure(0.8)}, mine="faithfulness")
    assert read_agreements(make_record(binary)) == {
        "mine": JudgeAgreement("Cohen's kappa", 0.5, Interval(0.4, 0.6), 120)
    }
    grades = manifest({"spearman": figure(0.5), "kendall": figure(0.3)}, mine="faithfulness")
    assert read_agreements(make_record(grades))["mine"] == JudgeAgreement(
        "Spearman's correlation", 0.5, Interval(0.4, 0.6), 120
    )


def test_uncalibrated_metrics_differ_from_metrics_without_a_judge() -> None:
    names = {"faithfulness": "faithfulness", "exact": "string_similarity", "close": "answer_similarity"}
    assert read_agreements(_record(None, **names)) == {"faithfulness": None}
    assert read_agreements(make_record({})) == {}


def test_a_metric_that_is_not_installed_here_may_ask_a_judge() -> None:
    assert read_agreements(_record(None, theirs="their_package:metric")) == {"theirs": None}


def test_a_calibration_without_a_figure_or_an_interval_says_so() -> None:
    none = read_agreements(_record({"auroc": figure(0.9)}, mine="faithfulness"))["mine"]
    assert none == JudgeAgreement("Cohen's kappa", None, None, 120)
    alike = read_agreements(_record({"kappa": {"value": 1.0, "low": None, "high": None}}, mine="faithfulness"))
    assert alike["mine"] == JudgeAgreement("Cohen's kappa", 1.0, None, 120)


def test_a_run_does_not_call_metrics_without_a_judge_uncalibrated() -> None:
    one = manifest({"kappa": figure(0.5)}, mine="faithfulness", close="answer_similarity")
    facts = one["calibration"]["metrics"]["mine"]
    facts |= {"source": "labels.jsonl", "created": "2026-11-21T16:04:00+00:00"}
    [line] = agreement_lines(make_record(one))
    assert line.startswith("mine: kappa 0.500")
