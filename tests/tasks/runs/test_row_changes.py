"""Comparing the rows of two runs."""

from typing import Any

from tasks.runs.row_changes import RowChanges, find_row_changes
from tests.tasks.builders import samples_table

ROW: dict[str, Any] = {
    "user_input": "Where?",
    "response": "Here.",
    "retrieved_contexts": ["One.", "Two."],
    "rubrics": [{"key": "score1", "description": "bad"}],
}


def test_equal_rows_are_unchanged_in_any_shards_and_order() -> None:
    earlier = [samples_table({**ROW, "row_id": "a"}, {**ROW, "row_id": "b"})]
    later = [samples_table({**ROW, "row_id": "b"}), samples_table({**ROW, "row_id": "a"})]
    assert find_row_changes(earlier, later) == RowChanges(added=(), removed=(), changed={}, unchanged=2)


def test_each_column_that_differs_is_named() -> None:
    earlier = samples_table({**ROW, "row_id": "a"}, {**ROW, "row_id": "b"}, {**ROW, "row_id": "c"})
    later = samples_table(
        {**ROW, "row_id": "a", "retrieved_contexts": ["Two.", "One."]},
        {**ROW, "row_id": "b", "response": None, "rubrics": [{"key": "score1", "description": "good"}]},
        {**ROW, "row_id": "c", "extras": '{"ticket": 4}'},
    )
    assert find_row_changes([earlier], [later]).changed == {
        "a": ("retrieved_contexts",),
        "b": ("response", "rubrics"),
        "c": ("extras",),
    }


def test_null_an_empty_text_and_the_word_null_differ() -> None:
    values = (None, "", "null")
    tables = [samples_table({**ROW, "row_id": "a", "reference": value}) for value in values]
    found = [find_row_changes([earlier], [later]).unchanged for earlier in tables for later in tables]
    assert found == [1, 0, 0, 0, 1, 0, 0, 0, 1]


def test_added_and_removed_rows_are_listed_in_order() -> None:
    earlier = samples_table({**ROW, "row_id": "z"}, {**ROW, "row_id": "a"}, {**ROW, "row_id": "k"})
    later = samples_table({**ROW, "row_id": "y"}, {**ROW, "row_id": "a"}, {**ROW, "row_id": "b"})
    assert find_row_changes([earlier], [later]) == RowChanges(
        added=("y", "b"), removed=("z", "k"), changed={}, unchanged=1
    )
