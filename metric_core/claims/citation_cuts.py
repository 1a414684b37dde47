r"""Find what to cut from a text together with its citation markers, so that no fragment is left.

With a marker go the brackets and the emphasis around it, the words that only introduce it ("(see [1])", "according to
[2]"), and the punctuation and conjunctions that have nothing to join without it.
"""

import re

from metric_core.claims.citation_forms import CITED_WORDS, CONJUNCTION

_WINDOW = 60
_SPACES = " \t\u00a0"
_STOPS = {".", "!", "?", "\u2026", "\u3002", "\u0964"}
_AFTER_STOP = {".", ",", ";", ":", "\u3002", "\u0964"}
_SEPARATOR = re.compile(
    rf"[ \t\u00a0]*(?:[,;/\u3001\uff0c\u060c][ \t\u00a0]*)?(?:{CONJUNCTION}[ \t\u00a0]+|[\u548c\u53ca\u4e0e\u3068])?"
)
_BRACKETS = {"(": ")", "\uff08": "\uff09", "[": "]"}
_EMPHASIS = re.compile(r"(?<![*_~])(\*{1,3}|_{1,3}|~~)\Z")
_OPENING_TAG = re.compile(r"<(sup|sub|small|b|i|em|strong|span|cite)(?:\s[^<>]{0,40})?>\Z", re.IGNORECASE)
_SEE = (
    r"see(?: also)?|cf\.?|e\.g\.,?|i\.e\.,?|siehe(?: auch)?|s\.|vgl\.|z\. ?B\.|voir(?: aussi)?|v\u00e9ase"
    r"|ver(?: tambi\u00e9n)?|p\. ?ej\.|\u0926\u0947\u0916\u0947\u0902|\u53c2?\u89c1|\u53c2\u7167"
)
_SHOWN = (
    r"shown|described|reported|stated|noted|explained|mentioned|discussed|outlined|detailed|seen|given|documented"
    r"|defined|indicated|highlighted|cited|specified"
)
_LEAD = re.compile(
    rf"(?i)(?:(?:\A|(?<=[(\[\uff08,;:.!?\n*_]))[ \t]*(?P<see>{_SEE})"
    rf"|(?<![^\s(\[\uff08,;:*_])(?:(?:as )?according to|as per|as (?:{_SHOWN}) (?:in|by)"
    rf"|(?:{CITED_WORDS}|refs\.|citations?)[ ]?:|(?<=[(\[\uff08])(?:{CITED_WORDS})"
    r"|laut|gem\u00e4\u00df|selon|d['\u2019]apr\u00e8s|seg\u00fan))[ \t\u00a0]*\Z"
)
_REST_OF_BRACKETS = re.compile(r"[ \t][^()\[\].,;:\n]{0,40}(?=[)\]\uff09])")
_REST_OF_SENTENCE = re.compile(r"[ \t](?:for|f\u00fcr|pour|para)[ \t][^()\[\].,;:\n]{0,40}(?=[.!)\n]|\Z)")
_PREPOSITION = re.compile(
    r"(?i)\b(?:(?:in|by|from|per|von|aus|bei|en|por|dans|par)|(?P<stranded>of|with|to|zu|mit|de|con|avec))[ \t]\Z"
)
_SENTENCE_START = re.compile(r"(?:\A|\n|[.!?\u3002][ \t])[ \t]*\Z")
_VERB_BEHIND = re.compile(
    r"[ \t](?:(?:also|both|further) )?(?:says?|states?|reports?|shows?|describes?|notes?|explains?|mentions?|claims?"
    r"|argues?|finds?|found|suggests?|confirms?|provides?|lists?|discusses?|agrees?|disagrees?|differs?|sagt|sagen"
    r"|zeigt|zeigen|beschreib(?:t|en)|berichte[tn]|dicen?|muestran?|indican?|dit|disent|montre(?:nt)?|indique(?:nt)?"
    r"|is|are|was|were|has|have|does|do)\b"
)
_CLOSING = re.compile(r"[ \t]*(?:[.,;:!?)\]\uff09\u3002\n\r]|\Z)")
_CONJUNCTION_AT_END = re.compile(rf"(?i)(?:\A|[,;]?(?<=[\s,;]))(?:{CONJUNCTION})\Z")
_CONJUNCTION_AT_START = re.compile(rf"(?i)[ \t]*{CONJUNCTION}[ \t]+")
_JOINT = re.compile(r"[ \t]*[,;:]\Z|[ \t][\u2013\u2014-]\Z")
_OPEN_END = re.compile(r"(?:\A|[\n(\[\uff08])\Z")
_NOTHING_BEHIND = re.compile(r"[ \t]*[,;:]?[ \t]*(?:\n|\Z)")
_LEFT_AT_START = re.compile(r"[ \t]*[,;:]?[ \t]*")


def separates(text: str, start: int, end: int) -> bool:
    """Return whether what is between two positions only joins markers.

    >>> [separates(text, 0, len(text)) for text in (", ", " and ", "; ", "", " but ")]
    [True, True, True, True, False]
    """
    return _SEPARATOR.fullmatch(text, start, end) is not None


