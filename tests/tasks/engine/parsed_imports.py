"""The imports of modules as Python's own parser finds them, to compare others with."""

import ast
from collections.abc import Iterator, Mapping
from importlib.metadata import entry_points
from pathlib import Path

from metric_core.metrics import registry

REGISTRY = "metric_core.metrics.registry"
METRICS = "metric_core.metrics."


def parse_imports(files: Mapping[str, str]) -> dict[str, set[str]]:
    """The modules that each module imports, and its package; the registry imports no metrics.

    Args:
        files: Name of each module -> path of its file.
    """
    found = {}
    for module, file in files.items():
        found[module] = {name for name in _names(file) if name in files} | ({module.rpartition(".")[0]} - {""})
    found[REGISTRY] = {name for name in found[REGISTRY] if not name.startswith(METRICS)}
    return found


def reach(imports: Mapping[str, set[str]], *modules: str) -> set[str]:
    """These modules and all that they import, directly or not."""
    reached, pending = set[str](), set(modules)
    while pending:
        reached |= pending
        pending = {name for module in pending for name in imports[module]} - reached
    return reached


def modules_of_metrics(files: Mapping[str, str]) -> dict[str, str]:
    """The module that each metric of the registry is imported from, or comes from by its entry point."""
    nodes = ast.walk(ast.parse(Path(files[REGISTRY]).read_text(encoding="utf-8")))
    constants = {
        alias.name: str(node.module)
        for node in nodes
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith(METRICS)
        for alias in node.names
    }
    named = {getattr(registry, constant).name: module for constant, module in constants.items()}
    points = (point for point in entry_points(group="rag_assay.metrics") if point.module.startswith(METRICS))
    return named | {point.name: point.module for point in points}


def _names(file: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(Path(file).read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        if isinstance(node, ast.ImportFrom):
            yield from (str(node.module), *(f"{node.module}.{alias.name}" for alias in node.names))
