"""Lists and mappings in the cells of CSV files."""

import json
from typing import Any

import pytest

from tasks.sources.cells.text_cells import parse_cell
from tasks.sources.readers.bad_rows import InvalidRowError


def test_the_values_of_cells() -> None:
    cases: list[tuple[str, Any]] = [
        ('["a", "b"]', ["a", "b"]),
        (" ['a', \"it's\"] ", ["a", "it's"]),
        ("('a', 'b')", ("a", "b")),
        ("[]", []),
        ("['a' \"it's\"\n 'c, d']", ["a", "it's", "c, d"]),
        ("['one alone']", ["one alone"]),
        (r"['back\\slash', '\d']", ["back\\slash", r"\d"]),
        ("[1, 2]", [1, 2]),
        ("[1 2\n 3]", [1, 2, 3]),
        ("{'score1_description': 'bad'}", {"score1_description": "bad"}),
        ('{"score1_description": "bad"}', {"score1_description": "bad"}),
        ("['a', None]", ["a", None]),
        ("plain text", "plain text"),
        ("[see the guide] it says so", "[see the guide] it says so"),
        ("[open('x')]", "[open('x')]"),
        ("[" * 500, "[" * 500),
    ]
    for cell, value in cases:
        assert parse_cell(cell) == value, (cell, value)


def test_texts_joined_by_a_missing_comma_are_refused() -> None:
    with pytest.raises(InvalidRowError, match="a comma is missing"):
        parse_cell("['a' 'b', 'c']")


@pytest.mark.parametrize("times", [1, 2, 3])
def test_lists_that_were_encoded_several_times_are_read(times: int) -> None:
    cell, quoted = json.dumps(["a", "b"]), "a"
    for _ in range(times):
        cell, quoted = json.dumps(cell), json.dumps(quoted)
    assert parse_cell(cell) == ["a", "b"]
    assert parse_cell(quoted) == quoted
