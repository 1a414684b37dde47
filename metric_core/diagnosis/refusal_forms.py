"""Recognize responses that decline to answer by the forms that such sentences have.

The list is short and covers the languages named in `LANGUAGES`. It knows the usual wordings ("I do not know", "the
documents do not mention it"), not every way to avoid an answer: a judge with a language model recognizes more.
"""

import re
import unicodedata
from collections.abc import Sequence

_EN_SOURCE = (
    r"(?:context|document|documentation|information|knowledge base|passage|source|text|excerpt|article|data|content"
    r"|handbook|manual)s?"
)
_EN_NOT = r"(?:do|does|did|is|are|was|were|has|have)(?: not|n't)(?: \w+){0,2}?"
_FORMS: dict[str, tuple[str, ...]] = {
    "en": (
        (
            r"\b(?:i|we)(?:'m| am| are|'re)? (?:do not|don't|did not|didn't|can ?not|can't|could not|couldn't|not"
            r"|unable to)"
            r"(?: \w+)? (?:know|sure|certain|find|answer|determine|have|aware|provide|give|tell|say|locate|able|see"
            r"|help)\b"
        ),
        r"\b(?:i|we)(?:'m| am| are|'re) (?:unable|unsure|uncertain)\b",
        r"\b(?:i|we) have no (?:\w+ )?(?:information|answer|knowledge|idea|data)\b",
        (
            rf"\b{_EN_SOURCE}\b[^.;]{{0,40}}? {_EN_NOT} (?:contain|provid|mention|includ|specif|stat|say|address|give"
            r"|discuss|cover|enough|sufficient|available|indicat|clear|explicit)"
        ),
        (
            r"\bthere(?: is|'s| are| was) (?:no|not enough|not any|insufficient)(?: \w+){0,3}? "
            rf"(?:{_EN_SOURCE}|mention|details?|evidence|answer)\b"
        ),
        r"\bthere(?: is|'s) no [^.;]{0,60} (?:mentioned|specified|stated|provided)\b",
        r"\bno (?:\w+ ){0,2}(?:information|mention|details?|answer)(?: \w+){0,4} (?:provided|given|available|found)\b",
        (
            r"\bnot (?:\w+ )?(?:mentioned|specified|stated|provided|given|available|found|discussed|included|addressed"
            r"|clear|covered) (?:in|by|from) (?:the|this|these|any)\b"
        ),
        r"\b(?:can ?not|could not|can't|couldn't) be (?:determined|answered|found|inferred|verified)\b",
        r"\binsufficient (?:information|context|data)\b",
        r"^(?:it is|it's|that is|this is) (?:unclear|unknown|not known|not clear)\b",
        r"^(?:unknown|n/?a|not sure|no answer|none|no idea|no information)\W*$",
    ),
    "de": (
        r"\b(?:ich|wir) (?:weiß|weiss|wissen)\b[^.;]{0,30}\bnicht\b",
        (
            r"\b(?:kann|können|konnte|konnten)\b[^.;]{0,60}\b(?:nicht|keine)\b[^.;]{0,40}\b(?:beantwort|finden|gefunden"
            r"|sagen|ermittel|entnehmen|angeben|machen|entnommen)"
        ),
        (
            r"\b(?:habe|haben|liegen|liegt|gibt es|enthält|enthalten|finde|finden sich|findet sich)\b[^.;]{0,60}"
            r"\bkeine(?:n|rlei)? (?:\w+ )?(?:information|angabe|hinweis|antwort|auskunft|daten)"
        ),
        (
            r"\b(?:dokument\w*|handbuch|kontext|text\w*|quelle\w*|unterlagen|informationen|passage\w*)\b[^.;]{0,60}"
            r"\b(?:nicht|nichts)\b[^.;]{0,40}\b(?:erwähn|genannt|enthalten|angegeben|hervor|beschrieben|steh|zu finden)"
        ),
        r"\b(?:erwähnt|erwähnen|nennt|nennen|sagt|sagen|enthält|enthalten) (?:\w+ ){0,3}(?:nicht|nichts|keine)\b",
        r"\bdazu (?:\w+ )?(?:keine|nichts)\b",
        r"\b(?:steht|stehen|geht|weiß|weiss) (?:ich |aus \w+ \w+ )?(?:leider )?nicht\b(?: (?:im|in|aus|hervor)\b|\W*$)",
    ),
    "fr": (
        (
            r"\b(?:je|nous) ne (?:\w+ )?(?:sais|savons|peux|pouvons|trouve|trouvons|dispose|disposons|suis|sommes"
            r"|connais)"
            r"\b[^.;]{0,30}\b(?:pas|aucune?)\b"
        ),
        r"\b(?:ne|n')\s?(?:mentionn|contien|préci|indiqu|fourni|perme|donn)\w*\b[^.;]{0,20}\b(?:pas|aucune?|rien)\b",
        r"\b(?:aucune|pas d'|pas de|pas assez d') ?(?:information|mention|réponse|précision|donnée)",
        r"\bje l'ignore\b",
    ),
    "es": (
        r"\bno (?:lo )?(?:sé|sabemos|puedo|podemos|encuentro|encontré|encontramos|dispongo|disponemos|tengo|tenemos)\b",
        (
            r"\bno (?:se )?(?:menciona|mencionan|contiene|contienen|especifica|especifican|indica|indican|proporciona"
            r"|proporcionan|dice|dicen|incluye|incluyen)\b"
        ),
        r"\bno hay (?:\w+ )?(?:información|datos|mención|respuesta|detalles)\b",
    ),
    "it": (
        r"\bnon (?:lo )?(?:so|sappiamo|posso|possiamo|trovo|ho trovato|dispongo|sono in grado)\b",
        (
            r"\bnon (?:\w+ )?(?:menziona|menzionano|contiene|contengono|specifica|specificano|indica|indicano|fornisce"
            r"|forniscono|dice|dicono)\b"
        ),
        r"\bnon (?:ci sono|c'è|è presente|sono presenti|ho) (?:\w+ ){0,2}(?:informazion|dat|risposta|dettagli)",
        r"\bnessuna (?:informazione|risposta|menzione)\b",
    ),
    "pt": (
        r"\bnão (?:o )?(?:sei|sabemos|posso|podemos|consigo|encontrei|encontramos|tenho|temos|disponho)\b",
        r"\bnão (?:é |são |se )?(?:mencion|contém|contêm|especific|indica|fornec|diz|inclu)",
        r"\bnão há (?:\w+ )?(?:informaç|dados|menção|resposta)",
    ),
    "nl": (
        r"\b(?:ik|we|wij) (?:weet|weten|kan|kunnen|kon|konden|heb|hebben|vind|vinden)\b[^.;]{0,40}\b(?:niet|geen)\b",
        r"\bweet (?:ik|wij|we) (?:helaas )?niet\b",
        (
            r"\b(?:document\w*|handboek|context|tekst\w*|bron\w*)\b[^.;]{0,40}\b(?:niet|geen|niets)\b[^.;]{0,30}"
            r"\b(?:vermeld|genoemd|informatie|bevat|staat)"
        ),
        r"\b(?:vermeldt|noemt|bevat|bevatten) (?:\w+ ){0,3}(?:niet|geen|niets)\b",
        r"\ber (?:is|staat|zijn) (?:\w+ )?geen (?:informatie|gegevens|antwoord)",
    ),
    "pl": (
        r"\bnie (?:wiem|wiemy|mogę|możemy|znalazłem|znalazłam|znaleźliśmy|mam|jestem w stanie)\b",
        r"\b(?:dokument\w*|kontek\w*|tekst\w*|źród\w*)\b[^.;]{0,30}\bnie (?:zawiera|wspomina|podaje|określa|mówi)",
        r"\bbrak (?:informacji|danych|odpowiedzi|wzmianki)",
    ),
    "ru": (
        r"\bя не (?:знаю|могу|нашел|нашёл|нашла)\b",
        r"\bне (?:указано|упоминается|упомянуто|содержит|содержат|содержится|найдено)\b",
        r"\bнет (?:\w+ )?(?:информации|данных|ответа|сведений)",
    ),
    "zh": (
        r"(?:我|我们)(?:不知道|无法|不能|不清楚|不确定)",
        r"(?:没有|未)(?:提及|提到|提供|包含|说明|找到|相关)",
        r"无法(?:回答|确定|提供|找到)",
    ),
    "ja": (
        r"(?:わかりません|分かりません|存じません|お答えできません|回答できません|見つかりません)",
        r"(?:記載されていません|記載がありません|言及されていません|情報がありません)",
    ),
}
"""Language -> patterns of sentences that decline to answer."""

