"""A finding can be removed, with its lines in the tables and its own tests; the rest works without it.

Its own are the tests in `tests/flows/findings/NAME` and `tests/tasks/findings/NAME`, and those that import its room or
one of these. Tests that are no finding's own are run once, in a copy without any finding and without the rooms behind
doors; those of `metric_core` know neither. What is left are the own tests of the other findings. They are run in copies
without half of the findings each, so that each pair is separated in one of them: each finding is gone while each other
one is there that does not need it.
"""

import ast
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path

import pytest

from flows.planning.finding_table import TABLE as PLANNED
from tasks.findings.table import TABLE as SHOWN
from tests.examples.test_removals import (
    BESIDE_PACKAGES,
    SHARED_TESTS,
    Room,
    check_tests,
    check_that_the_rest_works,
    check_types,
    copy_without,
    is_in,
    module_name,
    run_module,
)
from tests.examples.test_removals import ROOMS as DOORS
from tests.structure.house import PACKAGES, ROOT, modules, text_of
from tests.structure.test_imports import imported_modules

TABLES = ("tasks/findings/table.py", "flows/planning/finding_table.py")
OPTIONS = "flows/config/run_config.py"
TESTS = ("tests", "benchmarks")


def room_of(module: str) -> tuple[str, str]:
    """Return the name of a finding and the path of its room, a folder or a file, by the module that declares it.

    >>> room_of("tasks.findings.anchor.anchor_finding"), room_of("flows.findings.compute_cost")
    (('anchor', 'tasks/findings/anchor'), ('cost', 'flows/findings/compute_cost.py'))
    """
    folder, _, file = module.rpartition(".")
    if folder.endswith(".findings"):
        return file.removeprefix("compute_"), f"{module.replace('.', '/')}.py"
    return folder.rpartition(".")[2], folder.replace(".", "/")


def rooms_of_findings() -> dict[str, Room]:
    paths: dict[str, tuple[str, ...]] = {}
    for module in (*(each.name for each in SHOWN), *(each.module for each in PLANNED)):
        name, path = room_of(module)
        paths[name] = (*paths.get(name, ()), path)
    tests = ("tests/flows/findings", "tests/tasks/findings")
    return {name: Room(found, tests=tuple(f"{folder}/{name}" for folder in tests)) for name, found in paths.items()}


ROOMS = rooms_of_findings()
NEEDS = {room_of(each.name)[0]: each.needs for each in SHOWN}


def removed_with(name: str) -> dict[str, Room]:
    """Return the room of a finding, and those of findings that need it."""
    gone = {name}
    while more := {other for other, needs in NEEDS.items() if gone.intersection(needs)} - gone:
        gone |= more
    return {other: ROOMS[other] for other in ROOMS if other in gone}


def family_of(name: str) -> set[str]:
    """Return a finding with all that it needs or that need it, and so on."""
    found = {name}
    while more := {other for other in ROOMS if other not in found and any(are_kin(other, each) for each in found)}:
        found |= more
    return found


def are_kin(one: str, other: str) -> bool:
    return one in NEEDS[other] or other in NEEDS[one]


def separate() -> Iterator[tuple[str, ...]]:
    """Yield sets of findings to remove, so that each finding is in one that lacks another which does not need it."""
    families = list(dict.fromkeys(frozenset(family_of(name)) for name in ROOMS))
    for bit in range((len(families) - 1).bit_length()):
        for value in (0, 1):
            chosen = [family for place, family in enumerate(families) if place >> bit & 1 == value]
            yield tuple(name for name in ROOMS if any(name in family for family in chosen))
    yield from dict.fromkeys(tuple(gone) for name in ROOMS if len(gone := removed_with(name)) < len(family_of(name)))


SEPARATIONS = tuple(separate())


def modules_of(rooms: Iterable[Room]) -> list[str]:
    return [module_name(path) for room in rooms for path in room.paths]


def lines_about(text: str, gone: Collection[str]) -> Iterator[range]:
    """Yield the lines of a module about rooms: imports from them, bases from them, calls that name a module of them."""
    tree = ast.parse(text)
    imported: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and is_in(str(node.module), gone):
            imported.update(alias.name for alias in node.names)
            yield range(node.lineno, (node.end_lineno or node.lineno) + 1)
    for node in ast.walk(tree):
        bases = node.bases if isinstance(node, ast.ClassDef) else []
        found: list[ast.expr] = [base for base in bases if isinstance(base, ast.Name) and base.id in imported]
        if isinstance(node, ast.Call) and node.args and isinstance(name := node.args[0], ast.Constant):
            found += [node] if isinstance(name.value, str) and is_in(name.value, gone) else []
        yield from (range(each.lineno, (each.end_lineno or each.lineno) + 1) for each in found)


def without_lines(text: str, gone: Collection[str]) -> str:
    """Return a module without its lines about rooms."""
    dropped = {number for lines in lines_about(text, gone) for number in lines}
    kept = (line for number, line in enumerate(text.splitlines(keepends=True), start=1) if number not in dropped)
    return "".join(kept)


