"""A process with other versions than those of the run computes nothing."""

from dataclasses import replace
from pathlib import Path

import pytest

from metric_core.errors import ConfigError
from metric_core.stages import Product, Stage
from tasks.engine.stage_step import EnginePlan, StageStep, make_recipe
from tasks.engine.worker_terms import WorkerTerms
from tasks.opening.run_models import RunModels
from tasks.stages.entities import EntitiesSettings

pytestmark = [pytest.mark.models, pytest.mark.prefect]


def entities_plan(tables: Path) -> EnginePlan:
    """Return the plan of a run that computes entities alone."""
    settings, reads = EntitiesSettings(products=(Product.REFERENCE_ENTITIES,)), (Stage.SAMPLES,)
    step = StageStep(Stage.ENTITIES, settings, reads, make_recipe(Stage.ENTITIES, settings, RunModels(), reads))
    return EnginePlan({Stage.ENTITIES: step}, str(tables), 2, 4)


def test_equal_versions_are_accepted_once_and_set_the_share(tmp_path: Path) -> None:
    plan, models = entities_plan(tmp_path), RunModels()
    terms = WorkerTerms.of_run(plan, RunModels(), 8)
    terms.accept(plan, models)
    assert models.processes == 8
    replace(terms, versions={}).accept(plan, models)  # the process of a run compares once


@pytest.mark.parametrize("name", ["rag-assay", "spacy", "language pipeline", "code of the formulas"])
def test_another_version_is_refused_with_its_name_and_both_versions(name: str, tmp_path: Path) -> None:
    plan, models = entities_plan(tmp_path), RunModels()
    terms = WorkerTerms.of_run(plan, models, 2)
    own = terms.versions[name]
    for _ in range(2):  # the next shard is refused, too
        with pytest.raises(ConfigError) as refused:
            WorkerTerms(2, terms.versions | {name: "0.0.1"}).accept(plan, models)
        assert f"{name}: {own}, the run has 0.0.1. Install" in str(refused.value)
        assert models.processes is None
