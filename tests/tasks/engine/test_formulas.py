"""Results are kept for as long as the code of the formulas that may have computed them stays the same."""

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest

from metric_core.metrics.registry import METRICS
from metric_core.stages import Product, Stage
from tasks.engine import formulas
from tasks.engine.module_graph import ChangedCodeError, ModuleGraph
from tasks.engine.registry import STAGES
from tasks.engine.stage_step import make_recipe
from tasks.opening.run_models import RunModels
from tasks.options.metric_settings import MetricSettings
from tasks.plugins.metric_lookup import parse_metric
from tasks.runtime.loaded_files import NOTED, note_files
from tasks.stages.aggregation import AggregationSettings
from tasks.stages.diagnosis import DiagnosisSettings
from tasks.stages.languages import LanguagesSettings
from tests.properties.sets import REQUESTS
from tests.structure.house import ROOT, files, text_of
from tests.tasks.engine.parsed_imports import modules_of_metrics, parse_imports, reach
from tests.tasks.stages.stage_settings import WITH_METRICS, settings_of

OWN = "tests.tasks.plugins.sample_plugins:GOOD"
WITHOUT_MODELS = {Stage.LANGUAGES, Stage.AGGREGATION, Stage.DIAGNOSIS}
MODELS = "tasks.opening.run_models"


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


def test_languages_are_kept_whatever_the_metrics_and_scores_whatever_detects_languages(code_copy: Path) -> None:
    def recipes() -> tuple[str | None, str | None]:
        return make_recipe(Stage.LANGUAGES, LanguagesSettings(), RunModels(), (Stage.SAMPLES,)), recipe("faithfulness")

    languages, scores = recipes()
    assert languages is not None
    with edit(code_copy / "tasks/models/recognizers/detection.py"):
        assert languages != recipes()[0]
        assert scores == recipes()[1]
    with edit(code_copy / "metric_core/metrics/faithfulness.py"):
        assert languages == recipes()[0]


def test_scores_of_a_user_defined_metric_are_never_kept() -> None:
    assert recipe(OWN) is None
    assert recipe("faithfulness", OWN) is None


