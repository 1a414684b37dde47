"""Files of the repository: layout, length, and contents that no file may have."""

import ast
import re
from collections import Counter
from itertools import chain
from statistics import median

from tests.scheduling import SHARED, SLOW
from tests.structure.house import PACKAGES, ROOT, files, modules, modules_with, text_of

TOP_LEVEL = {
    *PACKAGES,
    *(
        ".ci",
        ".gitattributes",
        ".github",
        ".gitignore",
        ".pre-commit-config.yaml",
        "CHANGELOG.md",
        "CITATION.cff",
        "CONTRIBUTING.md",
        "LICENSE",
        "llms.txt",
        "README.md",
        "RELEASING.md",
        "SECURITY.md",
    ),
    *("benchmarks", "constraints", "docs", "examples", "justfile", "pyproject.toml", "tests"),
}
REPEATABLE_NAMES = ("__init__", "__main__", "door", "protocol")
MOST_LINES = 400
MEDIAN_LINES = 150

# Assembled from parts because this file is searched too.
_HOSTS = (r"py" + r"pi\.org", r"python" + r"hosted\.org", r"npm" + r"js\.(?:org|com)", r"deb" + r"ian\.org")
_FOLDERS = ("root", "home", "opt", "work", "Users", "mnt")
UNMENTIONABLE = {
    "a package registry": re.compile("|".join(_HOSTS)),
    "a path of one machine": re.compile(rf"(?<![\w.}}/-])/(?:{'|'.join(_FOLDERS)})/\w|file:" + "///"),
}
OPTIONAL_DATA = "../" + "shared"
READERS_OF_OPTIONAL_DATA = {".ci", "benchmarks", "tests"}


def test_top_level_has_only_the_listed_entries() -> None:
    assert {path.parts[0] for path in files()} <= TOP_LEVEL


def test_no_file_mentions_a_registry_or_a_path_of_one_machine() -> None:
    found = [
        f"{path}: {what}: {match.group()}"
        for path in files()
        for what, pattern in UNMENTIONABLE.items()
        if (match := pattern.search(text_of(path)))
    ]
    assert found == []


def test_only_tests_and_benchmarks_read_data_outside_the_repository() -> None:
    readers = {path.parts[0] for path in files() if OPTIONAL_DATA in text_of(path)}
    assert readers <= READERS_OF_OPTIONAL_DATA


def test_every_module_has_a_docstring() -> None:
    paths = modules(*PACKAGES, "tests", "benchmarks", "docs")
    assert [str(path) for path in paths if not re.match(r'(?:#.*\n|\s)*[rR]?"""', text_of(path))] == []


def test_every_folder_of_modules_is_a_package() -> None:
    paths = modules(*PACKAGES, "tests")
    folders = {path.parent for path in paths}
    assert {str(folder) for folder in folders if folder / "__init__.py" not in paths} == set()


def test_tasks_has_no_flat_modules() -> None:
    assert [str(path) for path in modules("tasks") if len(path.parts) == 2] == ["tasks/__init__.py"]


def test_no_two_modules_of_a_package_share_a_name() -> None:
    names = Counter((path.parts[0], path.stem) for path in modules(*PACKAGES))
    repeated = {f"{package}: {name}" for (package, name), count in names.items() if count > 1}
    assert repeated <= {f"{package}: {name}" for package in PACKAGES for name in REPEATABLE_NAMES}


def test_modules_are_short() -> None:
    lengths = {str(path): len(text_of(path).splitlines()) for path in modules(*PACKAGES, "tests")}
    assert {path: length for path, length in lengths.items() if length > MOST_LINES} == {}
    product = [length for path, length in lengths.items() if not path.endswith("__init__.py") and path[:5] != "tests"]
    assert median(product) <= MEDIAN_LINES


def test_files_that_tests_schedule_are_there() -> None:
    assert [path for path in (*SLOW, *chain(*SHARED.values())) if not (ROOT / path).exists()] == []


HASHING = {"tasks/metering/prefix_forecast.py", "tasks/runs/row_grouping.py"}
"""Modules that compare hashes of texts within a process; elsewhere a hash would differ from one run to the next."""


def test_no_result_depends_on_the_hashes_of_a_process() -> None:
    found = {
        path.as_posix()
        for path in modules_with(r"\bhash\(", *PACKAGES)
        for function in ast.walk(ast.parse(text_of(path)))
        if isinstance(function, ast.FunctionDef) and function.name != "__hash__"
        for call in ast.walk(function)
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "hash"
    }
    assert found == HASHING
