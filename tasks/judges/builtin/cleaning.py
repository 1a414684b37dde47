"""Remove citations, markup and connectives from sentences; detect courtesies and refusals to answer."""

import re

from tasks.recognizers.text_layout import CITATION


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
_EVASION = _any(
    r"\b(?:i|we)(?:'m| am| are|'re)? (?:do not|don't|did not|didn't|can ?not|can't|could not|couldn't|not|unable to)"
    r"(?: \w+)? (?:know|sure|certain|find|answer|determine|have|aware|provide|give|tell|say|locate|able|see|help)\b",
    r"\b(?:i|we)(?:'m| am| are|'re) (?:unable|unsure|uncertain)\b",
    rf"\b{_SOURCE}\b[^.;]{{0,40}}? (?:do|does|did|is|are|was|were)(?: not|n't) (?:\w+ )?(?:contain|provide|mention"
    r"|include|specif|state|say|address|give|discuss|enough|sufficient|available|have|indicate|clear|explicit)",
    r"\bthere(?: is|'s| are| was) (?:no|not enough|not any|insufficient)(?: \w+){0,3}? "
    rf"(?:{_SOURCE}|mention|details?|evidence|answer)\b",
    r"\bthere(?: is|'s) no [^.;]{0,60} (?:mentioned|specified|stated|provided)\b",
    r"\bno (?:\w+ ){0,2}(?:information|mention|details?|answer)(?: \w+){0,4} (?:provided|given|available|found)\b",
    r"\bnot (?:\w+ )?(?:mentioned|specified|stated|provided|given|available|found|discussed|included|addressed|clear)"
    r" (?:in|by|from) (?:the|this|these|any)\b",
    r"\b(?:can ?not|could not|can't|couldn't) be (?:determined|answered|found|inferred|verified)\b",
    r"\binsufficient (?:information|context|data)\b",
    r"^(?:it is|it's|that is|this is) (?:unclear|unknown|not known|not clear)\b",
    r"^(?:unknown|n/?a|not sure|no answer|none|no idea|no information)\W*$",
)


def clean(sentence: str) -> str:
    """Return a sentence without citations, markup and leading connectives.

    >>> clean("Additionally, the **Plus** plan covers dental care [plan.pdf#page=3].")
    'The Plus plan covers dental care.'
    """
    text = _MARKUP.sub("", _LINK.sub(r"\1", CITATION.sub("", sentence)))
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
    return sentence.endswith(_QUESTION_MARKS) or _COURTESY.search(sentence) is not None or is_evasive(sentence)


def is_evasive(sentence: str) -> bool:
    """Return whether a cleaned sentence avoids an answer.

    >>> is_evasive("The provided documents do not contain the answer.")
    True
    """
    return _EVASION.search(sentence.replace("\u2019", "'")) is not None
