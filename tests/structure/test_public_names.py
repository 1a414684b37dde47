"""Public names are listed, typed and the only ones that the documentation imports; all packages are typed."""

import ast
import re
from pathlib import Path

import pytest

from tests.structure.house import PACKAGES, files, modules, text_of
from tests.structure.public_names import MODULES, PAGE, public_names, summarize, update

DOOR = Path("deployments/public/rag_assay")
PAGES = [
    path
    for path in files()
    if path.suffix == ".md" and path.parts[0] in {"README.md", "benchmarks", "docs", "examples"}
]
SHARED = ("deployments", "flows", "tasks")
"""Packages whose attributes may be those of a user's module of the same name."""


def test_the_page_lists_the_public_names() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert update(page) == page, "run `python -m tests.structure.public_names`"


@pytest.mark.parametrize("name", MODULES)
def test_every_public_name_exists_and_is_described(name: str) -> None:
    module = public_names()[name]
    assert module.__all__
    assert len(set(module.__all__)) == len(module.__all__)
    for public in module.__all__:
        assert summarize(public, getattr(module, public)) != public


def test_every_module_of_the_public_package_is_listed_or_private() -> None:
    found = {f"rag_assay.{path.stem}" for path in files() if path.parent == DOOR and path.suffix == ".py"}
    public = {name for name in found if not name.startswith("rag_assay._")}
    assert public | {"rag_assay"} == set(MODULES)


def test_type_checkers_see_the_names_that_are_loaded_later() -> None:
    tree = ast.parse(text_of(DOOR / "__init__.py"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    imports = [node for node in block.body if isinstance(node, ast.ImportFrom)]
    seen = {alias.name: str(node.module) for node in imports for alias in node.names}
    door = public_names()["rag_assay"]
    assert seen == door._ORIGINS
    assert {*seen, "__version__"} == set(door.__all__)


def test_an_unknown_name_is_refused_with_those_that_exist() -> None:
    with pytest.raises(AttributeError, match=r"module 'rag_assay' has no attribute 'judge_all'; it has: .*evaluate"):
        public_names()["rag_assay"].judge_all  # noqa: B018


def imports_of(page: Path) -> list[tuple[str, str]]:
    """Return the module and name of each import of one of the packages in the Python blocks of a page."""
    blocks = re.findall(r"^```python\n(.*?)^```$", text_of(page), re.MULTILINE | re.DOTALL)
    found = []
    for node in (node for block in blocks for node in ast.walk(ast.parse(block))):
        if isinstance(node, ast.ImportFrom) and str(node.module).partition(".")[0] in {*PACKAGES, "rag_assay"}:
            found += [(str(node.module), alias.name) for alias in node.names]
        elif isinstance(node, ast.Import):
            found += [(alias.name, "") for alias in node.names if alias.name.partition(".")[0] in PACKAGES]
    return found


def test_the_documentation_imports_public_names_only() -> None:
    for page in PAGES:
        public = public_names()
        private = [
            f"{module}.{name}"
            for module, name in imports_of(page)
            if name not in getattr(public.get(module), "__all__", ())
        ]
        assert private == [], page


def test_no_module_reads_a_submodule_as_an_attribute_of_a_shared_package() -> None:
    found = [
        f"{path}:{node.lineno}"
        for path in modules(*PACKAGES)
        for node in ast.walk(ast.parse(text_of(path)))
        if (isinstance(node, ast.ImportFrom) and node.module in SHARED)
        or (isinstance(node, ast.Import) and any(alias.name.partition(".")[0] in SHARED for alias in node.names))
    ]
    assert found == []


@pytest.mark.parametrize("package", [*PACKAGES, str(DOOR)])
def test_every_package_is_typed(package: str) -> None:
    assert Path(package, "py.typed") in files()


def test_packages_that_pass_names_on_list_them() -> None:
    missing = [
        str(path)
        for path in modules(*PACKAGES)
        if path.name == "__init__.py"
        and any(isinstance(node, ast.ImportFrom) for node in ast.parse(text_of(path)).body)
        and not re.search(r"^__all__ = ", text_of(path), re.MULTILINE)
    ]
    assert missing == []
