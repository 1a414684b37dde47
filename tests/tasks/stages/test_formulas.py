"""Scores and diagnoses are kept for as long as the code of their formulas stays the same."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from metric_core.stages import Product, Stage
from tasks.models.run_models import RunModels
from tasks.options.metric_settings import MetricSettings
from tasks.plugins.metric_lookup import parse_metric
from tasks.stages import formulas
from tasks.stages.aggregation import AggregationSettings
from tasks.stages.diagnosis import DiagnosisSettings
from tasks.stages.stage_task import STAGE_TASKS

OWN = "tests.tasks.plugins.sample_plugins:GOOD"


def identity(*metrics: str, verdict: str = "binary") -> str | None:
    requests = tuple(MetricSettings.from_request(parse_metric(metric)) for metric in metrics)
    settings = AggregationSettings.model_validate({"metrics": requests, "verdict": verdict})
    return STAGE_TASKS[Stage.AGGREGATION].identity(settings, RunModels())


def test_scores_are_kept_by_metrics_parameters_and_meaning_of_verdicts() -> None:
    assert identity("faithfulness") == identity("faithfulness")
    kinds = [
        identity("faithfulness"),
        identity("noise_sensitivity(mode=irrelevant)"),
        identity("noise_sensitivity(mode=relevant)"),
        identity("faithfulness", verdict="probability"),
    ]
    assert None not in kinds
    assert len(set(kinds)) == len(kinds)


def test_diagnoses_are_kept_by_the_products_that_the_run_asks_for() -> None:
    task = STAGE_TASKS[Stage.DIAGNOSIS]
    one, other = (DiagnosisSettings(planned=planned) for planned in ((), (Product.RESPONSE_CLAIMS,)))
    assert task.identity(one, RunModels()) == task.identity(one, RunModels())
    assert task.identity(one, RunModels()) != task.identity(other, RunModels())


def test_another_formula_is_another_identity(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "__init__.py").touch()
    package = SimpleNamespace(__file__=str(tmp_path / "__init__.py"))
    monkeypatch.setattr(formulas, "_PACKAGES", (package,))
    digests = []
    for content in ("score = 1\n", "score = 2\n", "score = 1\n"):
        (tmp_path / "metric.py").write_text(content, encoding="utf-8")
        formulas.digest_formulas.cache_clear()
        digests.append(identity("faithfulness"))
    formulas.digest_formulas.cache_clear()
    assert digests[0] == digests[2]
    assert digests[0] != digests[1]


def test_scores_of_a_user_defined_metric_are_never_kept() -> None:
    assert identity(OWN) is None
    assert identity("faithfulness", OWN) is None
