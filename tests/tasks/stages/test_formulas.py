"""Scores and diagnoses are kept for as long as the code of their formulas stays the same."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from metric_core.stages import Product, Stage
from tasks.engine.stage_step import make_recipe
from tasks.models.run_models import RunModels
from tasks.options.metric_settings import MetricSettings
from tasks.plugins.metric_lookup import parse_metric
from tasks.stages import formulas
from tasks.stages.aggregation import AggregationSettings
from tasks.stages.diagnosis import DiagnosisSettings

OWN = "tests.tasks.plugins.sample_plugins:GOOD"


def recipe(*metrics: str, verdict: str = "binary") -> str | None:
    requests = tuple(MetricSettings.from_request(parse_metric(metric)) for metric in metrics)
    settings = AggregationSettings.model_validate({"metrics": requests, "verdict": verdict})
    return make_recipe(Stage.AGGREGATION, settings, RunModels(), (Stage.SAMPLES, Stage.VERDICTS))


def test_scores_are_kept_by_metrics_parameters_and_meaning_of_verdicts() -> None:
    assert recipe("faithfulness") == recipe("faithfulness")
    kinds = [
        recipe("faithfulness"),
        recipe("noise_sensitivity(mode=irrelevant)"),
        recipe("noise_sensitivity(mode=relevant)"),
        recipe("faithfulness", verdict="probability"),
    ]
    assert None not in kinds
    assert len(set(kinds)) == len(kinds)


def test_diagnoses_are_kept_by_the_products_that_the_run_asks_for() -> None:
    one, same, other = (
        make_recipe(Stage.DIAGNOSIS, DiagnosisSettings(planned=planned), RunModels(), (Stage.SAMPLES,))
        for planned in ((), (), (Product.RESPONSE_CLAIMS,))
    )
    assert one == same != other


def test_another_formula_is_another_recipe(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "__init__.py").touch()
    package = SimpleNamespace(__file__=str(tmp_path / "__init__.py"))
    monkeypatch.setattr(formulas, "_PACKAGES", (package,))
    digests = []
    for content in ("score = 1\n", "score = 2\n", "score = 1\n"):
        (tmp_path / "metric.py").write_text(content, encoding="utf-8")
        formulas.digest_formulas.cache_clear()
        digests.append(recipe("faithfulness"))
    formulas.digest_formulas.cache_clear()
    assert digests[0] == digests[2]
    assert digests[0] != digests[1]


def test_scores_of_a_user_defined_metric_are_never_kept() -> None:
    assert recipe(OWN) is None
    assert recipe("faithfulness", OWN) is None
