"""Docstrings, messages and names are plain English: `python -m tests.structure.words` prints the offenders."""

import ast
from functools import cache
from pathlib import Path

from tests.structure.house import files
from tests.structure.words import Offender, docstrings, find_offenders

EXAMPLE = '''
class Box:
    """What holds things."""

    def kept(self) -> None:
        """Returns what somebody put in."""

    def fill(self, limit: int, where: str, name: str) -> None:
        """Fill the box.

        Args:
            limit: Maximum number of things, from 1
                to 10.
            where: of the box.
            name: Name.

        Raises:
            ValueError: it can not hold that many.
        """

    @property
    def closed(self) -> bool:
        """Whether the lid is on."""
'''


@cache
def offenders() -> tuple[Offender, ...]:
    """Return all offenders of the repository."""
    return tuple(offender for path in files() for offender in find_offenders(path))


def test_no_file_breaks_a_rule() -> None:
    assert [str(offender) for offender in offenders()] == []


def test_the_rules_find_what_they_refuse(tmp_path: Path) -> None:
    path = tmp_path / "box.py"
    path.write_text(EXAMPLE, encoding="utf-8")
    assert [(offender.rule, offender.line) for offender in find_offenders(path)] == [
        ("docstring opens with What, Which, Who, How", 3),
        ("function named by a participle", 5),
        ("word: somebody", 6),
        ("docstring opens in the third person", 6),
        ("elliptical argument", 14),
        ("elliptical argument", 15),
        ("word: can not", 18),
    ]


def test_attributes_and_properties_have_docstrings_too() -> None:
    tree = ast.parse(EXAMPLE + 'SIZE = 3\n"""Things that fit into a box."""\n')
    assert [(str(node.value).partition("\n")[0], of_function) for node, of_function in docstrings(tree)] == [
        ("Things that fit into a box.", False),
        ("What holds things.", False),
        ("Returns what somebody put in.", True),
        ("Fill the box.", True),
        ("Whether the lid is on.", False),
    ]
