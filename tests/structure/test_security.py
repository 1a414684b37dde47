"""Each promise of the page about security names tests, and they exist."""

import ast
import re
from functools import cache

from tests.structure.house import ROOT

PAGE = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
_TABLE = re.compile(r"^\| promise \| test \|\n\|[-|]+\|\n((?:\|.*\n)+)", re.MULTILINE)
_TEST = re.compile(r"`(tests/\S+\.py)::(\w+)`")
PROMISES = [line for rows in _TABLE.findall(PAGE) for line in rows.splitlines()]


@cache
def functions(path: str) -> frozenset[str]:
    """Return the names of the functions of a module."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def test_there_are_promises_about_several_attackers() -> None:
    assert len(_TABLE.findall(PAGE)) >= 4
    assert len(PROMISES) == len(set(PROMISES)) > 15


def test_each_promise_names_tests_that_exist() -> None:
    for promise in PROMISES:
        named = _TEST.findall(promise)
        assert named, promise
        missing = [f"{path}::{name}" for path, name in named if name not in functions(path)]
        assert missing == [], promise
