"""Sentences of texts in languages that the packaged pipeline was not made for."""

import pytest

from tasks.models.recognizers.spacy_pipeline import SpacyPipeline
from tasks.models.recognizers.text_layout import split_sentences

pytestmark = pytest.mark.models

SENTENCES = {
    "Chinese": ["员工每年有二十五天假期。", "北京是中国的首都！", "猫在睡觉吗？"],  # noqa: RUF001
    "Japanese": ["社員は年に25日の休暇があります。", "「東京は首都です。」と彼は言った。"],
    "Hindi": ["कर्मचारियों को छुट्टी मिलती है।", "बिल्ली सो रही है।"],
    "Arabic": ["يحق للموظفين إجازة.", "القاهرة هي عاصمة مصر.", "هل تعلم؟"],
    "Russian": ["Сотрудники имеют отпуск.", "Москва является столицей."],
    "Thai": ["พนักงานมีวันลาพักร้อนปีละยี่สิบห้าวัน", "ค่าเดินทางจะคืนภายในสามสิบวันหลังเดินทาง"],
    "Amharic": ["ሰራተኞች ፈቃድ አላቸው።", "ድመቷ ተኝታለች።"],
    "Korean": ["직원은 휴가를 받습니다.", "파리는 프랑스의 수도입니다."],
    "German": ["Mitarbeiter haben Urlaub.", "Das kostet z. B. 5 Euro."],
}


@pytest.fixture(scope="module")
def pipeline() -> SpacyPipeline:
    return SpacyPipeline()


@pytest.mark.parametrize("language", SENTENCES)
def test_each_script_has_its_own_ends_of_sentences(pipeline: SpacyPipeline, language: str) -> None:
    joint = "" if language in {"Chinese", "Japanese"} else " "
    assert pipeline.sentences([joint.join(SENTENCES[language])]) == [SENTENCES[language]]


@pytest.mark.parametrize(
    "text",
    ["ул. Ленина, д. 5", "พนักงานมี 25 วัน", "Plan “A” is good… and cheap"],
    ids=["short words are abbreviations", "short phrases in Thai", "typographic English"],
)
def test_what_is_no_end_is_not_cut(text: str) -> None:
    assert split_sentences(text, []) == [text]