LANGUAGES = tuple(_FORMS)
"""Languages of the forms."""

_BOUNDARY = r"\b"


def _one_pattern() -> str:
    """Return a pattern of all forms, in which the boundary that most begin with is looked for once."""
    forms = [form for forms in _FORMS.values() for form in forms]
    bounded = "|".join(form.removeprefix(_BOUNDARY) for form in forms if form.startswith(_BOUNDARY))
    return "|".join([f"{_BOUNDARY}(?:{bounded})", *(form for form in forms if not form.startswith(_BOUNDARY))])


_PATTERN = re.compile(_one_pattern(), re.IGNORECASE)
_LOWER_CASE_PATTERN = re.compile(_one_pattern())
_COURTESY = re.compile(
    r"(?i)\b(?:sorry|apologi[sz]e|unfortunately,?$|please (?:ask|contact|consult|check|refer|see|reach|provide"
    r"|give)"
    r"|let me know|feel free|happy to help|glad to help|anything else|i hope|thank|tut mir leid|leider\W*$"
    r"|bitte (?:frag|wend|kontakt)|désolée?|veuillez|lo siento|por favor"
    r"|mi dispiace|desculpe|helaas\W*$|przepraszam|извините)\b"
)
_SENTENCE_END = re.compile(r"(?<=[.!?;])\s+|(?<=[。！？；])|\n+")
_MOST_SENTENCES = 200
"""Sentences that are read; a text that declines says so early."""


