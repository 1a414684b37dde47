"""Refusals by their forms: the three kinds in every language, what is no refusal, and agreement with people."""

import hashlib
import re
import unicodedata
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.labelled_examples import DATA
from benchmarks.refusals import HALVES, Rates, Reply, answers, measure, policy_refusals, turns
from metric_core.refusals import language_forms, refusal_forms
from metric_core.refusals.language_forms import read_forms
from metric_core.refusals.refusal_forms import LANGUAGES, declines, is_refusal, refusal_kind, split_rough_sentences
from metric_core.refusals.refusal_kinds import RefusalKind

POLICY, NOTHING, QUESTION = RefusalKind.POLICY_REFUSAL, RefusalKind.NOTHING_FOUND, RefusalKind.CLARIFYING_QUESTION
REFUSALS: dict[str, dict[RefusalKind, tuple[str, ...]]] = {
    "en": {
        NOTHING: (
            "I don’t know.",
            "I dont have that information",
            "The handbook does not say whether it pays.",
            "There is no information about this.",
            "There isn't enough detail in the passages.",
            "There are no matching documents.",
            "Unable to answer based on given passages.",
            "No relevant documents were found.",
            "The answer is not in the context.",
            "Answer not found in context.",
            "Based on the provided context, I cannot answer this question.",
            "None of the documents mention a discount.",
            "Nothing in the manual explains this.",
            "I neither know the date nor where to look it up.",
            "The question is unanswerable given the passages.",
            "It isn’t stated who wrote it.",
        ),
        POLICY: (
            "Sorry, but I can't assist with that.",
            "I’m unable to discuss medical records.",
            "I must respectfully decline to answer.",
            "As an AI language model, I cannot take sides.",
            "That goes against our content policy.",
            "I'd rather not answer that.",
            "I can only answer questions about our products.",
            "It is not ethical or legal to open other people's mail, and you should not try.",
            "I won't write that letter. Threats are a crime. Instead, talk to your landlord about the noise.",
        ),
        QUESTION: (
            "Could you tell me which model you mean?",
            "Which version are you using?",
            "Do you mean the 2019 or the 2020 edition?",
            "I'm not sure what you mean. Could you rephrase?",
            "There are several libraries in Delft, like the one of the university. Which one are you referring to?",
            "It depends on your plan. Which plan do you have?",
        ),
    },
    "de": {
        NOTHING: (
            "Das weiß ich leider nicht.",
            "Das Dokument enthält dazu keine Angaben.",
            "Das steht nicht im Handbuch.",
            "Keine Angabe.",
            "Es wurden keine passenden Dokumente gefunden.",
            "Die Frage kann anhand der Texte nicht beantwortet werden.",
        ),
        POLICY: (
            "Es tut mir leid, aber dabei kann ich nicht helfen.",
            "Als KI-Modell darf ich dazu keine Meinung äußern.",
        ),
        QUESTION: ("Welches Modell meinen Sie?", "Könnten Sie Ihre Frage bitte präzisieren?"),
    },
    "fr": {
        NOTHING: (
            "Je ne sais pas.",
            "Le document ne mentionne pas la salle de sport.",
            "La réponse n’est pas dans le contexte.",
            "Aucune information trouvée.",
        ),
        POLICY: ("Désolé, je ne peux pas vous aider.", "En tant qu’assistant, je ne donne pas d’avis."),
        QUESTION: ("De quel modèle parlez-vous ?", "Pourriez-vous préciser votre question ?"),
    },
    "es": {
        NOTHING: (
            "No lo sé.",
            "El contexto no menciona el precio.",
            "No hay información sobre esto.",
            "La respuesta no está en el contexto.",
        ),
        POLICY: ("Lo siento, pero no puedo ayudarte con eso.", "Como modelo de lenguaje, no tengo opiniones."),
        QUESTION: ("¿A qué modelo te refieres?", "¿Podrías aclarar tu pregunta?"),
    },
    "hi": {
        NOTHING: ("मुझे नहीं पता।", "दस्तावेज़ में इसका कोई उल्लेख नहीं है।", "दिए गए संदर्भ में इस बारे में कोई जानकारी नहीं है।"),
        POLICY: ("क्षमा करें, मैं इसमें आपकी मदद नहीं कर सकता।", "मैं इस प्रश्न का उत्तर देने में असमर्थ हूँ।"),
        QUESTION: ("आप किस मॉडल के बारे में पूछ रहे हैं?", "कृपया अपना प्रश्न स्पष्ट करें।"),
    },
    "it": {
        NOTHING: ("Non lo so.", "Il testo non contiene informazioni sul prezzo."),
        POLICY: ("Mi dispiace, non posso aiutarti.",),
        QUESTION: ("A quale modello ti riferisci?",),
    },
    "pt": {
        NOTHING: ("Não sei.", "O texto não menciona o preço."),
        POLICY: ("Desculpe, não posso ajudar com isso.",),
        QUESTION: ("A qual modelo você se refere?",),
    },
    "nl": {
        NOTHING: ("Dat weet ik niet.", "Het document bevat geen informatie hierover."),
        POLICY: ("Sorry, daar kan ik niet mee helpen; ik mag u niet helpen.",),
        QUESTION: ("Welk model bedoelt u?",),
    },
    "pl": {
        NOTHING: ("Nie wiem.", "Dokument nie zawiera tej informacji."),
        POLICY: ("Przepraszam, nie mogę w tym pomóc.",),
        QUESTION: ("Który model masz na myśli?",),
    },
    "ru": {
        NOTHING: ("Я не знаю.", "В тексте это не указано."),
        POLICY: ("Извините, я не могу помочь с этим.",),
        QUESTION: ("Какую модель вы имеете в виду?",),
    },
    "zh": {
        NOTHING: ("我不知道。", "文中没有提到价格。"),
        POLICY: ("抱歉，我无法帮助您。",),
        QUESTION: ("请问您指的是哪个型号？",),
    },
    "ja": {
        NOTHING: ("申し訳ありませんが、わかりません。",),
        POLICY: ("申し訳ありませんが、お手伝いできません。",),
        QUESTION: ("どのモデルのことでしょうか？",),
    },
}
EXAMPLES = [(kind, text) for kinds in REFUSALS.values() for kind, texts in kinds.items() for text in texts]
ANSWERS = (
    "The shop is not open on Sundays.",
    "No, employees do not need a certificate.",
    "No documents are required for the visa.",
    "We cannot give refunds after 30 days.",
    "Users who are unable to find their password can reset it in the documents section.",
    "The text of the law does not provide for exceptions.",
    "The article is not available in the EU store.",
    "Access to the data is not provided to guests.",
    "It is not appropriate to share passwords with colleagues.",
    "As an assistant professor you cannot sign this.",
    "There is no data limit on this plan.",
    "There is no information desk on this floor.",
    "There aren't many sources of income in the valley.",
    "There is no evidence that the bridge was ever closed.",
    "He said “I don’t know” and left the room.",
    'The message "Unable to find information in this document" means that the index is empty.',
    "You can return it within a month. Is there anything else I can help you with?",
    "You can reset it in the settings. Which browser are you using?",
    "The ferry takes two hours, while the price is not mentioned in the text.",
    "Yes. The ferry takes two hours from either of the two ports. The price is not mentioned in the text.",
    "I do not have much on this, but I can say that the ferry takes two hours.",
    "Sorry, the text does not mention the port. However, the ferry takes two hours.",
    "I can't recommend one of them. The blue boat has two cabins and a kitchen, and the red one is faster.",
    "Das Geschäft ist sonntags nicht geöffnet.",
    "Der Kuchen enthält keine Nüsse.",
    "Wir können keine Rückerstattung geben.",
    "Le magasin n'est pas ouvert le dimanche.",
    "Le gâteau ne contient pas de gluten.",
    "La loi ne permet pas de fumer ici.",
    "La tienda no abre los domingos.",
    "El plan no incluye dentista.",
    "El producto no contiene gluten.",
    "दुकान रविवार को नहीं खुलती।",
    "इस उत्पाद में ग्लूटेन नहीं है।",
    "Il negozio non apre la domenica.",
    "Il prodotto non contiene glutine.",
    "A loja não abre aos domingos.",
    "O produto não contém glúten.",
    "De winkel is op zondag niet open.",
    "Het product bevat geen gluten.",
    "Sklep nie jest czynny w niedzielę.",
    "Магазин не работает по воскресеньям.",
    "Продукт не содержит глютен.",
    "商店星期天不开门。",
    "产品不包含电池。",
    "日曜日は営業していません。",
)


