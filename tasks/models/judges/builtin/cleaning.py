"""Remove citations, markup and connectives from sentences; detect courtesies and refusals to answer."""

import re

from metric_core.refusals.refusal_forms import is_refusal


def _any(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns), re.IGNORECASE)


_LINK = re.compile(r"\[([^\[\]]+)\]\((?:https?://|mailto:|/)[^()\s]*\)")
_MARKUP = re.compile(r"\*{1,3}|_{2,}|`+|^#+\s*|^>\s*|</?\w[^<>]{0,40}>")
_QUESTION_MARKS = ("?", "？", "؟", "፧", "՞")  # noqa: RUF001
_SPACE_BEFORE = re.compile(r"\s+(?=[.,;:!?])")

_SOURCE = r"(?:context|document|information|passage|source|text|excerpt|article|data|content)s?"
_CONNECTIVE = re.compile(
    r"(?i)^(?:(?:additionally|also|besides|finally|first|firstly|second|secondly|third|thirdly|furthermore|hence"
    r"|however|importantly|in addition|in conclusion|in fact|in general|in short|in summary|lastly|moreover"
    r"|nevertheless|nonetheless|on the other hand|overall|so|therefore|thus|to summari[sz]e|yes|no"
    rf"|(?:according to|based on|as per|as stated in) (?:the|this|these|your)(?: \w+){{0,2}}? {_SOURCE}"
    r"(?: (?:provided|given|above|you provided))?),\s*"
    r"|it(?: is|'s)(?: also)? (?:important|worth|essential|crucial)(?: to note| noting)? that )+"
)
_COURTESY = _any(
    r"^(?:hello|hi|hey|dear|sure|certainly|absolutely|of course|(?:great|good) question|thanks?|thank you|sorry)\b",
    r"^(?:you(?: are|'re) welcome|i apologi[sz]e|i hope (?:this|that|it)|i(?:'d| would| will|'ll) be (?:happy|glad))\b",
    r"\b(?:let me know|feel free to ask|happy to help|glad to help|is there anything else)\b",
    r"^here(?: is|'s| are) (?:the|a|an|some|what|your)\b[^.]*:$",
)


def clean(sentence: str) -> str:
    """Return a sentence without citations, markup and leading connectives.

    >>> clean("Additionally, the **Plus** plan covers dental care [plan.pdf#page=3].")
    'The Plus plan covers dental care.'
    >>> clean("All scores lie in [0, 1].")
    'All scores lie in [0, 1].'
    """
    from metric_core.claims.citations import strip_citations  # noqa: PLC0415 compiles many patterns

    text = _MARKUP.sub("", _LINK.sub(r"\1", strip_citations(sentence).text))
    text = _SPACE_BEFORE.sub("", " ".join(text.split()))
    text = _CONNECTIVE.sub("", text).strip(" ,;")
    return text[:1].upper() + text[1:]


def makes_no_claim(sentence: str) -> bool:
    """Return whether a cleaned sentence makes no claim: a question, a courtesy, a refusal to answer, no words.

    >>> [makes_no_claim(text) for text in ("Is it paid?", "I hope this helps!", "I do not know.", "It is paid.")]
    [True, True, True, False]
    """
    if not any(character.isalnum() for character in sentence):
        return True
    return sentence.endswith(_QUESTION_MARKS) or _COURTESY.search(sentence) is not None or is_refusal(sentence)
