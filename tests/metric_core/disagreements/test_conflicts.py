"""Passages that give different values for the same thing are found, and others are not."""

import pytest

from metric_core.disagreements.alignment import Difference
from metric_core.disagreements.conflicts import find_disagreements

FOOTAGE = "Camera footage from the Rotterdam warehouse is kept for 72 hours."


@pytest.mark.parametrize(
    ("other", "difference", "parts"),
    [
        (
            "Camera footage from the Rotterdam warehouse is kept for 48 hours.",
            Difference.VALUE,
            ("72 hours", "48 hours"),
        ),
        (
            "Camera footage from the Rotterdam warehouse is now kept for 7 days.",
            Difference.VALUE,
            ("72 hours", "7 days"),
        ),
        ("Camera footage from the Rotterdam warehouse is not kept for 72 hours.", Difference.POLARITY, ("yes", "no")),
        ("Camera footage from the Antwerp warehouse is kept for 72 hours.", Difference.NAME, ("rotterdam", "antwerp")),
        ("Camera footage from the Antwerp warehouse is kept for 48 hours.", None, ()),
        ("Camera footage from the Rotterdam warehouse is kept for three days.", None, ()),
        ("Invoices from the Rotterdam warehouse are kept for ten years.", None, ()),
    ],
)
def test_two_statements_disagree_in_one_thing(
    other: str, difference: Difference | None, parts: tuple[str, ...]
) -> None:
    found = find_disagreements([f"It is safe. {FOOTAGE}", "Parking is free.", f"{other} Ask for it."])
    assert [each.difference for each in found] == ([] if difference is None else [difference])
    for each in found:
        assert (each.one.part, each.other.part) == parts
        assert (each.one.passage, each.other.passage) == (0, 2)
        assert (each.one.statement, each.other.statement) == (FOOTAGE, other)


@pytest.mark.parametrize(
    ("question", "count"),
    [
        ("How long is camera footage kept?", 1),
        ("Which footage is kept for 48 hours?", 0),
        ("Who pays for lunch?", 0),
        ("", 1),
    ],
)
def test_a_question_decides_what_is_relevant(question: str, count: int) -> None:
    assert len(find_disagreements([FOOTAGE, FOOTAGE.replace("72", "48")], question)) == count


def test_figures_of_other_years_are_no_disagreement() -> None:
    passages = [
        "In 2019, the group has a revenue of 6.3 billion.",
        "In 2020, the group has a revenue of 7.2 billion.",
    ]
    assert find_disagreements(passages) == []


def test_a_series_within_a_passage_is_no_disagreement() -> None:
    tiers = "The basic plan has storage of 10 GB. The large plan has storage of 50 GB."
    assert find_disagreements([tiers, "The large plan has storage of 50 GB."]) == []
    assert find_disagreements([tiers, "The small plan has storage of 20 GB."]) == []


def test_passages_about_other_things_do_not_disagree() -> None:
    one = "Wheatland is a town in Vernon County near Viroqua and Genoa. There were 533 people in the town."
    other = "Wheatland lies in Kenosha by Burlington and Lake Geneva. There were 3,292 people in the town."
    assert find_disagreements([one, other], "What is the population of Wheatland?") == []


def test_a_chunk_that_begins_within_a_sentence_is_compared() -> None:
    passages = [
        "Whatever the season, full-time employees of the company have 27 days of paid vacation.",
        "employees of the company have 30 days of paid vacation. More follows.",
    ]
    assert len(find_disagreements(passages)) == 1


def test_numbers_of_items_and_sources_are_not_compared() -> None:
    steps = ["1. Open the lid of the box and take the key out.", "2. Open the lid of the box and take the key out."]
    assert find_disagreements(steps) == []
    assert find_disagreements([each[:-1] + f" [{each[0]}]." for each in steps]) == []


@pytest.mark.parametrize("passages", [[], [""], ["", ""], ["?" * 50, "\n\n"], ["#", FOOTAGE], [FOOTAGE] * 3])
def test_passages_that_say_nothing_else_have_no_disagreement(passages: list[str]) -> None:
    assert find_disagreements(passages) == []
