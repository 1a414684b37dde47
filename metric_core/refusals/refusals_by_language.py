"""The forms of refusals by language, with those of Hindi, Polish, Russian, Chinese and Japanese.

What a source "contains" or "includes" is asked only where a sentence names a source or a kind of information, so that
"the cake contains no nuts" is an answer. Hindi has no word boundaries here: its vowel signs are not letters for `re`.
"""

from metric_core.refusals.english_refusals import ENGLISH
from metric_core.refusals.germanic_refusals import DUTCH, GERMAN
from metric_core.refusals.refusal_kinds import LanguageForms, RefusalKind
from metric_core.refusals.romance_refusals import FRENCH, ITALIAN, PORTUGUESE, SPANISH

_QUESTION, _NOTHING, _POLICY = RefusalKind

_HI_SOURCE = r"(?:संदर्भ|दस्तावेज़|दस्तावेज|दस्तावेज़ों|दस्तावेजों|पाठ|अनुच्छेद|अनुच्छेदों|अंश|अंशों|गद्यांश|लेख|स्रोत|स्रोतों|परिच्छेद|पैसेज|जानकारी)"
_HI_FACT = r"(?:जानकारी|उल्लेख|विवरण|उत्तर|जवाब|सूचना|दस्तावेज़|दस्तावेज|परिणाम|ज़िक्र|जिक्र)"
_HINDI: LanguageForms = {
    _QUESTION: (
        (
            r"(?:किस|कौन[ -]?स[ाीे]|क्या)[^।.?]{0,60}(?:मतलब|बात कर रह|बारे में पूछ|पूछ रहे|आशय|तात्पर्य"
            r"|संदर्भ में बात)"
            r"[^।.]{0,40}\?"
        ),
        r"क्या आप[^।.?]{0,60}(?:स्पष्ट|बता सकते|विस्तार से|अधिक जानकारी|और जानकारी)",
        r"कृपया[^।.;]{0,40}(?:स्पष्ट कर|अधिक जानकारी|निर्दिष्ट)",
        r"(?:आपका|आपके) (?:प्रश्न|सवाल)[^।.;]{0,20}(?:स्पष्ट नहीं|अस्पष्ट)",
    ),
    _NOTHING: (
        (
            r"(?:मुझे|हमें|मैं|हम|मेरे पास|हमारे पास)[^।.;]{0,80}(?:नहीं पता|पता नहीं|जानकारी नहीं|नहीं जानत"
            r"|मालूम नहीं|नहीं मिल|ज्ञात नहीं)"
        ),
        rf"(?:कोई|इसका|इसकी|पर्याप्त|विशिष्ट|स्पष्ट)[^।.;]{{0,30}}{_HI_FACT}[^।.;]{{0,30}}नहीं",
        (
            rf"{_HI_SOURCE}[^।.;]{{0,20}}(?:में|से|ने|अनुसार)[^।.;]{{0,80}}(?:नहीं बता|उल्लेख नहीं|जानकारी नहीं"
            rf"|स्पष्ट नहीं"
            r"|नहीं दिया|नहीं दी|वर्णन नहीं|नहीं मिल|शामिल नहीं|उपलब्ध नहीं|मौजूद नहीं|नहीं किया गया|उत्तर नहीं"
            r"|जवाब नहीं)"
        ),
        rf"(?:उत्तर|जवाब)[^।.;]{{0,20}}{_HI_SOURCE}[^।.;]{{0,20}}में नहीं",
        r"(?:मैं|हम)[^।.;]{0,80}(?:बता|खोज|ढूंढ|निर्धारित)[^।.;]{0,12}नहीं",
        r"^(?:ज्ञात नहीं|अज्ञात|पता नहीं|मालूम नहीं|उपलब्ध नहीं|(?:कोई )?जानकारी (?:उपलब्ध )?नहीं)[^।]{0,6}।?$",
    ),
    _POLICY: (
        (
            r"(?:मैं|हम)[^।.;]{0,100}(?:मदद|सहायता|सहयोग|जवाब|उत्तर|सलाह|प्रदान|पूरा|साझा|जानकारी)[^।.;]{0,20}"
            r"(?:नहीं (?:कर|दे)"
            r"|असमर्थ|करने में असमर्थ|देने में असमर्थ|सक्षम नहीं|अनुमति नहीं)"
        ),
        r"एक (?:\S+ )?(?:एआई|ai|भाषा मॉडल|सहायक)[^।.;]{0,80}नहीं",
    ),
}