def test_every_language_has_every_kind() -> None:
    every = {language: set(RefusalKind) for language in LANGUAGES}
    assert {
        language: {kind for kind, forms in each.forms.items() if forms} for language, each in read_forms().items()
    } == every
    assert {language: set(kinds) for language, kinds in REFUSALS.items()} == every


def test_the_digest_of_the_files_is_part_of_the_code_by_which_results_are_kept() -> None:
    folder = Path(language_forms.__file__).parent / "forms"
    assert {path.name for path in folder.iterdir()} == {f"{language}.toml" for language in LANGUAGES}
    content = b"".join((folder / f"{language}.toml").read_bytes() for language in LANGUAGES)
    assert hashlib.sha256(content).hexdigest()[:16] == language_forms.CONTENT, "set CONTENT to this digest"


def test_refusals_are_recognized_with_their_kind() -> None:
    assert [(refusal_kind(text), text) for _, text in EXAMPLES] == [*EXAMPLES]
    assert not [text for _, text in EXAMPLES if not declines(text)]


def test_layout_and_letter_case_do_not_matter() -> None:
    for kind, text in EXAMPLES:
        for other in (f"\n {text.upper()} \n", f"**{text}**", f"> {text}", f'"{text}"', text.replace("’", "'")):
            assert refusal_kind(other) is kind, other


