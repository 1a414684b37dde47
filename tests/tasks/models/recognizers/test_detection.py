"""The language of rows: right for whole sentences, unknown where nothing can be known."""

import pytest

from tasks.models.recognizers.detection import UNKNOWN, detect_language

SENTENCES = {
    "en": "Employees have 25 days of vacation per year.",
    "de": "Reisekosten werden innerhalb von dreißig Tagen erstattet.",
    "fr": "Les frais de voyage sont remboursés sous trente jours.",
    "es": "Los empleados tienen derecho a 25 días de vacaciones.",
    "ru": "Расходы на поездки возмещаются в течение месяца.",
    "ar": "تسدد تكاليف السفر خلال ثلاثين يوما.",
    "hi": "कर्मचारियों को साल में 25 दिन की छुट्टी मिलती है।",
    "th": "พนักงานมีวันลาพักร้อน 25 วันต่อปี",
    "zh": "员工每年有二十五天假期。",
    "ja": "社員は年に25日の休暇があります。",
    "ko": "직원은 연간 25일의 휴가를 받습니다.",
}


def test_a_sentence_has_its_language() -> None:
    for code, sentence in SENTENCES.items():
        assert detect_language([sentence]) == code, code
        assert detect_language([None, f"{sentence}\n" * 200, ""]) == code, code


@pytest.mark.parametrize("texts", [[], [None], ["", " "], ["42", "?!"]])
def test_texts_without_letters_have_none(texts: list[str | None]) -> None:
    assert detect_language(texts) == UNKNOWN
