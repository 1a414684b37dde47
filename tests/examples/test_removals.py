"""A room behind a door can be removed, with its entry points and its own tests; the rest works without it.

The tests that are no room's own are run once, without all rooms and all findings, in `test_finding_removals.py`.
"""

import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.examples.test_additions import run_verbs
from tests.structure.house import PACKAGES, ROOT, files, modules, text_of
from tests.structure.test_imports import imported_modules

BESIDE_PACKAGES = ("tests", "examples", "benchmarks", "docs")
COPIED = frozenset((*PACKAGES, *BESIDE_PACKAGES))

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@dataclass(frozen=True)
class Room:
    """Files and entry points that are removed together.

    Args:
        paths: Its folders and files.
        points: Names of its entry points, each after its group.
        tests: Its own tests besides the folders that mirror its paths.
    """

    paths: tuple[str, ...]
    points: tuple[str, ...] = ()
    tests: tuple[str, ...] = ()

    @property
    def own_tests(self) -> tuple[str, ...]:
        return (*(f"tests/{path}" for path in self.paths), *self.tests)


def module_name(path: str) -> str:
    return path.removesuffix(".py").replace("/", ".")


def is_in(module: str, folders: Iterable[str]) -> bool:
    return any(module == folder or module.startswith(f"{folder}.") for folder in folders)


FIGURES = ("cost", "figure", "latency", "retrieved", "tokens")
DISAGREEMENTS = ("context_conflict", "stale_answer")
LEAKS = ("leaked_claims", "leaked_passages")

ROOMS = {
    "traces": Room(
        ("tasks/sources/traces", "deployments/trace_receiver"),
        ("readers.traces", "verbs.traces"),
        ("tests/examples/test_handbook_bot.py",),
    ),
    "questions": Room(
        ("tasks/index_questions", "deployments/index_questions", "flows/write_questions.py"),
        ("verbs.questions",),
        (
            "benchmarks/index_questions.py",
            "tests/deployments/cli/test_questions.py",
            "tests/deployments/served/rebuilt_index.py",
            "tests/deployments/served/test_chain_after_rebuild.py",
        ),
    ),
    "leaks": Room(
        (
            "tasks/leaks",
            "metric_core/metrics/leaks.py",
            *(f"{folder}/{name}.md" for folder in ("metric_core/metrics", "docs/metrics") for name in LEAKS),
        ),
        ("findings.leaks", *(f"metrics.{name}" for name in LEAKS)),
        (
            "benchmarks/leaks.py",
            "tests/flows/monitoring/test_leaks_alert.py",
            "tests/metric_core/metrics/test_leaks.py",
        ),
    ),
    "disagreements": Room(
        (
            "metric_core/disagreements",
            "metric_core/metrics/disagreements.py",
            "tasks/disagreements",
            *(f"{folder}/{name}.md" for folder in ("metric_core/metrics", "docs/metrics") for name in DISAGREEMENTS),
        ),
        ("findings.disagreements", "index_checks.disagreements", *(f"metrics.{name}" for name in DISAGREEMENTS)),
        ("benchmarks/disagreeing_passages.py", "tests/metric_core/metrics/test_disagreements.py"),
    ),
    "figures": Room(
        (
            "tasks/figures",
            "metric_core/metrics/figures.py",
            *(f"{folder}/{name}.md" for folder in ("metric_core/metrics", "docs/metrics") for name in FIGURES),
        ),
        ("findings.figures", *(f"metrics.{name}" for name in FIGURES)),
        ("tests/metric_core/metrics/test_figures.py",),
    ),
    "index-check": Room(
        ("tasks/index_receipt", "deployments/index_check", "flows/guard_index.py"),
        ("verbs.index", "findings.index_receipt", "rebuild_guards.index_receipt"),
        (
            "benchmarks/index_receipt.py",
            "tests/deployments/served/test_chain_checks_index.py",
            "tests/flows/test_guard_index.py",
        ),
    ),
    "mlflow": Room(
        ("tasks/mlflow_results", "deployments/public/rag_assay/mlflow.py"),
        ("sinks.mlflow",),
        ("tests/deployments/public/test_mlflow.py",),
    ),
    "many-runs": Room(
        (
            "metric_core/statistics/best_of_many.py",
            "tasks/many_runs",
            "tasks/reports/templates/many_runs.html.j2",
            "tasks/reports/templates/many_runs.css",
            "deployments/many_runs",
        ),
        ("verb_forms.compare", "verb_forms.run"),
        (
            "benchmarks/best_of_many.py",
            "benchmarks/many_configurations.py",
            "tests/browser/test_many_runs.py",
            "tests/metric_core/statistics/test_best_of_many.py",
        ),
    ),
    "chat-services": Room(("flows/chat_services",), ("recipients.apprise",)),
    "hops": Room(("tasks/hops",), ("findings.hops",)),
    "kept-rows": Room(
        ("tasks/kept_rows", "deployments/kept_rows"),
        ("verbs.keep", "readers.kept", "sinks.keep"),
        ("tests/deployments/cli/test_keep.py", "tests/flows/test_kept_rows.py"),
    ),
    "eval-hub": Room(("deployments/eval_hub",), ("verbs.job",)),
    "label-studio": Room(("tasks/label_studio", "deployments/label_studio"), ("verbs.label-studio",)),
    "github": Room(("deployments/github",)),
    "documentation": Room(("deployments/documentation",), ("verbs.docs",)),
}

