"""Tell letters of the Latin script, in which words are separated by spaces, from those of other scripts."""

import unicodedata
from functools import lru_cache

_HALF = 0.5


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
