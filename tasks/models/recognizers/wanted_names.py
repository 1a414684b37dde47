r"""Skip texts that cannot contain a wanted entity.

The question is about names as `normalize_entity` writes them, and the answer errs on one side only: a text in which a
recognizer that copies its entities from the text could find a wanted name is never ruled out. It follows from the steps
of that function, which change each character by itself (case, compatibility forms; what they compose is a letter with
its marks), remove punctuation, and turn white space, hyphens and slashes into spaces. So of a name and of a text only
letters, digits and spaces are compared, each decomposed and without its marks: those of a name occur in the text in one
piece. Three steps depend on the neighbors. A leading article is removed: the rest is still one piece. The `s` of a
possessive is removed, so each `s` behind an apostrophe may be missing. A minus sign stays, so each hyphen before a
digit may be nothing instead of a space.
"""

import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache

_APOSTROPHE, _OPTIONAL_S, _HYPHEN, _OPTIONAL_SPACE = "\x01", "\x02", "\x03", "\x04"
_POSSESSIVE = re.compile(f"{_APOSTROPHE}+s")
_MINUS = re.compile(rf"{_HYPHEN}(?=\d)")
_SPACES = re.compile("  +")
_JOINERS = frozenset("-/_\u2010\u2011\u2012\u2013\u2014\u2015")
_OPTIONAL = f"[{_OPTIONAL_S}{_OPTIONAL_SPACE}]*"


class _Letters(dict[int, str]):
    """The letters that each character contributes to a text, worked out when it is first met."""

    def __missing__(self, code: int) -> str:
        folded = unicodedata.normalize("NFKC", chr(code)).casefold()
        self[code] = "".join(map(_letter, unicodedata.normalize("NFKD", folded)))
        return self[code]


def _letter(part: str) -> str:
    if part.isalnum():
        return part
    if part.isspace():
        return " "
    if part in _JOINERS:
        return _HYPHEN
    return _APOSTROPHE if part in "'\u2019" else ""


_LETTERS = _Letters()


def letters_of(text: str) -> str:
    r"""Return the letters, digits and spaces of a text, without case and marks; those that may be missing are marked.

    >>> letters_of("K\u00f6ln No. 5"), letters_of("The U.S.  Navy's fleet")
    ('koln no 5', 'the us navy\x02 fleet')
    """
    letters = text.translate(_LETTERS)
    if _APOSTROPHE in letters:
        letters = _POSSESSIVE.sub(_OPTIONAL_S, letters).replace(_APOSTROPHE, "")
    if _HYPHEN in letters:
        letters = _MINUS.sub(_OPTIONAL_SPACE, letters).replace(_HYPHEN, " ")
    return _SPACES.sub(" ", letters)


class WantedNames:
    """Names of entities that are looked for in texts.

    Args:
        names: The names, as `normalize_entity` writes them.

    >>> wanted = WantedNames(["us navy", "1973"])
    >>> wanted.may_occur(letters_of("The U.S. Navy's fleet")), wanted.may_occur(letters_of("In 1974."))
    (True, False)
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._names = [letters_of(name).replace(_OPTIONAL_SPACE, "").strip() for name in names]

    def may_occur(self, letters: str) -> bool:
        """Return whether one of the names may be that of an entity in a text, given the letters of the text."""
        if _OPTIONAL_S not in letters and _OPTIONAL_SPACE not in letters:
            return any(name in letters for name in self._names)
        bare = _without_optional(letters)
        # Compiling a pattern takes longer than most searches, and most names are not in the text at all.
        return any(_without_optional(name) in bare and _pattern(name).search(letters) for name in self._names)


def _without_optional(letters: str) -> str:
    return letters.translate(_NOTHING)


_NOTHING = str.maketrans("", "", f"s {_OPTIONAL_S}{_OPTIONAL_SPACE}")


@lru_cache(maxsize=4096)
def _pattern(name: str) -> re.Pattern[str]:
    """Return a pattern of a name in letters where the marked ones may be missing."""
    special = {"s": f"[s{_OPTIONAL_S}]", " ": f"[ {_OPTIONAL_SPACE}](?:[ {_OPTIONAL_S}{_OPTIONAL_SPACE}])*"}
    return re.compile(_OPTIONAL.join(special.get(letter) or re.escape(letter) for letter in name))