_POLISH: LanguageForms = {
    _QUESTION: (
        (
            r"\b(?:któr\w+|co|kogo|o jak\w+)\b[^.?!]{0,60}\b(?:masz na myśli|ma pan na myśli|ma pani na myśli"
            r"|chodzi)\b[^.]{0,200}\?"
        ),
        (
            r"\b(?:czy )?(?:możesz|mógłbyś|mogłabyś|może pan|może pani)\b[^.?!]{0,30}\b(?:doprecyzować|sprecyzować"
            r"|wyjaśnić)"
        ),
    ),
    _NOTHING: (
        r"\bnie (?:wiem|wiemy|znalazłem|znalazłam|znaleźliśmy|znaleziono)\b",
        r"\bnie (?:mogę|możemy|jestem w stanie) (?:\w+ )?(?:znaleźć|określić|stwierdzić|powiedzieć)",
        r"\bnie mam (?:\w+ )?(?:informacji|danych|odpowiedzi|dostępu)",
        r"\b(?:dokument\w*|kontek\w*|tekst\w*|źród\w*)\b[^.;]{0,30}\bnie (?:zawiera|wspomina|podaje|określa|mówi)",
        r"\bbrak (?:informacji|danych|odpowiedzi|wzmianki)",
    ),
    _POLICY: (
        r"\bnie (?:mogę|możemy|jestem w stanie)\b[^.;]{0,30}\b(?:pomóc|odpowiedzieć|udzielić|spełnić|udostępnić)",
        r"\bjako (?:\w+ )?(?:ai|sztuczna|model|asystent)\b[^.;]{0,60}\bnie\b",
    ),
}
_RUSSIAN: LanguageForms = {
    _QUESTION: (
        r"\b(?:как\w+|что|кого|котор\w+)\b[^.?!]{0,60}\b(?:вы имеете в виду|ты имеешь в виду|идёт речь|идет речь)\b",
        r"\b(?:уточните|не могли бы вы уточнить|можете уточнить|поясните)\b",
    ),
    _NOTHING: (
        r"\b(?:я|мы) не (?:знаю|знаем|нашел|нашёл|нашла|нашли)\b",
        r"\bне (?:могу|можем|удалось) (?:\w+ )?(?:найти|определить|сказать)",
        r"\bне (?:указано|указана|указан|упоминается|упомянуто|упоминают|найдено)\b",
        (
            r"\b(?:документ\w*|контекст\w*|текст\w*|источник\w*|информаци\w*)\b[^.;]{0,40}\bне (?:содерж|сказано"
            r"|говорится)"
        ),
        r"\bнет (?:\w+ )?(?:информации|данных|ответа|сведений)",
    ),
    _POLICY: (
        r"\bне (?:могу|можем)\b[^.;]{0,30}\b(?:помочь|ответить|предоставить|выполнить)",
        r"\bкак (?:\w+ )?(?:ии|языковая|модель|ассистент)\b[^.;]{0,60}\bне\b",
    ),
}
_CHINESE: LanguageForms = {
    _QUESTION: (
        r"(?:请问)?(?:您|你)(?:指的是|是指|说的是|是说)[^。]{0,40}(?:哪|什么|谁|还是|吗)",
        r"请(?:您|你)?(?:提供更多|澄清|说明|明确)",
    ),
    _NOTHING: (
        r"(?:我|我们)(?:不知道|不清楚|不确定|没有找到|未找到|找不到)",
        (
            r"(?:文中|文档|文件|上下文|资料|文本|段落|材料|内容)[^。；]{0,20}(?:没有|未|并未)(?:提及|提到"
            r"|提供|包含|说明|相关|涉及)"
        ),
        r"(?:没有|未)(?:提及|提到|找到相关)",
        r"无法(?:确定|找到|得知|判断|根据)",
        r"没有(?:相关|足够|任何)?(?:的)?(?:信息|资料|答案|文档)",
    ),
    _POLICY: (
        r"(?:我|我们)(?:无法|不能|不可以|不便)[^。；]{0,12}(?:帮助|协助|提供|回答|满足|讨论)",
        r"无法(?:回答|提供|协助)",
        r"作为(?:一个|一名)?[^。；]{0,8}(?:人工智能|ai|语言模型|助手)[^。；]{0,20}(?:不|无法|没有)",
    ),
}
_JAPANESE: LanguageForms = {
    _QUESTION: (
        r"(?:どの|どちら|どれ|何|どなた)[^。]{0,30}(?:ことでしょうか|ことですか|指して|お尋ね)",
        r"(?:詳しく|具体的に)[^。]{0,10}(?:教えて|お聞かせ)",
    ),
    _NOTHING: (
        r"(?:わかりません|分かりません|存じません|見つかりません|見当たりません)",
        (
            r"(?:記載されていません|記載がありません|記載はありません|言及されていません|情報がありません"
            r"|情報はありません)"
        ),
    ),
    _POLICY: (
        r"(?:お答えできません|回答できません|お手伝いできません|お応えできません|提供できません|対応できません)",
    ),
}

FORMS: dict[str, LanguageForms] = {
    "en": ENGLISH,
    "de": GERMAN,
    "fr": FRENCH,
    "es": SPANISH,
    "hi": _HINDI,
    "it": ITALIAN,
    "pt": PORTUGUESE,
    "nl": DUTCH,
    "pl": _POLISH,
    "ru": _RUSSIAN,
    "zh": _CHINESE,
    "ja": _JAPANESE,
}
"""Language -> its forms."""
