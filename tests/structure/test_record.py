"""The record of a run is read by its types: nowhere by the names of its entries."""

import ast
import re

from tests.structure.house import PACKAGES, modules_with, text_of

ROOM = "tasks/record/"
RECORD = re.compile(r"\bmanifest\b|\bsummary\b|\.details\b|\brun\.config\b")
MOST_READS = 1
"""Reads by name that are left: those of the public `Run.summary` in the plugin of pytest. The number only falls."""


def test_the_record_of_a_run_is_not_read_by_the_names_of_its_entries() -> None:
    found = [
        f"{path}:{base.lineno}: {ast.unparse(node)}"
        for path in modules_with(RECORD.pattern, *PACKAGES)
        if not path.as_posix().startswith(ROOM)
        for node in ast.walk(ast.parse(text_of(path)))
        if (base := _read_by_name(node)) is not None and RECORD.search(ast.unparse(base))
    ]
    assert len(found) <= MOST_READS, "\n".join(found)
    assert len(found) == MOST_READS, f"{len(found)} reads are left: set MOST_READS to this number"


def _read_by_name(node: ast.AST) -> ast.expr | None:
    """Return the base of `base["name"]` or `base.get("name")`; None of another expression."""
    if isinstance(node, ast.Subscript):
        base, key = node.value, node.slice
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get" and node.args:
        base, key = node.func.value, node.args[0]
    else:
        return None
    return base if isinstance(key, ast.Constant) and isinstance(key.value, str) else None
