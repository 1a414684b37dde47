"""Distinguish letters of the Latin script, in which words are separated by spaces, from other letters."""

import unicodedata
from functools import lru_cache

_HALF = 0.5

SENTENCE_ENDS = (
    "。．｡！？"  # noqa: RUF001 Chinese, Japanese
    "।॥"  # Devanagari, Bengali, Gujarati and other scripts of India
    "؟۔"  # noqa: RUF001 Arabic, Urdu
    "።፧"  # Ethiopic
    "។៕"  # Khmer
    "။"  # Burmese
    "།"  # Tibetan
    "։՜՞"  # noqa: RUF001 Armenian
)
"""Characters that end a sentence, besides the Latin ones; text may follow them without a space."""

_UNSPACED = ("CJK", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR", "TIBETAN")
_WITHOUT_STOPS = ("THAI", "LAO")


@lru_cache(maxsize=50_000)
def is_letter(character: str) -> bool:
    """Return whether a character is a letter or a digit, or a mark on one: many scripts write vowels as marks."""
    return character.isalnum() or unicodedata.category(character).startswith("M")


@lru_cache(maxsize=50_000)
def is_latin(character: str) -> bool:
    """Return whether a character is a letter of the Latin script, or none: scripts share digits, marks and symbols."""
    return character.isascii() or not character.isalpha() or "LATIN" in unicodedata.name(character, "")


def is_mostly_latin(text: str) -> bool:
    r"""Return whether at least half of the letters of a text are of the Latin script; true for a text without letters.

    >>> is_mostly_latin("Beijing (\u5317\u4eac)"), is_mostly_latin("\u5317\u4eac 2008"), is_mostly_latin("25 %")
    (True, False, True)
    """
    if text.isascii():
        return True
    letters = [character for character in text if character.isalpha()]
    return sum(map(is_latin, letters)) >= _HALF * len(letters)


@lru_cache(maxsize=50_000)
def is_unspaced(character: str) -> bool:
    """Return whether a character is of a script that writes words without spaces between them."""
    return unicodedata.name(character, "").startswith(_UNSPACED)


@lru_cache(maxsize=50_000)
def has_no_stops(character: str) -> bool:
    """Return whether a character is of a script that ends sentences with a space, such as Thai."""
    return unicodedata.name(character, "").startswith(_WITHOUT_STOPS)


def normalize_words(text: str) -> str:
    r"""Return the letters of a text in a form in which equal words are equal, with one space where words may end.

    Words of scripts without spaces are joined.

    >>> normalize_words("It's \"NEW\"."), normalize_words("\u5317\u4eac\uff0c \u4e2d\u56fd\u3002")
    (' it s new ', ' \u5317\u4eac\u4e2d\u56fd ')
    """
    folded = unicodedata.normalize("NFKC", text).casefold()
    words = "".join(character if is_letter(character) else " " for character in folded).split()
    joined = ""
    for word in words:
        joined += "" if joined and is_unspaced(joined[-1]) and is_unspaced(word[0]) else " "
        joined += word
    return f"{joined} " if joined else ""