def own_tests(rooms: Iterable[Room]) -> list[Path]:
    """Return the modules of tests and benchmarks that are gone with rooms: those in their folders, and importers."""
    rooms = tuple(rooms)
    gone = [*modules_of(rooms), *(module_name(path) for room in rooms for path in room.own_tests)]
    outside = {path: [module_name(path.as_posix()), *imported_modules(text_of(path))] for path in modules(*TESTS)}
    found: list[Path] = []
    while own := [path for path, names in outside.items() if any(is_in(name, gone) for name in names)]:
        found += own
        gone += [outside.pop(path)[0] for path in own]
    return found


def copy_without_findings(names: Collection[str], folder: Path, *others: str, doors: Iterable[Room] = ()) -> Path:
    """Copy the packages without some findings, and without their own tests; pages made from code are written again.

    Args:
        doors: Rooms behind doors that are left out, too.
    """
    rooms = [ROOMS[name] for name in names]
    gone = modules_of(rooms)
    copy = copy_without([*rooms, *doors], folder, *others)
    for file in (*TABLES, OPTIONS):
        (copy / file).write_text(without_lines((copy / file).read_text(encoding="utf-8"), gone), encoding="utf-8")
    for path in own_tests(rooms):
        (copy / path).unlink(missing_ok=True)  # some are gone with their folders
    if "docs" in others:
        write_pages(copy)
    return copy


def write_pages(copy: Path) -> None:
    """Write the published schemas and the list of metrics of a copy as CONTRIBUTING says for changes."""
    run_module(copy, "tasks.findings.schemas", "docs")
    for command, file in (("init --schema", "config.schema.json"), ("metrics --markdown", "metrics.md")):
        (copy / "docs" / file).write_text(run_module(copy, "rag_assay", *command.split()), encoding="utf-8")


def test_rooms_of_findings_are_there_and_need_no_circle() -> None:
    assert [path for room in ROOMS.values() for path in room.paths if not (ROOT / path).exists()] == []
    assert {need for needs in NEEDS.values() for need in needs} <= ROOMS.keys()
    for name in ROOMS:
        assert all(name not in removed_with(other) for other in removed_with(name) if other != name), name


def test_each_finding_is_removed_while_each_other_one_is_there_that_does_not_need_it() -> None:
    for name in ROOMS:
        for other in ROOMS.keys() - removed_with(name).keys():
            assert any(name in gone and other not in gone for gone in SEPARATIONS), (name, other)
    assert all(set(removed_with(name)) <= set(gone) for gone in SEPARATIONS for name in gone)


def test_only_findings_that_say_so_and_the_tables_import_a_room() -> None:
    owners = {module: name for name, room in ROOMS.items() for module in modules_of([room])}
    for path in modules(*PACKAGES):
        if path.as_posix() == OPTIONS:
            continue
        here = next((owner for module, owner in owners.items() if is_in(module_name(path.as_posix()), [module])), "")
        found = {
            owner for name in imported_modules(text_of(path)) for room, owner in owners.items() if is_in(name, [room])
        }
        unsaid = found - {here, *NEEDS.get(here, ())}
        assert not unsaid, f"{path} imports the rooms of {', '.join(sorted(unsaid))}"


@pytest.mark.served
def test_without_all_findings_the_example_is_evaluated(server_home: Path, tmp_path: Path) -> None:
    copy = copy_without_findings(ROOMS, tmp_path / "copy")
    printed = check_that_the_rest_works(copy, server_home, tmp_path / "run")
    assert "\njudge: " not in printed


@pytest.mark.served
@pytest.mark.parametrize("name", ROOMS)
def test_without_a_finding_the_rest_works(name: str, server_home: Path, tmp_path: Path) -> None:
    copy = copy_without_findings(removed_with(name), tmp_path / "copy", *BESIDE_PACKAGES)
    check_that_the_rest_works(copy, server_home, tmp_path / "run")
    check_types(copy)


@pytest.mark.removal
@pytest.mark.parametrize("gone", SEPARATIONS, ids=["-".join(gone) for gone in SEPARATIONS])
def test_without_some_findings_the_tests_of_the_others_pass(gone: Sequence[str], tmp_path: Path) -> None:
    copy = copy_without_findings(gone, tmp_path / "copy", *BESIDE_PACKAGES)
    check_tests(copy, *own_tests(room for name, room in ROOMS.items() if name not in gone))


@pytest.mark.removal
def test_without_all_findings_and_rooms_types_check_and_the_other_tests_pass(tmp_path: Path) -> None:
    copy = copy_without_findings(ROOMS, tmp_path / "copy", *BESIDE_PACKAGES, doors=DOORS.values())
    for path in SHARED_TESTS:
        (copy / path).unlink(missing_ok=True)
    check_types(copy)
    check_tests(copy, *map(Path, ("tests/tasks", "tests/flows", "tests/deployments")))
