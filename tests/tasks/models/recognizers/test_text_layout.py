"""Tests of blocks and sentence boundaries, without a model."""

import pytest

from tasks.models.recognizers.text_layout import CITATION, Block, cut_long, split_blocks, split_sentences


def test_blocks() -> None:
    cases: list[tuple[str, list[Block]]] = [
        ("", []),
        (" \n\t\n---\n", []),
        ("One line.", [Block("One line.")]),
        ("First.\n\nSecond.", [Block("First."), Block("Second.")]),
        ("# Leave\nAsk HR.", [Block("Leave"), Block("Ask HR.")]),
        ("1. Apply\n2) Wait", [Block("Apply", item=True), Block("Wait", item=True)]),
        ("Tasks: \u2022 plan \u2022 report", [Block("Tasks:"), Block("plan", item=True), Block("report", item=True)]),
        (
            "A paragraph that is wrapped after some sixty characters of\nText goes on.",
            [Block("A paragraph that is wrapped after some sixty characters of Text goes on.")],
        ),
        ("Holidays\nStaff have 25 days.", [Block("Holidays"), Block("Staff have 25 days.")]),
    ]
    for text, expected in cases:
        assert split_blocks(text) == expected, (text, expected)


def test_a_huge_block_is_cut_and_nothing_is_lost() -> None:
    text = "word " * 10_000
    parts = [block.text for block in split_blocks(text)]
    assert max(map(len, parts)) <= 10_000
    assert " ".join(parts) == text.strip()


def test_cut_goes_through_a_word_where_there_is_no_space() -> None:
    assert cut_long("aaaaaa", 4) == ["aaaa", "aa"]


@pytest.mark.parametrize(
    "text", ["[plan.pdf#page=3]", "[Benefit Options.pdf]", "[2]", "[1, 3]", "[^4]", "(guide.docx)"]
)
def test_citations(text: str) -> None:
    assert CITATION.fullmatch(text)


@pytest.mark.parametrize("text", ["[sic]", "(see above)", "(2 days)", "[name]"])
def test_no_citations(text: str) -> None:
    assert not CITATION.search(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Done. [a.pdf] Next one.", ["Done. [a.pdf]", "Next one."]),
        ("Done [a.pdf][b.pdf]. Next one.", ["Done [a.pdf][b.pdf].", "Next one."]),
        ("It is so. . Make sure.", ["It is so. .", "Make sure."]),
        ("Ask Dr. Lee. Go home.", ["Ask Dr. Lee.", "Go home."]),
    ],
)
def test_cuts_after_every_word_leave_only_sentences(text: str, expected: list[str]) -> None:
    every_word = [i + 1 for i, character in enumerate(text) if character == " "]
    assert split_sentences(text, every_word) == expected