SHARED_TESTS = {
    "tests/browser/pictures.py": {"questions"},
    "tests/faults/test_special_files.py": {"questions"},
    "tests/flows/config/test_config_files.py": {"eval-hub"},
    "tests/tasks/figures/test_figures_finding.py": {"traces"},
    "tests/properties/test_written_is_read.py": {"questions", "traces"},
    "tests/tasks/hops/test_recorded_hops.py": {"traces"},
    "tests/tasks/reports/exports/test_score_files.py": {"traces"},
    "tests/tasks/reports/exports/test_send_scores.py": {"traces"},
}
"""Test of several rooms -> the rooms without which a part of it cannot run."""


def copy_without(rooms: Iterable[Room], folder: Path, *others: str) -> Path:
    """Copy the packages without some rooms and without their entry points, as an installation of their own."""
    rooms = tuple(rooms)
    for package in (*PACKAGES, *others):
        shutil.copytree(ROOT / package, folder / package, ignore=shutil.ignore_patterns(".mypy_cache"))
    for path in (path for room in rooms for path in (*room.paths, *room.own_tests)):
        target = folder / path
        if target.is_dir():
            shutil.rmtree(target)
        else:
            target.unlink(missing_ok=True)
    removed = {f"rag_assay.{point}" for room in rooms for point in room.points}
    info = folder / "rag_assay-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: rag-assay\nVersion: 1.0\n", encoding="utf-8")
    lines = []
    for group, points in PROJECT["entry-points"].items():
        kept = [f"{name} = {value}" for name, value in points.items() if f"{group}.{name}" not in removed]
        lines += [f"[{group}]", *kept]
    (info / "entry_points.txt").write_text("\n".join(lines), encoding="utf-8")
    return folder


def check_that_the_rest_works(copy: Path, home: Path, run: Path) -> str:
    example = str(ROOT / "examples" / "handbook.jsonl")
    evaluation = ("run", example, "--limit", "3", "-m", "faithfulness,context_relevancy", "--out", str(run))
    printed = run_verbs(copy, home, ("--help",), evaluation)
    assert (run / "report.html").is_file()
    return printed


def test_every_room_and_its_entry_points_are_there() -> None:
    assert [path for room in ROOMS.values() for path in room.paths if not (ROOT / path).exists()] == []
    points = {f"{group}.{name}" for group, found in PROJECT["entry-points"].items() for name in found}
    doors = {point for point in points if point.startswith("rag_assay.")}
    assert doors == {f"rag_assay.{point}" for room in ROOMS.values() for point in room.points}


