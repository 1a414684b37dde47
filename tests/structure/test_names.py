"""No module in flows or deployments shadows another one.

Prefect's script loader puts a script's folder first on the import path, so a `flows/datasets.py` would be imported
wherever a dependency asks for `datasets`.
"""

import sys
from importlib.metadata import PackageNotFoundError, packages_distributions, requires

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.structure.house import PACKAGES, modules

SPECIAL = {"__init__", "__main__", "mlflow", "public"}
"""`public` is a module of a dependency of the tests alone, and no folder above `deployments/public` is on the path; nor
is the package `rag_assay`, in which `mlflow` is named after what it is for."""


def distributions() -> set[str]:
    """Return the names of all installed dependencies of rag-assay, direct or not."""
    found: set[str] = set()
    waiting = ["rag-assay"]
    while waiting:
        name = canonicalize_name(waiting.pop())
        try:
            requirements = requires(name) or []
        except PackageNotFoundError:
            continue
        if name not in found:
            found.add(name)
            waiting += [Requirement(line).name for line in requirements]
    return found


def import_names() -> set[str]:
    """Return the top-level names that these distributions install."""
    needed = distributions()
    owners = packages_distributions().items()
    return {name for name, owned in owners if needed & {canonicalize_name(owner) for owner in owned}}


def test_no_module_shadows_another_one_on_the_path() -> None:
    taken = sys.stdlib_module_names | import_names() | set(PACKAGES)
    paths = modules("flows", "deployments")
    names = {part: path for path in paths for part in (*path.parts[1:-1], path.stem)}
    assert {name: str(path) for name, path in names.items() if name in taken - SPECIAL} == {}


def test_the_names_of_dependencies_are_known() -> None:
    assert {"datasets", "prefect", "pydantic", "spacy", "yaml"} <= import_names()
