"""Sentences of passages, and the one closest to a claim."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.reports.run.passages import SentenceIndex, segment, word_set

TEXTS = [
    "",
    " ",
    "No end",
    "One. Two!  Three?\n\nFour\u3002 \u4e94\u3002",
    'He said "yes." Then he left.',
    "Version 3.5 is out. See www.example.org now.",
    "\u05e9\u05dc\u05d5\u05dd. \U0001f600! \u202eolleh\u202c?",
]


@pytest.mark.parametrize("text", TEXTS)
def test_pieces_are_the_passage_again(text: str) -> None:
    assert "".join(segment(text).pieces) == text


@pytest.mark.parametrize("text", TEXTS)
def test_pieces_are_the_passage_again_with_sentences_from_elsewhere(text: str) -> None:
    assert "".join(segment(text, ("One.", "Two!", "yes", "", "absent")).pieces) == text


def test_numbers_and_addresses_do_not_end_a_sentence() -> None:
    found = segment("Version 3.5 is out. See www.example.org now.")
    assert [found.pieces[i] for i in found.sentences if i is not None] == [
        "Version 3.5 is out.",
        "See www.example.org now.",
    ]


def test_sentences_are_found_across_line_breaks() -> None:
    found = segment("- The bike\n  is red. It is new.", ("The bike is red.", "It is new."))
    assert [found.pieces[i] for i in found.sentences if i is not None] == ["The bike\n  is red.", "It is new."]


def test_a_repeated_sentence_is_found_where_it_stands_next() -> None:
    found = segment("Yes. No. Yes.", ("Yes.", "No.", "Yes."))
    assert found.sentences == (0, 2, 4)


def test_a_sentence_that_is_not_there_leaves_its_neighbours_alone() -> None:
    assert segment("Yes. No.", ("Yes.", "Maybe.", "No.")).sentences == (0, None, 2)


def test_rare_words_count_more_than_common_ones() -> None:
    passages = [segment("The rain is on the roof. The office is in Delft."), segment("The office is on fire.")]
    claim = "The office is on the canal in Delft."
    closest = SentenceIndex(passages, [claim, "It rains."]).closest(claim)
    assert closest is not None
    assert passages[closest.passage].pieces[closest.piece] == "The office is in Delft."


def test_a_claim_that_shares_nothing_has_no_closest_sentence() -> None:
    assert SentenceIndex([segment("It rains.")], ["Bikes cost money."]).closest("Bikes cost money.") is None


@pytest.mark.parametrize("claim", ["", "?!", "\U0001f600"])
def test_a_claim_without_words_has_no_closest_sentence(claim: str) -> None:
    assert SentenceIndex([segment("It rains.")], [claim]).closest(claim) is None


def test_nothing_is_close_to_a_claim_without_passages() -> None:
    assert SentenceIndex([], ["It rains."]).closest("It rains.") is None


def test_the_first_of_equally_close_sentences_is_taken() -> None:
    passages = [segment("It rains. It rains."), segment("It rains.")]
    index = SentenceIndex(passages, ["It rains."])
    closest = index.closest("It rains.")
    assert closest is not None
    assert (closest.passage, closest.piece) == (0, 0)
    assert [place.piece for place in index.closest_of_each("It rains.").values()] == [0, 0]


@given(st.text("ab\u00e9\u0130_1 .?\u3002\n'\x1c", max_size=40))
def test_words_are_the_runs_of_word_characters(text: str) -> None:
    assert word_set(text) == frozenset(re.findall(r"\w+", text.casefold()))


@given(st.text("ab.!\u2026\u3002\"') \n\t", max_size=40))
def test_sentences_end_behind_marks_with_their_quotes_and_at_line_ends(text: str) -> None:
    gaps = re.compile(r"(?<=[.!?\u2026\u3002\uff01\uff1f])[\"'\u201d\u2019)\]]*\s+|\n+")
    found = segment(text)
    sentences = [found.pieces[piece] for piece in found.sentences if piece is not None]
    assert sentences == [sentence for sentence in gaps.split(text) if sentence.strip()]


def test_a_long_passage_is_cut_in_linear_time() -> None:
    text = "word. " * 100_000
    assert len(segment(text).sentences) == 100_000
    assert segment("." * 300_000).pieces == ("." * 300_000,)
