"""A text in which a recognizer could find a wanted name is never ruled out."""

import sys
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from metric_core.metrics.context_entity_recall import normalize_entity
from tasks.models.recognizers.wanted_names import WantedNames, letters_of

_LETTERS = "asSOz\u017f\u0345\u03b1\u03c3\u03c2\u00df\u1e9e\u0130\ufb01\uff33\u0149\u1100\u1161\u09c7\u09be\u2163"
_OTHERS = " 1.,-'\u2019\u2018\"_/()\u200b\u0301\uff07\u00b4\u2011\u2212\n\u00a0"
_PIECES = st.sampled_from([*_LETTERS, *_OTHERS, "'s", "\u2019s ", "the ", "A ", "an\t"])
_TEXTS = st.lists(st.one_of(_PIECES, st.characters(exclude_categories=["Cs"])), max_size=12).map("".join)


def _may_occur(name: str, text: str) -> bool:
    return WantedNames([name]).may_occur(letters_of(text))


@given(_TEXTS, _TEXTS, _TEXTS)
@example("the ", "'s X's.Y", "s")
@example("Jos", "e", "\u0301")
@example("'", "s Hertogenbosch", "")
def test_the_name_of_any_part_of_a_text_may_occur_in_it(before: str, entity: str, after: str) -> None:
    assert _may_occur(normalize_entity(entity), before + entity + after)
    assert _may_occur(normalize_entity(entity.strip()), before + entity + after)


def test_every_character_of_unicode() -> None:
    characters = [chr(code) for code in range(sys.maxunicode + 1) if not 0xD800 <= code < 0xE000]
    for start in range(0, len(characters), 4096):
        text = "x".join(characters[start : start + 4096])
        assert _may_occur(normalize_entity(text), f"({text}")


def test_what_unicode_composes_is_a_letter_with_marks() -> None:
    """A character and the parts that it is composed of have the same letters, also where a part begins an entity."""
    for code in range(sys.maxunicode + 1):
        if parts := unicodedata.normalize("NFD", chr(code)).removeprefix(chr(code)):
            assert letters_of(chr(code)) == letters_of(parts), hex(code)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("amsterdam", "Rotterdam has a port."),
        ("us navy", "the U.S. Army's fleet"),
        ("eu", "the United Nations"),
        ("1973", "In 1974 and 1 973."[:8]),
        ("the hague", "Der Haag"),
        ("james bond", "James's friend Bond"),
    ],
)
def test_a_text_without_the_letters_is_ruled_out(name: str, text: str) -> None:
    assert not _may_occur(name, text)


def test_a_name_without_letters_rules_nothing_out() -> None:
    assert _may_occur("$", "nothing at all")
    assert not WantedNames([]).may_occur(letters_of("nothing is wanted"))