def test_an_answer_is_no_refusal() -> None:
    assert not [text for text in ANSWERS if refusal_kind(text) is not None]


def test_courtesies_do_not_count() -> None:
    assert declines("I am sorry. I could not find this. Please ask your team lead, who will be able to help you.")


def test_an_answer_before_what_is_unknown_weighs_more_than_one_after_it() -> None:
    unknown, known = "The text does not mention the port.", "The ferry takes two hours."
    assert declines(f"{unknown} {known}")
    assert not declines(f"{known} {unknown}")


def test_a_decomposed_letter_is_read() -> None:
    assert declines("Das weiß ich nicht; es ist unklar.".replace("ß", "ss"))
    assert declines("Je ne trouve pas la réponse.".replace("é", "e\u0301"))


def test_a_long_answer_ends_the_reading_early_with_the_same_result() -> None:
    answer = "The ferry takes two hours from either of the two ports. " * 30
    assert refusal_kind(answer + "I do not know the price. " * 10) is None
    assert refusal_kind("I do not know the price. " * 40 + answer) is None
    assert refusal_kind("I do not know the price. " * 80 + answer) is NOTHING


def test_looking_for_all_forms_at_once_finds_what_each_form_finds() -> None:
    forms = [form for language in read_forms().values() for forms in language.forms.values() for form in forms]
    assert not [form for form in forms if re.search("[A-Z]", re.sub(r"\\.", "", form))]  # text is in lower case
    assert not [form for form in forms if re.compile(form).groups]  # a group of the pattern is a kind
    texts = [text for kinds in REFUSALS.values() for texts in kinds.values() for text in texts] + list(ANSWERS)
    for sentence in (part for text in texts for part in split_rough_sentences(text)):
        plain = refusal_forms._prepare(sentence)
        prepared = [re.compile(unicodedata.normalize("NFC", form)) for form in forms]
        assert is_refusal(sentence) == any(form.search(plain) for form in prepared), sentence


def test_gaps_between_words_are_bounded() -> None:
    forms = [form for language in read_forms().values() for forms in language.forms.values() for form in forms]
    for form in forms:
        gaps = re.sub(r"(?:\\[wWsS]|\[\\w-\])[*+]\??", "", form).replace("fulfil+", "")  # words may be of any length
        assert not re.search(r"(?<!\\)[*+]", re.sub(r"\\.", "", gaps)), form


def measure_labelled(replies: Iterator[Reply]) -> dict[tuple[str, str], Rates]:
    if not DATA.is_dir():
        pytest.skip(f"{DATA} does not exist")
    return measure(replies)


def test_policy_refusals_agree_with_people() -> None:
    found = measure_labelled(policy_refusals())
    assert found["xstest", "all"].balanced_accuracy >= 0.90
    assert all(found["xstest", half].balanced_accuracy >= 0.89 for half in HALVES)
    assert found["xstest", "all"].of_the_kind >= 0.98


@pytest.mark.parametrize(
    ("label", "kind"), [("UNANSWERABLE", NOTHING), ("UNDERSPECIFIED", QUESTION)], ids=["unanswerable", "underspecified"]
)
def test_turns_without_an_answer_agree_with_people(label: str, kind: RefusalKind) -> None:
    found = measure_labelled(turns(label, kind))
    for half in (*HALVES, "all"):
        rates = found[f"mtrag-un, {label.lower()}", half]
        assert rates.balanced_accuracy >= (0.97 if half == "all" else 0.95)
        assert rates.false_rate <= 0.01
        assert rates.of_the_kind >= 0.88


@pytest.mark.simulation
def test_answers_of_people_and_models_are_seldom_called_refusals() -> None:
    found = measure_labelled(answers())
    for half in HALVES:
        every = [rates for (_, of_half), rates in found.items() if of_half == half]
        assert sum(rates.false for rates in every) / sum(rates.answers for rates in every) <= 0.005
    # Some answers in MEMERAG do refuse: people labelled claims there, not answers.
    languages = {name: rates for (name, half), rates in found.items() if half == "all" and "memerag" in name}
    assert len(languages) == 5
    assert all(rates.false_rate <= 0.035 for rates in languages.values())