def test_only_its_own_tests_import_a_room() -> None:
    modules_of = {name: [*map(module_name, (*room.paths, *room.own_tests))] for name, room in ROOMS.items()}
    words = {module.rpartition(".")[2] for found in modules_of.values() for module in found}
    found: dict[str, set[str]] = {}
    for path in modules(*PACKAGES, "tests", "benchmarks", "examples"):
        text = text_of(path)
        if not any(word in text for word in words):
            continue
        imported = {*imported_modules(text)}
        for name, room in ROOMS.items():
            is_own = path.as_posix().startswith((*room.paths, *room.own_tests))
            if not is_own and any(is_in(module, modules_of[name]) for module in imported):
                found.setdefault(path.as_posix(), set()).add(name)
    assert found == SHARED_TESTS


@pytest.mark.served
def test_without_all_rooms_the_example_is_evaluated(server_home: Path, tmp_path: Path) -> None:
    copy = copy_without(ROOMS.values(), tmp_path / "copy")
    printed = check_that_the_rest_works(copy, server_home, tmp_path / "run")
    assert "\n  run " in printed
    assert not [verb for verb in ("questions", "job", "traces") if f"\n  {verb} " in printed]


@pytest.mark.removal
@pytest.mark.parametrize("name", ROOMS)
def test_without_a_room_the_example_is_evaluated(name: str, server_home: Path, tmp_path: Path) -> None:
    printed = check_that_the_rest_works(copy_without([ROOMS[name]], tmp_path / "copy"), server_home, tmp_path / "run")
    verbs = {point.removeprefix("verbs.") for room in ROOMS.values() for point in room.points if "verbs." in point}
    gone = {point.removeprefix("verbs.") for point in ROOMS[name].points if "verbs." in point}
    assert {verb for verb in verbs if f"\n  {verb} " in printed} == verbs - gone


@pytest.mark.removal
@pytest.mark.parametrize("name", ROOMS)
def test_without_a_room_types_check_and_the_tests_of_the_others_pass(name: str, tmp_path: Path) -> None:
    copy = copy_without([ROOMS[name]], tmp_path / "copy", *BESIDE_PACKAGES)
    for path in (path for path, rooms in SHARED_TESTS.items() if name in rooms):
        (copy / path).unlink()
    check_types(copy)
    others = (path for other, room in ROOMS.items() if other != name for path in room.own_tests)
    shared = (path for path, rooms in SHARED_TESTS.items() if name not in rooms)
    check_tests(copy, *map(Path, (*others, *shared)))


def run_module(copy: Path, *command: str) -> str:
    """Run a module in a copy, and return what it prints."""
    inherited = ("PREFECT_", "ASSAY_", "PYTEST_")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(inherited)}
    environment["PYTHONPATH"] = os.pathsep.join([str(copy / "deployments/public"), str(copy)])
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=copy, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{command[0]}:\n{done.stdout[-5000:]}{done.stderr[-1000:]}"
    return done.stdout


def check_types(copy: Path) -> None:
    """Check the types of a copy with its tests, so also that no module imports one that is gone."""
    if (ROOT / ".mypy_cache").is_dir():  # what is known of modules that have not changed
        shutil.copytree(ROOT / ".mypy_cache", copy / ".mypy_cache")
    shutil.copy(ROOT / "pyproject.toml", copy)
    run_module(copy, "mypy")


def check_tests(copy: Path, *paths: Path) -> None:
    """Run tests of a copy, but for those of whole servers, of browsers and of simulations.

    Args:
        *paths: Folders and files relative to the copy; those of its packages are run that are there.
    """
    for path in (path for path in files() if not (copy / path).exists() and path.parts[0] not in COPIED):
        (copy / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, copy / path)
    for command in ("init --quiet", "add --all", "-c user.name=a -c user.email=a commit --quiet --message copy"):
        subprocess.run(["git", *command.split()], cwd=copy, check=True)  # some tests look at all files
    is_test = (path for path in paths if path.suffix != ".py" or path.name.startswith("test_"))
    found = [str(path) for path in is_test if path.parts[1] in PACKAGES and (copy / path).exists()]
    options = ("-q", "-r", "fE", "-m", "not browser", "--numprocesses", "2", "--dist", "loadfile")
    run_module(copy, "pytest", *options, *found)
