r"""Fold lookalike characters, to find delimiters however they are written.

Fullwidth and mathematical letters, letters of other alphabets that look Latin, accents and invisible characters are
folded; the position of every folded character in the text is known.
"""

import unicodedata
from functools import lru_cache

OPENING_BRACKETS = (
    "<\u00ab\u2039\u02c2\u1438\u226a\u22d6\u22d8\u276c\u276e\u2770\u27e8\u27ea\u2989\u2991\u29fc\u3008\u300a"
)
"""Characters that look like the opening bracket of a fence: less-than signs, guillemets, angle brackets."""

CLOSING_BRACKETS = (
    ">\u00bb\u203a\u02c3\u1433\u226b\u22d7\u22d9\u276d\u276f\u2771\u27e9\u27eb\u298a\u2992\u29fd\u3009\u300b"
)
"""Characters that look like the closing bracket of a fence."""

_LOOKALIKES = {
    # Cyrillic, Greek, Armenian, Georgian letters and small capitals that look like the letters of "quoted"
    **dict.fromkeys("\u051b\u0563\u0566", "q"),
    **dict.fromkeys("\u03c5\u057d\u1d1c\u028b", "u"),
    **dict.fromkeys("\u03bf\u043e\u0585\u1d0f\u10ff", "o"),
    **dict.fromkeys("\u0442\u03c4\u1d1b", "t"),
    **dict.fromkeys("\u0435\u03b5\u04bd\u0454\u1d07\u212e", "e"),
    **dict.fromkeys("\u0501\u0257\u1d05", "d"),
    # letters in dark circles and squares, and regional indicators
    **{chr(first + number): chr(ord("a") + number) for first in (0x1F150, 0x1F170, 0x1F1E6) for number in range(26)},
    # slashes, bars and a blank
    **dict.fromkeys("\u2044\u2215\u29f8\u2571\u27cb\u3033", "/"),
    **dict.fromkeys("\u2223\u01c0\u2502\u2758", "|"),
    "\u2800": " ",
}
_BLANK_LETTERS = "\u115f\u1160\u3164\uffa0"
_INVISIBLE_CATEGORIES = ("Cf", "Mn", "Me")


def fold_text(text: str) -> tuple[str, list[int]]:
    r"""Return a text with lookalikes folded, and the position in the text of each folded character.

    >>> fold_text("\uff1c/\u200b\u051buoted\uff1e")
    ('</quoted>', [0, 1, 3, 4, 5, 6, 7, 8, 9])
    """
    characters: list[str] = []
    positions: list[int] = []
    for position, character in enumerate(text):
        for folded in fold_character(character):
            characters.append(folded)
            positions.append(position)
    return "".join(characters), positions


@lru_cache(maxsize=1 << 14)
def fold_character(character: str) -> str:
    r"""Return the folded form of a character: usually one character, none for an invisible one.

    >>> fold_character("\u00e9"), fold_character("\U0001d42a"), fold_character("\u200d")
    ('e', 'q', '')
    """
    if character.isascii():
        return character
    decomposed = unicodedata.normalize("NFKD", character)
    return "".join(_LOOKALIKES.get(part.lower(), part) for part in decomposed if not _is_invisible(part))


def _is_invisible(character: str) -> bool:
    return character in _BLANK_LETTERS or unicodedata.category(character) in _INVISIBLE_CATEGORIES
