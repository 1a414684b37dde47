"""Key points in a column: texts or objects, with an importance or without."""

from typing import Any

import pytest

from tasks.sources.cells.key_point_values import as_key_points
from tasks.sources.readers.bad_rows import InvalidRowError


def test_texts_and_objects_are_read_and_keep_their_order() -> None:
    given = ["a", {"text": "b", "importance": " OKAY "}, {"fact": "c", "importance": None}, {"nugget": "d"}]
    found = [(point["text"], point["importance"]) for point in as_key_points(given)]
    assert found == [("a", "vital"), ("b", "okay"), ("c", "vital"), ("d", "vital")]
    assert as_key_points([]) == []
    (point,) = as_key_points([{"text": "e", "evidence": "It opens at nine."}])
    assert [(span["text"], span["state"]) for span in point["evidence"]] == [("It opens at nine.", "unseen")]


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("a", "got the text 'a', wanted a list of texts"),
        (["a", 5], "key point 2 is the number 5"),
        ([{"importance": "vital"}], "key point 1 is"),
        (["a", " "], "key point 2 is blank"),
        (
            [{"text": "a", "importance": "high"}],
            "the importance of key point 1 is the text 'high', wanted vital or okay",
        ),
        ([{"text": "a", "evidence": 5}], "the evidence of key point 1: span 1 is the number 5"),
    ],
)
def test_other_values_are_refused(value: Any, problem: str) -> None:
    with pytest.raises(InvalidRowError, match=problem):
        as_key_points(value)
