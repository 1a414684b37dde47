"""The page on the way of a row names files that exist, and draws imports that are there."""

import ast
import re
from itertools import pairwise

import pytest

from tests.structure.house import PACKAGES, ROOT

PAGE = ROOT / "docs" / "design" / "way-of-a-row.md"
FILES = 12
_NODE = re.compile(r'(\w+)\["(\d+) ([\w/.]+)"\]')
_IMPORT = re.compile(r"^ *(\w+)(?:\[.*?\])? --> (\w+)", re.MULTILINE)
_FOUND = re.compile(r'^ *(\w+)(?:\[.*?\])? -\. "([\w/.]+)" \.-> (\w+)', re.MULTILINE)
_ROW = re.compile(r"^\| `([\w/]+\.py)` \| `(\w+)` \|", re.MULTILINE)


@pytest.fixture(scope="module")
def page() -> str:
    return PAGE.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def picture(page: str) -> str:
    found = re.search(r"^```mermaid\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert found is not None
    return found[1]


@pytest.fixture(scope="module")
def nodes(picture: str) -> dict[str, str]:
    """Return the files of the picture by the names of their nodes, in the order of their numbers."""
    numbered = sorted((int(number), node, file) for node, number, file in _NODE.findall(picture))
    assert [number for number, *_ in numbered] == list(range(1, FILES + 1))
    return {node: file for _, node, file in numbered}


def imports(file: str) -> set[str]:
    """Return the modules that a file imports, in functions as well, each with the names taken from it."""
    found: set[str] = set()
    for node in ast.walk(ast.parse((ROOT / file).read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            found.update({node.module, *(f"{node.module}.{alias.name}" for alias in node.names)})
    return found


def module_of(file: str) -> str:
    return file.removesuffix(".py").replace("/", ".")


def test_the_table_has_the_files_of_the_picture_in_their_order(page: str, nodes: dict[str, str]) -> None:
    assert [file for file, _ in _ROW.findall(page)] == list(nodes.values())


def test_each_file_defines_what_a_reader_begins_with(page: str) -> None:
    for file, name in _ROW.findall(page):
        tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
        defined = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
        assigned = [target for node in tree.body if isinstance(node, ast.Assign) for target in node.targets]
        assert name in defined | {target.id for target in assigned if isinstance(target, ast.Name)}, file


def test_solid_arrows_are_imports(picture: str, nodes: dict[str, str]) -> None:
    arrows = _IMPORT.findall(picture)
    assert [(nodes[a], nodes[b]) for a, b in arrows if module_of(nodes[b]) not in imports(nodes[a])] == []
    for a, b in arrows:
        assert module_of(nodes[a]) not in imports(nodes[b]), f"{nodes[b]} imports {nodes[a]}, against the arrow"


def test_dashed_arrows_pass_a_registry_that_imports_their_ends(picture: str, nodes: dict[str, str]) -> None:
    arrows = _FOUND.findall(picture)
    assert len(arrows) + len(_IMPORT.findall(picture)) == picture.count("->")
    for a, registry, b in arrows:
        assert (ROOT / registry).is_file(), registry
        assert module_of(nodes[b]) not in imports(nodes[a]), f"{nodes[a]} imports {nodes[b]}: draw a solid arrow"
        assert not {module_of(nodes[b]), "importlib.import_module"}.isdisjoint(imports(registry)), registry


def test_every_file_but_the_first_is_reached_from_an_earlier_one(picture: str, nodes: dict[str, str]) -> None:
    order = list(nodes)
    arrows = [*_IMPORT.findall(picture), *((a, b) for a, _, b in _FOUND.findall(picture))]
    for node in order[1:]:
        assert any(b == node and order.index(a) < order.index(node) for a, b in arrows), nodes[node]


def test_the_way_leads_down_the_layers_and_back_to_the_flow(nodes: dict[str, str]) -> None:
    layers = ("deployments", "flows", "tasks", "metric_core")
    assert set(layers) == set(PACKAGES)
    *down, last = [layers.index(file.split("/")[0]) for file in nodes.values()]
    assert all(a <= b for a, b in pairwise(down))
    assert layers[last] == "flows"
