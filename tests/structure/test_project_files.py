"""The files that hosts of repositories read: what runs for a commit, and how the project is cited."""

import re
import subprocess
import sys
import tomllib
from importlib.metadata import distribution
from typing import Any

import yaml

from tasks.models.embedders.minilm import TOKENIZER
from tests.structure.house import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def read(path: str) -> Any:
    return yaml.safe_load((ROOT / path).read_text(encoding="utf-8"))


def test_the_workflow_runs_what_anybody_can_run_with_a_supported_python() -> None:
    (job,) = read(".github/workflows/ci.yml")["jobs"].values()
    assert [step["run"] for step in job["steps"] if "run" in step] == ["bash .ci/run"]
    (version,) = [step["with"]["python-version"] for step in job["steps"] if "setup-python" in step.get("uses", "")]
    assert f"Programming Language :: Python :: {version}" in PROJECT["classifiers"]


def test_the_workflows_have_the_form_of_workflows_and_name_what_they_use_by_commit() -> None:
    workflows = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.github-workflows"]
    done = subprocess.run([*command, *map(str, workflows)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    used = [
        step["uses"]
        for path in workflows
        for job in read(str(path))["jobs"].values()
        for step in job["steps"]
        if "uses" in step
    ]
    assert used
    assert [name for name in used if not re.search(r"@[0-9a-f]{40}$", name)] == []


def test_the_citation_names_the_project_and_its_license() -> None:
    citation = read("CITATION.cff")
    assert citation.keys() >= {"cff-version", "message", "authors"}  # which the format requires
    assert (citation["title"], citation["license"]) == (PROJECT["name"], PROJECT["license"])


def test_both_names_of_the_command_start_the_same() -> None:
    assert PROJECT["scripts"].keys() == {"assay", "rag-assay"}
    assert len(set(PROJECT["scripts"].values())) == 1


def test_the_page_on_packaged_models_names_what_is_installed_and_verified() -> None:
    page = (ROOT / "docs" / "packaged-models.md").read_text(encoding="utf-8")
    pins = [pin.split("==") for pin in PROJECT["dependencies"] if "==" in pin]
    assert len(pins) == 2
    assert [pin for pin in pins if f"| `{pin[0]}` | {pin[1]} |" not in page] == []
    assert f"`{TOKENIZER.sha256[:12]}...`" in page


def test_the_installed_entry_points_are_those_of_the_project() -> None:
    wanted = {
        (group, name, value)
        for group, points in PROJECT["entry-points"].items()
        if group.startswith("rag_assay.")
        for name, value in points.items()
    }
    installed = distribution(PROJECT["name"]).entry_points
    found = {(point.group, point.name, point.value) for point in installed if point.group.startswith("rag_assay.")}
    assert found == wanted, "the project is installed as it was before: pip install --no-deps --editable ."
