"""Tests of tokens: numbers, dates, names and negations."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metric_core.words.tokens import stem, tokenize


def test_two_spellings_have_equal_tokens() -> None:
    cases: list[tuple[str, str]] = [
        ("1,000 euros", "1000 euros"),
        ("twenty-five days", "25 days"),
        ("two hundred and six pages", "206 pages"),
        ("one thousand pages", "1000 pages"),
        ("1.5 million people", "1,500,000 people"),
        ("10k users", "10,000 users"),
        ("a dozen eggs", "12 eggs"),
        ("14 March 2024", "March 14, 2024"),
        ("14 March 2024", "March 14th, 2024"),
        ("Sept. 3", "3 September"),
        ("on 5 percent", "on 5%"),
        ("at 9:00 a.m.", "at 9 am"),
        ("the r\u00e9sum\u00e9's end", "the resume end"),
        ("the U.S. office", "the US office"),
        ("out of network care", "out-of-network care"),
    ]
    for one, other in cases:
        assert tokenize(one).tokens == tokenize(other).tokens, (one, other)


@pytest.mark.parametrize(("one", "other"), [("2024-03-14", "March 14, 2024"), ("$1,000.50", "1000.5 dollars")])
def test_two_spellings_have_equal_token_sets(one: str, other: str) -> None:
    assert set(tokenize(one).tokens) == set(tokenize(other).tokens)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("25 days", "26 days"),
        ("1.5 percent", "15 percent"),
        ("in-network care", "out-of-network care"),
        ("participating hospitals", "non-participating hospitals"),
        ("employers", "employees"),
        ("They may go.", "They go in May 2024."),
    ],
)
def test_different_texts_have_different_tokens(one: str, other: str) -> None:
    assert tokenize(one).tokens != tokenize(other).tokens


def test_numbers_and_names() -> None:
    found = tokenize("Last year, Anna Weber of ACME hired 30 people in Zurich.")
    assert found.numbers == {"30"}
    assert found.names == {"anna", "weber", "acm", "zurich"}


def test_a_capital_at_the_start_of_a_sentence_is_not_a_name() -> None:
    assert tokenize("Invoices are paid. Reports are not.").names == frozenset()


def test_negation() -> None:
    cases: list[tuple[str, set[str], set[str]]] = [
        ("Dental care is covered.", set(), set()),
        ("Dental care is not covered.", {"cover"}, {"dental", "car", "cover"}),
        ("There's no deductible.", {"deductibl"}, {"deductibl"}),
        ("Not only dental care is covered.", set(), set()),
        ("Dental care isn't covered, but vision is covered.", set(), {"dental", "car", "cover"}),
        ("Staff may travel and must not smoke.", {"smok"}, {"smok"}),
        ("He played in the film Without a Trace.", set(), set()),
        ("If it does not fit, call us.", {"fit"}, {"fit"}),
    ]
    for text, negated, near in cases:
        found = tokenize(text)
        assert found.negated == negated, (text, negated, near)
        assert found.near_negation == near, (text, negated, near)


def test_forms_of_one_word_share_a_stem() -> None:
    assert len({stem(form) for form in ("require", "requires", "required", "requiring")}) == 1


@given(st.text(max_size=200))
def test_tokens_of_any_text_are_consistent(text: str) -> None:
    found = tokenize(text)
    assert found.numbers | found.names | found.negated <= found.content
    assert len(found.tokens) <= len(found.every)
    assert all(found.every)


@pytest.mark.parametrize("text", ["\u1369 birr", "on \u1369 May", "twenty \u1369", "\u2460 \u00b2 \u0663", "9" * 400])
def test_numeric_characters_of_any_script_are_tokens(text: str) -> None:
    assert tokenize(text).tokens
