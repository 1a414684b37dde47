"""Import checks beyond the contracts of pyproject.toml: folders, adapters, and what an import costs."""

import ast
import subprocess
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.structure.house import PACKAGES, ROOT, modules, text_of

HEAVY = ("datasets", "onnxruntime", "pandas", "prefect", "spacy", "sqlalchemy", "torch", "transformers")
NAMES_OF_THE_LOADED = f"import sys; print(*sorted(set(sys.modules) & set({HEAVY})))"


def imported_modules(source: str) -> Iterator[str]:
    """Yield the names that may be modules among the imports of a module: at any depth, and those for types."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield str(node.module)
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def folders_that_import_each_other(sources: dict[Path, str]) -> list[str]:
    """Return the pairs of folders of which each has a module that imports one of the other.

    Args:
        sources: Path of each module, relative to the root -> its source code.
    """
    folder_of = {".".join(path.with_suffix("").parts).removesuffix(".__init__"): path.parent for path in sources}
    imported: dict[Path, set[Path]] = defaultdict(set)
    for path, source in sources.items():
        imported[path.parent].update(folder_of[name] for name in imported_modules(source) if name in folder_of)
    pairs = ((folder, other) for folder, others in list(imported.items()) for other in others)
    return sorted(f"{folder} <> {other}" for folder, other in pairs if folder < other and folder in imported[other])


def test_no_two_folders_import_each_other() -> None:
    sources = {path: text_of(path) for path in modules(*PACKAGES)}
    assert folders_that_import_each_other(sources) == []


@pytest.mark.parametrize(
    "source",
    [
        "from tasks.upper.one import name",
        "from tasks.upper import one",
        "import tasks.upper.one",
        "def late():\n    from tasks.upper.one import name",
        "if TYPE_CHECKING:\n    from tasks.upper.one import name",
    ],
)
def test_folders_that_import_each_other_are_found(source: str) -> None:
    above = {Path("tasks/upper/one.py"): "from tasks.lower.two import name", Path("tasks/lower/two.py"): ""}
    assert folders_that_import_each_other(above) == []
    assert folders_that_import_each_other({**above, Path("tasks/lower/two.py"): source}) == [
        "tasks/lower <> tasks/upper"
    ]


def test_the_contract_names_every_adapter() -> None:
    tool = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    contracts = {contract["name"]: contract for contract in tool["importlinter"]["contracts"]}
    named = contracts["Adapters work without Prefect"]["source_modules"]
    with_prefect = {"tasks.engine", "tasks.prefect_support", "tasks.stages"}
    adapters = {f"tasks.{path.parts[1]}" for path in modules("tasks") if len(path.parts) > 2} - with_prefect
    assert adapters <= set(named)
    others = {name.rpartition(".")[0] for name in set(named) - adapters}  # modules of a folder that uses Prefect
    assert others <= with_prefect


VERBS = [".".join(path.with_suffix("").parts) for path in modules("deployments") if path.parts[1:-1] == ("cli",)]


def test_import_of_the_verbs_loads_nothing_that_they_must_prepare_or_seldom_need() -> None:
    assert "deployments.cli.run" in VERBS
    code = f"import sys, {', '.join(VERBS)}; print(*sorted(set(sys.modules) & set({HEAVY}) - {{'sqlalchemy'}}))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == []


def test_imports_load_no_heavy_package() -> None:
    modules = ("metric_core.metrics.registry", "tasks.sources", "tasks.opening.run_models", "deployments.cli.run")
    command = [sys.executable, "-c", f"import deployments.cli.main, {', '.join(modules)}; {NAMES_OF_THE_LOADED}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == []
