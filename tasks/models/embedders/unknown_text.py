"""Find texts whose vector says nothing about them, because the tokenizer does not know their words."""

import unicodedata
from collections.abc import Iterable, Sequence

from metric_core import reasons
from tasks.models.recognizers.scripts import is_latin, is_letter

_HALF = 0.5
_FEW = 0.1


def find_vector_problem(text: str, unknown: Sequence[tuple[int, int]], latin_only: bool = False) -> str | None:
    r"""Return why the vector of a text says nothing about it; None if it does, and for a blank text.

    A tokenizer replaces what it does not know by one token, so texts that differ only there have the same vector. A
    name in another script, or an emoji, does no harm to a text that is known otherwise; more than half of the letters
    does. A text that is mostly not in the Latin script must have nearly all its letters known: single letters of a
    script are in many vocabularies, and the words with the others vanish.

    Args:
        unknown: Start and end of each unknown token.
        latin_only: True if the vocabulary has words of the Latin script alone, and single letters of others.

    >>> find_vector_problem("Beijing (\u5317\u4eac)", [(9, 10), (10, 11)]) is None
    True
    >>> find_vector_problem("\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35", [(0, 6)]), find_vector_problem("?!", [])
    ('script unknown to the embedder', 'no words to embed')
    """
    if not unknown and text.isascii() and any(map(str.isalnum, text)):
        return None
    content = [i for i, character in enumerate(text) if is_letter(character)] or [
        i for i, character in enumerate(text) if _is_symbol(character)
    ]
    if not content:
        return reasons.NO_WORDS if text.strip() else None
    missed = _positions(unknown)
    lost = sum(i in missed for i in content)
    other = sum(not is_latin(text[i]) for i in content)
    is_mostly_other = other > _HALF * len(content)
    if lost > _HALF * len(content) or (is_mostly_other and (latin_only or lost > _FEW * other)):
        return reasons.UNKNOWN_SCRIPT
    return None


def _positions(spans: Iterable[tuple[int, int]]) -> frozenset[int]:
    return frozenset(i for start, end in spans for i in range(start, end))


def _is_symbol(character: str) -> bool:
    return unicodedata.category(character)[0] in "SC" and not character.isspace()
