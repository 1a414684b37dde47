"""Modules are found as Python would import them, wherever the imports are written."""

from pathlib import Path

import pytest

from tasks.engine.module_graph import ModuleGraph
from tests.structure.house import ROOT
from tests.tasks.engine.parsed_imports import parse_imports, reach


def write(root: Path, **sources: str) -> ModuleGraph:
    """A graph of the package `metric_core` with these modules, and of `tasks` without any."""
    for name, source in {"__init__": "", **sources}.items():
        path = root / "metric_core" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source, encoding="utf-8")
    return ModuleGraph(root)


def test_every_module_reaches_what_pythons_parser_finds() -> None:
    graph = ModuleGraph(ROOT)
    imports = parse_imports(graph.files)
    for module in imports:
        assert graph.reach(module) == reach(imports, module), module


@pytest.mark.parametrize(
    "source",
    [
        "from metric_core.wanted import name",
        "from metric_core.wanted import (\n    name,\n    other,\n)",
        "from metric_core import wanted",
        "from metric_core import other, wanted as renamed  # as a name",
        "from metric_core import (\n    other,\n    wanted,\n)",
        "def f():\n    from metric_core import wanted",
        "if TYPE_CHECKING:\n    from metric_core.wanted import name",
    ],
)
def test_an_import_is_found(tmp_path: Path, source: str) -> None:
    graph = write(tmp_path, start=source, wanted="", unwanted="")
    assert graph.reach("metric_core.start") == {"metric_core", "metric_core.start", "metric_core.wanted"}


def test_imports_are_followed_in_circles_and_through_packages(tmp_path: Path) -> None:
    graph = write(
        tmp_path,
        start="from metric_core.package.inner import name",
        last="from metric_core.start import name",
        **{"package/__init__": "from metric_core.last import name", "package/inner": ""},
    )
    assert graph.reach("metric_core.start") >= {"metric_core.package", "metric_core.package.inner", "metric_core.last"}


def test_metrics_of_the_registry_are_not_followed(tmp_path: Path) -> None:
    sources = {
        "metrics/registry": "from metric_core.metrics.one import ONE\nfrom metric_core.parsing import name",
        "parsing": "",
        "metrics/__init__": "",
        "metrics/one": "",
        "stage": "from metric_core.metrics.one import ONE",
    }
    graph = write(tmp_path, **sources)
    assert graph.reach("metric_core.metrics.registry") == {
        "metric_core",
        "metric_core.metrics",
        "metric_core.metrics.registry",
        "metric_core.parsing",
    }
    assert "metric_core.metrics.one" in graph.reach("metric_core.stage")


def test_the_digest_is_that_of_the_source(tmp_path: Path) -> None:
    digests = [write(tmp_path, start=f"a = {value}").digest("metric_core.start") for value in (1, 2, 1)]
    assert digests[0] == digests[2] != digests[1]


def test_a_module_without_a_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(KeyError, match="tasks"):
        write(tmp_path).reach("tasks.stages.claims")