def is_part_of_sentence(text: str, start: int, end: int) -> bool:
    """Return whether a sentence needs its markers as words: "as in [1] and [2]", "[3] says that it rains".

    >>> [is_part_of_sentence(text, 5, 8) for text in ("From [1]", "Rain [1].", "Rain [1] says")]
    [True, False, False]
    """
    before = text[max(0, start - _WINDOW) : start]
    if text[start] not in "[\uff3b\u3014" or "." in text[start:end] or _LEAD.search(before):
        return False
    preposition = _PREPOSITION.search(before)
    if preposition:
        return not preposition["stranded"] or _CLOSING.match(text, end) is None
    return _SENTENCE_START.search(before) is not None and _VERB_BEHIND.match(text, end) is not None


def stands_alone(text: str, start: int, end: int) -> bool:
    """Return whether a link is the source of what is before it, and no part of a sentence.

    >>> [stands_alone(text, 4, 7) for text in ("It. URL", "See URL", "to (URL)")]
    [True, True, True]
    >>> stands_alone("The URL page", 4, 7)
    False
    """
    before = text[max(0, start - _WINDOW) : start]
    is_enclosed = text[end : end + 1] == _BRACKETS.get(before[-1:])
    if is_enclosed or (_LEAD.search(before) and _CLOSING.match(text, end)):
        return True
    return before.rstrip(_SPACES)[-1:] in {"", "\n", *_STOPS} and _CLOSING.match(text, end) is not None


def widen(text: str, start: int, end: int, floor: int) -> tuple[int, int]:
    """Return what is cut with the markers between two positions: the brackets and words that are only about them.

    Args:
        start: Start of the first marker.
        end: End of the last one.
        floor: End of what has been cut before.

    >>> text = "It rains (**see [1]**)."
    >>> text[slice(*widen(text, 16, 19, 0))]
    '(**see [1]**)'
    """
    while True:
        before = text[max(floor, start - _WINDOW) : start]
        bare = before.rstrip(_SPACES)
        behind = end + len(text[end : end + 3]) - len(text[end : end + 3].lstrip(_SPACES))
        closing = _BRACKETS.get(bare[-1:])
        emphasis = _EMPHASIS.search(before)
        tag = _OPENING_TAG.search(before)
        lead = _LEAD.search(before)
        if closing and text[behind : behind + 1] == closing:
            start, end = start - len(before) + len(bare) - 1, behind + 1
        elif emphasis and text.startswith(emphasis[1], end):
            start, end = start - len(emphasis[1]), end + len(emphasis[1])
        elif tag and text[end : end + len(tag[1]) + 3].lower() == f"</{tag[1].lower()}>":
            start, end = start - len(tag[0]), end + len(tag[1]) + 3
        elif lead:
            start += lead.start() - len(before)
            rest = _REST_OF_BRACKETS if text[start - 1 : start] in _BRACKETS else _REST_OF_SENTENCE
            found = rest.match(text, end) if lead["see"] else None
            end = found.end() if found else end
        else:
            return start, end


def trim(piece: str, text: str, end: int) -> tuple[str, int]:
    """Return what is kept of the text before a cut, and where the text continues after it.

    Args:
        piece: The text before the cut.
        text: The whole text.
        end: End of the cut.

    >>> text = "It rains, [1]. It pours. [2]. Then [3] and snow."
    >>> trim("It rains, ", text, 13), trim(" It pours. ", text, 28), trim(" Then ", text, 38)
    (('It rains', 13), (' It pours.', 29), (' Then', 38))
    """
    kept = _without_joints(piece.rstrip(_SPACES), text, end)
    if kept[-1:] in _STOPS and text[end : end + 1] in _AFTER_STOP and text[end + 1 : end + 2] != ".":
        return kept, end + 1
    if _OPEN_END.search(kept[-1:]):
        left = _CONJUNCTION_AT_START.match(text, end) or _LEFT_AT_START.match(text, end)
        return kept, left.end() if left else end
    if len(kept) < len(piece) and kept[-1:].isalnum() and text[end : end + 1].isalnum():
        return piece[: len(kept) + 1], end
    return kept, end


def _without_joints(kept: str, text: str, end: int) -> str:
    """Return a text without a conjunction, punctuation or bracket at its end that has nothing to join or open."""
    if _CLOSING.match(text, end) is None:
        return kept
    conjunction = _CONJUNCTION_AT_END.search(kept[-20:])
    kept = kept[: len(kept) - len(conjunction[0])].rstrip(_SPACES) if conjunction else kept
    if _NOTHING_BEHIND.match(text, end) and kept[-1:] in _BRACKETS:
        return kept[:-1].rstrip(_SPACES)
    joint = _JOINT.search(kept[-3:])
    is_joined = joint and (
        text[end : end + 3].lstrip(_SPACES)[:1] in {*".,;:!?)]\uff09\u3002"} or joint[0].strip() != ":"
    )
    return kept[: len(kept) - len(joint[0])].rstrip(_SPACES) if joint and is_joined else kept
