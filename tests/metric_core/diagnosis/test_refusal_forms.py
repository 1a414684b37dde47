"""Refusals by their forms, in every language of the list."""

import re

import pytest

from metric_core.diagnosis import refusal_forms
from metric_core.diagnosis.refusal_forms import LANGUAGES, declines, is_refusal

REFUSALS = {
    "en": ("I don’t know.", "The handbook does not say whether it pays.", "There is no information about this."),
    "de": ("Das weiß ich leider nicht.", "Das Dokument enthält dazu keine Angaben.", "Das steht nicht im Handbuch."),
    "fr": ("Je ne sais pas.", "Le document ne mentionne pas la salle de sport."),
    "es": ("No lo sé.", "El contexto no menciona el precio."),
    "it": ("Non lo so.", "Il testo non contiene informazioni sul prezzo."),
    "pt": ("Não sei.", "O texto não menciona o preço."),
    "nl": ("Dat weet ik niet.", "Het document bevat geen informatie hierover."),
    "pl": ("Nie wiem.", "Dokument nie zawiera tej informacji."),
    "ru": ("Я не знаю.", "В тексте это не указано."),
    "zh": ("我不知道。", "文中没有提到价格。"),
    "ja": ("申し訳ありませんが、わかりません。",),
}
ANSWERS = (
    "The shop is not open on Sundays.",
    "No, employees do not need a certificate.",
    "Yes. The ferry takes two hours from either of the two ports. The price is not mentioned in the text.",
    "Das Geschäft ist sonntags nicht geöffnet.",
    "Le magasin n'est pas ouvert le dimanche.",
    "La tienda no abre los domingos.",
    "Il negozio non apre la domenica.",
    "A loja não abre aos domingos.",
    "De winkel is op zondag niet open.",
    "Sklep nie jest czynny w niedzielę.",
    "Магазин не работает по воскресеньям.",
    "商店星期天不开门。",
    "日曜日は営業していません。",
)


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_language_has_refusals(language: str) -> None:
    assert all(declines(text) for text in REFUSALS[language])


@pytest.mark.parametrize("text", ANSWERS)
def test_a_negative_answer_is_an_answer(text: str) -> None:
    assert not declines(text)


def test_courtesies_do_not_count() -> None:
    assert declines("I am sorry. I could not find this. Please ask your team lead, who will be able to help you.")


def test_curly_apostrophes_and_decomposed_letters_are_read() -> None:
    assert declines("I can’t answer that.")
    assert declines("Das weiß ich nicht; es ist unklar.".replace("ß", "ss"))


def test_looking_for_all_forms_at_once_finds_what_each_form_finds() -> None:
    forms = [form for forms in refusal_forms._FORMS.values() for form in forms]
    assert not [form for form in forms if re.search("[A-Z]", re.sub(r"\\.", "", form))]  # found in lower case
    texts = [text for texts in REFUSALS.values() for text in texts] + list(ANSWERS)
    ascii_texts = [text.encode("ascii", "ignore").decode() for text in texts]
    for text in (*texts, *ascii_texts, *(text.upper() for text in ascii_texts), *map("x".__add__, texts)):
        plain = text.replace("\u2019", "'")
        assert is_refusal(text) == any(re.search(form, plain, re.IGNORECASE) for form in forms), text