def is_refusal(sentence: str) -> bool:
    """Return whether a sentence declines to answer.

    >>> [is_refusal(text) for text in ("The handbook does not mention a gym.", "Das steht nicht im Handbuch.")]
    [True, True]
    >>> is_refusal("The gym is free on Mondays.")
    False
    """
    if sentence.isascii():  # a pattern that minds the case is three times as fast, and finds the same in lower case
        return _LOWER_CASE_PATTERN.search(sentence.lower()) is not None
    return _PATTERN.search(unicodedata.normalize("NFC", sentence).replace("\u2019", "'")) is not None


def declines(text: str) -> bool:
    """Return whether a text declines to answer: at least half of it, by length, does, courtesies aside.

    An answer that only notes what else is unknown does not decline.

    >>> declines("I am sorry, but I could not find anything about this in the handbook. Please ask your team lead.")
    True
    >>> declines("The trip takes two hours by ferry from either port. The price is not mentioned in the text.")
    False
    >>> declines("")
    False
    """
    declining = other = 0
    for sentence in split_sentences(text):
        if is_refusal(sentence):
            declining += len(sentence)
        elif not _COURTESY.search(sentence) and not sentence.endswith(("?", "？")):
            other += len(sentence)
    return declining > 0 and declining >= other


def split_sentences(text: str) -> Sequence[str]:
    """Return the sentences of a text, roughly: cut at end marks, semicolons and line breaks.

    >>> split_sentences("It rains. Take a coat; go.")
    ['It rains.', 'Take a coat;', 'go.']
    """
    parts = (part.strip() for part in _SENTENCE_END.split(text, maxsplit=_MOST_SENTENCES))
    return [part for part in parts if any(character.isalnum() for character in part)]