@pytest.fixture
def code_copy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A copy of the code, which recipes depend on instead of the real one."""
    for package in ("metric_core", "tasks"):
        shutil.copytree(ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("*.pyc"))
    monkeypatch.setattr(formulas, "_graph", cache(lambda: ModuleGraph(tmp_path)))
    return tmp_path


@contextmanager
def edit(path: Path) -> Iterator[None]:
    """Another code in a file, as a new process would find it."""
    before = path.read_bytes()
    path.write_bytes(before + b"\n")
    formulas._graph.cache_clear()
    yield
    path.write_bytes(before)
    formulas._graph.cache_clear()


def test_another_formula_is_another_recipe(code_copy: Path) -> None:
    before = recipe("faithfulness")
    with edit(code_copy / "metric_core/metrics/faithfulness.py"):
        assert recipe("faithfulness") != before
    assert recipe("faithfulness") == before


@pytest.mark.parametrize("path", ["metric_core/metrics/faithfulness.py", "metric_core/gates/checks.py"])
def test_questions_of_a_user_defined_metric_depend_on_all_formulas(code_copy: Path, path: str) -> None:
    def digest() -> str | None:
        return formulas.digest_formulas_of(STAGES[Stage.RATINGS], settings_of(Stage.RATINGS, parse_metric(OWN)))

    before, run = digest(), formulas.digest_formulas()
    with edit(code_copy / path):
        assert None is not digest() != before
        assert formulas.digest_formulas() != run


def test_a_recipe_depends_on_the_files_that_the_stage_may_run_and_on_no_other(code_copy: Path) -> None:
    def digests() -> list[str | None]:
        return [formulas.digest_formulas_of(STAGES[stage], settings) for stage, settings in cases]

    with_one = [(stage, "faithfulness") for stage in STAGES]
    keys = list(dict.fromkeys([*with_one, *((Stage.AGGREGATION, name) for name in METRICS)]))
    cases = [(stage, settings_of(stage, REQUESTS[name][0])) for stage, name in keys]
    paths = ModuleGraph(code_copy).files
    imports, declared = parse_imports(paths), modules_of_metrics(paths)
    expected = [
        reach(
            imports,
            f"tasks.stages.{stage}",
            *([MODELS] if stage not in WITHOUT_MODELS else []),
            *([declared[name]] if stage in WITH_METRICS else []),
        )
        for stage, name in keys
    ]
    before = digests()
    changed_of_module = {}
    for module in filter(formulas._is_formula, paths):
        with edit(Path(paths[module])):
            changed = [one != other for one, other in zip(digests(), before, strict=True)]
        assert changed == [module in each for each in expected], module
        changed_of_module[module] = [key for key, is_changed in zip(keys, changed, strict=True) if is_changed]
    assert digests() == before
    assert changed_of_module["metric_core.metrics.rubrics"] == [
        (Stage.AGGREGATION, "rubrics"),
        (Stage.AGGREGATION, "instance_rubrics"),
    ]
    assert changed_of_module["metric_core.gates.checks"] == []
    assert len(changed_of_module["metric_core.records"]) == len(keys)


@pytest.mark.parametrize("change", ["edited", "replaced", "removed"])
def test_code_that_changed_after_it_was_loaded_gives_no_recipe(
    code_copy: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, change: str
) -> None:
    graph = ModuleGraph(code_copy, note_files(code_copy))
    monkeypatch.setattr(formulas, "_graph", lambda: graph)
    other, before = recipe("context_recall"), recipe("ndcg")
    path = code_copy / "metric_core/metrics/faithfulness.py"
    if change == "edited":
        path.write_bytes(path.read_bytes() + b"\n")
    elif change == "replaced":  # as an installer does that keeps the times of files
        copy = path.with_suffix(".new")
        shutil.copy2(path, copy)
        copy.replace(path)
    else:
        path.unlink()
    assert recipe("faithfulness") is None
    assert formulas.digest_formulas() is None
    assert recipe("faithfulness") is None
    (message,) = caplog.messages
    assert message.startswith(f"{path} has changed since this process started")
    assert (recipe("context_recall"), recipe("ndcg")) == (other, before)


def test_a_digest_is_that_of_the_loaded_code_although_the_file_has_changed_since(code_copy: Path) -> None:
    graph = ModuleGraph(code_copy, note_files(code_copy))
    path = code_copy / "metric_core/metrics/faithfulness.py"
    before = graph.digest("metric_core.metrics.faithfulness")
    path.write_text("# another formula\n", encoding="utf-8")
    assert graph.digest("metric_core.metrics.faithfulness") == before
    with pytest.raises(ChangedCodeError, match=r"faithfulness\.py"):
        ModuleGraph(code_copy, {**note_files(code_copy), str(path): (0, 0, 0)}).digest(
            "metric_core.metrics.faithfulness"
        )


def test_the_state_of_all_modules_is_noted_when_they_are_loaded() -> None:
    assert set(ModuleGraph(ROOT.absolute()).files.values()) == set(NOTED)


def test_nothing_that_a_stage_reaches_imports_by_name_but_plugins() -> None:
    graph = ModuleGraph(ROOT)
    reached = set[str]().union(
        *(graph.reach(module) for module in (MODELS, *(f"tasks.stages.{each}" for each in STAGES)))
    )
    by_name = {
        each for each in reached if re.search(r"import_module|__import__|pkgutil", text_of(Path(graph.files[each])))
    }
    assert by_name == {"tasks.plugins.load_object"}


def test_formulas_read_no_files_but_those_that_another_digest_covers() -> None:
    """The fingerprint of a judge covers prompts, a digest in the code that reads them the forms of refusals."""
    folders = [Path(prefix.replace(".", "/")) for prefix in formulas._FORMULAS]
    data = {path for path in files() if path.suffix != ".py" and any(path.is_relative_to(each) for each in folders)}
    guides = {Path(f"metric_core/metrics/{name}.md") for name in METRICS}
    assert guides < data
    prompts, forms = Path("metric_core/prompts"), Path("metric_core/refusals/forms")
    covered = {path for path in data if path.parent.parent == prompts or path.parent == forms}
    assert data - guides - covered == {Path("metric_core/py.typed")}
    graph, reader = ModuleGraph(ROOT), "metric_core.metrics.guides"
    assert [module for module in graph.files if reader in graph.reach(module)] == [reader]
