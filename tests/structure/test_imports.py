"""Import checks beyond the contracts of pyproject.toml: contracts name every adapter, and imports are cheap."""

import subprocess
import sys
import tomllib

import pytest

from tests.structure.house import ROOT, modules

HEAVY = ("datasets", "onnxruntime", "pandas", "prefect", "spacy", "sqlalchemy", "torch", "transformers")
NAMES_OF_THE_LOADED = f"import sys; print(*sorted(set(sys.modules) & set({HEAVY})))"


def test_the_contract_names_every_adapter() -> None:
    tool = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    contracts = {contract["name"]: contract for contract in tool["importlinter"]["contracts"]}
    named = contracts["Adapters work without Prefect"]["source_modules"]
    with_prefect = {"tasks.engine", "tasks.models", "tasks.prefect_support", "tasks.stages"}
    adapters = {f"tasks.{path.parts[1]}" for path in modules("tasks") if len(path.parts) > 2} - with_prefect
    assert adapters <= set(named)
    others = {name.rpartition(".")[0] for name in set(named) - adapters}  # modules of a folder that uses Prefect
    assert others <= with_prefect


@pytest.mark.parametrize(
    "module", ["deployments.cli.main", "metric_core.metrics.registry", "tasks.sources", "tasks.models.run_models"]
)
def test_import_loads_no_heavy_package(module: str) -> None:
    command = [sys.executable, "-c", f"import {module}; {NAMES_OF_THE_LOADED}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == []
