"""A wheel and an editable installation hold what programs and type checkers need."""

import json
import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from tasks.runtime.release import version_of_source
from tests.deployments.public.foreign import write_modules
from tests.sharing import ensure_local_server
from tests.structure.house import PACKAGES, ROOT

pytest.importorskip("hatchling", reason="the extra `dev` is not installed: nothing builds a wheel")

SNIPPET = '''
from pathlib import Path

import datasets
import pandas as pd
import pyarrow as pa

from rag_assay import AssayError, ComparisonResult, RunResult, compare, evaluate, open_run
from rag_assay.plugins import Direction, Evidence, Metric, MetricRequest, Score, constant

rows = [{"user_input": "Why?", "response": "Because."}]


def nightly(path: Path) -> float | None:
    """Evaluate data of each kind."""
    try:
        run: RunResult = evaluate(path, metrics=["faithfulness", {"metric": "rubrics", "parameters": {"rubrics": {}}}])
    except AssayError:
        return None
    for data in (rows, str(path)):
        evaluate(data, metrics="faithfulness,answer_relevancy", limit=3)
    evaluate(pa.table({"response": ["Yes."]}))
    evaluate(pd.DataFrame(rows))
    evaluate(datasets.Dataset.from_list(rows), judge="http://localhost:8000/v1")
    comparison: ComparisonResult = compare(open_run("runs/first"), run, gate="gate.toml")
    return None if comparison.outcome is None else float(run.summary["faithfulness"]["scored"])


def length(request: MetricRequest, evidence: Evidence) -> Score:
    """Count the characters of the response."""
    return Score.scored(len(evidence.column("response")))


LENGTH = Metric(
    name="length",
    summary="Number of characters.",
    source="us",
    family="house",
    columns=constant("response"),
    products=constant(),
    compute=length,
    direction=Direction.LOWER,
    bounds=lambda parameters: None,
    undefined={},
)
'''
WRONG = """
from rag_assay import evaluate, open_run

evaluate(3)
evaluate("answers.jsonl", metrics=[{"key": "a"}])
open_run("runs/first").scorse()
"""
SETTINGS = """
[tool.mypy]
# To save time; other packages than rag-assay have no part in what is tested.
[[tool.mypy.overrides]]
module = ["httpx.*", "numpy.*", "prefect.*", "pydantic.*", "pydantic_settings.*", "rich.*", "sqlalchemy.*", "typer.*"]
follow_imports = "skip"
[[tool.mypy.overrides]]
module = ["datasets.*", "pandas.*", "pyarrow.*"]
ignore_missing_imports = true
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the wheel that a build makes."""
    folder = tmp_path_factory.mktemp("wheel")
    run_python("-m", "hatchling", "build", "-t", "wheel", "-d", str(folder), cwd=ROOT)
    return next(folder.glob("*.whl"))


def run_python(*arguments: str, cwd: Path, python: str = sys.executable, path: str = "") -> str:
    """Run Python without the checkout on the import path, and return what it prints."""
    variables = {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "MYPYPATH"}}
    variables |= {"PYTHONPATH": path} if path else {}
    done = subprocess.run([python, *arguments], cwd=cwd, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def install(folder: Path, *what: str) -> str:
    """Install into a new environment that has the dependencies of this one, and return its Python."""
    run_python("-m", "venv", "--without-pip", str(folder), cwd=folder.parent)
    packages = next(folder.glob("lib/python*/site-packages"))
    shared = [path for path in sys.path if path.endswith("site-packages")]
    (packages / "dependencies.pth").write_text("\n".join(shared), encoding="utf-8")
    python = str(folder / "bin" / "python")
    options = ("--quiet", "--offline", "--no-deps", "--no-build-isolation", "--python", python)
    run_python("-m", "uv", "pip", "install", *options, *what, cwd=folder.parent)
    return python


def use(python: str, folder: Path) -> Path:
    """Use an installation where modules of a user have the names of its packages; return the package's folder."""
    write_modules(folder)
    code = "import rag_assay; from rag_assay import AssayError; print(rag_assay.__version__, rag_assay.__file__)"
    version, _, file = run_python("-c", code, cwd=folder, python=python).strip().partition(" ")
    for name in ("assay", "rag-assay"):
        command = str(Path(python).with_name(name))
        printed = run_python(command, "--version", cwd=folder, python=python, path=".")
        assert printed.split()[:2] == ["rag-assay", version]
    assert version == version_of_source(ROOT)
    return Path(file).parent


def test_the_wheel_has_every_module_once_and_all_packages_are_typed(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert len(names) == len(set(names))
    assert {f"{package}/py.typed" for package in (*PACKAGES, "rag_assay")} <= set(names)
    assert {name.split("/")[0] for name in names if ".dist-info" not in name} == {*PACKAGES, "rag_assay"}
    assert not [name for name in names if name.startswith("deployments/public")]
    built = {name for name in names if name.endswith(".py")}
    door = Path("deployments", "public")
    tracked = {path for package in PACKAGES for path in (ROOT / package).rglob("*.py")}
    relative = {path.relative_to(ROOT) for path in tracked}
    modules = {(path.relative_to(door) if door in path.parents else path).as_posix() for path in relative}
    assert built == modules | {"deployments/examples/handbook_bot.py"}
    assert sum("licenses/" in name for name in names) == 2  # of the project, and of the tokenizer in it


@pytest.mark.served
def test_a_build_from_the_sdist_makes_the_same_bytes_which_name_no_place_of_this_machine(
    wheel: Path, tmp_path: Path
) -> None:
    for folder in ("first", "second"):
        run_python("-m", "hatchling", "build", "-t", "sdist", "-d", str(tmp_path / folder), cwd=ROOT)
    first, second = (next((tmp_path / folder).glob("*.tar.gz")) for folder in ("first", "second"))
    assert first.read_bytes() == second.read_bytes()
    with tarfile.open(first) as archive:
        archive.extractall(tmp_path, filter="data")
    source = tmp_path / first.name.removesuffix(".tar.gz")
    run_python("-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path), cwd=source)
    assert (tmp_path / wheel.name).read_bytes() == wheel.read_bytes()
    with zipfile.ZipFile(wheel) as files:
        places = [str(ROOT).encode(), str(Path.home()).encode() + b"/", sys.prefix.encode()]
        assert [name for name in files.namelist() if any(place in files.read(name) for place in places)] == []


@pytest.mark.served
def test_an_installed_wheel_evaluates_a_file_and_its_own_example(
    wheel: Path, tmp_path: Path, server_home: Path
) -> None:
    python = install(tmp_path / "environment", str(wheel))
    folder = tmp_path / "empty"
    folder.mkdir()
    row = {"user_input": "When?", "response": "On Monday.", "retrieved_contexts": ["The shop opens on Monday."]}
    (folder / "own.jsonl").write_text(json.dumps(row), encoding="utf-8")
    ensure_local_server(server_home)
    variables = {
        name: value for name, value in os.environ.items() if not name.startswith(("PREFECT_", "ASSAY_", "PYTHONPATH"))
    }
    variables |= {"ASSAY_HOME": str(server_home)}
    for source, rows in (("own.jsonl", 1), ("--example", 48)):
        command = [str(Path(python).with_name("rag-assay")), "run", source, "--json"]
        done = subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["rows"] == rows
    written, examples = folder / "examples", ROOT / "examples"
    files = [path.relative_to(written) for path in written.rglob("*") if path.is_file()]
    assert {(file, (written / file).read_bytes()) for file in files} == {
        (file, (examples / file).read_bytes()) for file in files
    }
    assert len(files) > 20


@pytest.mark.served
def test_an_installed_wheel_works_and_satisfies_a_strict_type_checker(wheel: Path, tmp_path: Path) -> None:
    python = install(tmp_path / "environment", str(wheel))
    assert use(python, tmp_path / "user") == next(
        (tmp_path / "environment").glob("lib/python*/site-packages/rag_assay")
    )
    folder = tmp_path / "typed"
    folder.mkdir()
    for name, text in (("right.py", SNIPPET), ("wrong.py", WRONG), ("pyproject.toml", SETTINGS)):
        (folder / name).write_text(text, encoding="utf-8")
    code = "import sys; from mypy import api; print(api.run(sys.argv[1:])[0])"  # mypy's exit code tells of the errors
    found = run_python("-c", code, "--strict", "--python-executable", python, "right.py", "wrong.py", cwd=folder)
    assert [line.partition(": error: ")[0] for line in found.splitlines() if ": error:" in line] == [
        "wrong.py:4",
        "wrong.py:5",
        "wrong.py:6",
    ], found


@pytest.mark.served
def test_an_editable_installation_works(tmp_path: Path) -> None:
    python = install(tmp_path / "environment", "--editable", str(ROOT))
    assert use(python, tmp_path / "user") == ROOT / "deployments" / "public" / "rag_assay"
