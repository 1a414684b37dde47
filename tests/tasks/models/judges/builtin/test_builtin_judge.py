"""Tests of the built-in judge: supported and undefined kinds, and independence of the batch."""

from dataclasses import replace

import pytest

from metric_core import reasons
from metric_core.prompts.judge_questions import (
    YES_NO,
    ChoiceQuestion,
    GenerateQuestion,
    Kind,
    ask_claims,
    ask_questions,
    ask_refusal,
    ask_relevant_sentences,
    ask_usefulness_for_reference,
    ask_usefulness_for_response,
    ask_verdict,
)
from metric_core.prompts.reply_schemas import object_schema
from metric_core.question_kinds import QuestionKind
from metric_core.records import AnswerStatus
from tasks.models.embedders.minilm import MiniLm
from tasks.models.embedders.protocol import EmbedderIdentity
from tasks.models.judges.builtin.builtin_judge import BuiltinJudge
from tasks.models.judges.protocol import Judge
from tasks.models.recognizers.spacy_pipeline import SpacyPipeline

pytestmark = pytest.mark.models

PASSAGE = "Full-time employees have 25 vacation days a year. Travel requests are approved by Maria Lopez."
OTHER = "The cafeteria serves soup on Fridays. Bicycles can be parked behind the building."
CHOICES = [
    ask_verdict("Full-time employees have 25 vacation days.", PASSAGE),
    ask_verdict("Full-time employees have 30 vacation days.", PASSAGE),
    ask_usefulness_for_reference(PASSAGE, "Who approves travel requests?", "Maria Lopez approves them."),
    ask_usefulness_for_reference(OTHER, "Who approves travel requests?", "Maria Lopez approves them."),
    ask_usefulness_for_response(PASSAGE, "Who approves travel requests?", "Maria Lopez does."),
    ask_usefulness_for_response(OTHER, "Who approves travel requests?", "Maria Lopez does."),
]
ANSWERABLE = {
    QuestionKind.CLAIMS,
    QuestionKind.QUESTIONS,
    QuestionKind.VERDICT,
    QuestionKind.USEFULNESS_FOR_REFERENCE,
    QuestionKind.USEFULNESS_FOR_RESPONSE,
    QuestionKind.RELEVANT_SENTENCES,
    QuestionKind.REFUSAL,
    QuestionKind.KEY_POINT,
}


@pytest.fixture(scope="module")
def judge() -> Judge:
    return BuiltinJudge(MiniLm(), SpacyPipeline())


def test_identity(judge: Judge) -> None:
    identity = judge.identity
    assert (identity.backend, identity.language_model) == ("builtin", False)
    assert identity.note.startswith("Not a language model")
    assert "MiniLM" in identity.model


@pytest.mark.parametrize("kind", QuestionKind)
def test_can_answer(judge: Judge, kind: Kind) -> None:
    assert judge.can_answer(kind) is (kind in ANSWERABLE)


def test_refusals_are_recognized_by_their_forms_in_any_script(judge: Judge) -> None:
    declining = ("I could not find that.", "Das weiß ich leider nicht.", "我不知道。")
    texts = (*declining, "The shop opens at nine.", "商店九点开门。")
    answers = judge.choose([ask_refusal("When does the shop open?", text) for text in texts])
    assert [answer.label for answer in answers] == ["no", "no", "no", "yes", "yes"]


def test_choices(judge: Judge) -> None:
    answers = judge.choose(CHOICES)
    assert [answer.label for answer in answers] == ["yes", "no", "yes", "no", "yes", "no"]
    for answer in answers:
        assert answer.status is AnswerStatus.ANSWERED
        assert answer.probabilities is not None
        assert sum(answer.probabilities.values()) == pytest.approx(1)
        assert answer.label == max(answer.probabilities, key=lambda label: (answer.probabilities or {})[label])
        assert answer.reply is None


def test_an_answer_does_not_depend_on_its_batch(judge: Judge) -> None:
    together = [answer.probabilities for answer in judge.choose(CHOICES)]
    alone = [judge.choose([question])[0].probabilities for question in CHOICES]
    for one, other in zip(together, alone, strict=True):
        assert one == pytest.approx(other, abs=1e-5)


def test_all_votes_are_equal(judge: Judge) -> None:
    question = ChoiceQuestion(QuestionKind.VERDICT, CHOICES[0].texts, YES_NO, votes=3)
    assert judge.choose([question])[0].votes == ("yes",) * 3


def test_questions_for_a_language_model_are_undefined(judge: Judge) -> None:
    choice = ChoiceQuestion(QuestionKind.ASPECT, {"response": "Hi."}, YES_NO)
    written = GenerateQuestion(QuestionKind.RUBRIC, {"response": "Hi."}, object_schema({}))
    chosen = judge.choose([choice, CHOICES[0]])
    replies = judge.generate([written, ask_claims("It is free.", None)])
    assert [answer.status.value for answer in chosen] == ["undefined", "answered"]
    assert [answer.status.value for answer in replies] == ["undefined", "answered"]
    assert chosen[0].reason == replies[0].reason == reasons.NEEDS_LANGUAGE_MODEL


def test_replies_fit_their_schemas(judge: Judge) -> None:
    claims, questions, relevant = judge.generate(
        [
            ask_claims("Staff have 25 days and get a bonus.", "How many days?"),
            ask_questions("Staff have 25 vacation days.", 3),
            ask_relevant_sentences(
                ["The cafeteria serves soup.", "Staff have 25 vacation days a year."],
                "How many vacation days are there?",
            ),
        ]
    )
    assert claims.value == {"claims": ["Staff have 25 days.", "Staff get a bonus."]}
    assert len(questions.value["questions"]) == 3
    assert all(set(question) == {"question", "noncommittal"} for question in questions.value["questions"])
    assert relevant.value == {"relevant": [2]}


@pytest.mark.parametrize(
    ("claim", "premise"), [("", PASSAGE), ("It is free.", ""), ("", ""), ("...", "?!"), ("a" * 5000, "b")]
)
def test_unusual_texts_get_a_no(judge: Judge, claim: str, premise: str) -> None:
    assert judge.choose([ask_verdict(claim, premise)])[0].label == "no"


def test_empty_batches(judge: Judge) -> None:
    assert judge.choose([]) == []
    assert judge.generate([]) == []


def test_no_sentences_no_relevant_ones(judge: Judge) -> None:
    assert judge.generate([ask_relevant_sentences([], "Why?")])[0].value == {"relevant": []}


def test_the_callback_gets_every_answer(judge: Judge) -> None:
    received: list[object] = []
    choices = judge.choose(CHOICES, lambda *what: received.append(what))
    claims = judge.generate([ask_claims(PASSAGE, None)], lambda *what: received.append(what))
    assert received == [*enumerate(choices), *enumerate(claims)]


def test_the_fingerprint_follows_the_embedder(judge: Judge) -> None:
    class OtherVectors(MiniLm):
        @property
        def identity(self) -> EmbedderIdentity:
            return replace(super().identity, revision="another")

    one = judge.fingerprint(QuestionKind.VERDICT)
    assert one == BuiltinJudge(MiniLm(), SpacyPipeline()).fingerprint(QuestionKind.VERDICT)
    assert one != judge.fingerprint(QuestionKind.CLAIMS)
    assert one != BuiltinJudge(OtherVectors(), SpacyPipeline()).fingerprint(QuestionKind.VERDICT)


CHINESE = "员工每年有二十五天假期。北京是中国的首都。"
THAI = "พนักงานมีวันลาพักร้อนปีละยี่สิบห้าวัน"


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        (ask_verdict("北京是中国的首都。", CHINESE), "yes"),
        (ask_verdict("公司提供免费午餐。", CHINESE), None),
        (ask_verdict("Lunch is free.", CHINESE), None),
        (ask_verdict("Москва", f"Столица - Москва. {CHINESE}"), "yes"),
        (ask_verdict("Моск", f"Столица - Москва. {CHINESE}"), None),
        (ask_verdict(THAI, f"{THAI} {THAI}"), "yes"),
        (ask_usefulness_for_reference(CHINESE, "首都?", "北京是中国的首都"), "yes"),
        (ask_usefulness_for_response(CHINESE, "首都?", "上海"), None),
        (ask_verdict("Mitarbeiter haben 25 Urlaubstage.", "Unsere Mitarbeiter haben 25 Urlaubstage."), "yes"),
    ],
)
def test_a_script_that_it_cannot_read_has_a_verdict_only_on_what_stands_there(
    judge: Judge, question: ChoiceQuestion, expected: str | None
) -> None:
    (answer,) = judge.choose([question])
    if expected is None:
        assert (answer.status, answer.reason) == (AnswerStatus.UNDEFINED, reasons.UNKNOWN_SCRIPT_TO_JUDGE)
    else:
        assert answer.label == expected
        assert (answer.probabilities or {})["yes"] > 0.9


def test_every_sentence_of_another_script_is_a_claim(judge: Judge) -> None:
    (answer,) = judge.generate([ask_claims(f"{CHINESE}你知道吗？", None)])  # noqa: RUF001
    assert answer.value == {"claims": ["员工每年有二十五天假期。", "北京是中国的首都。"]}


@pytest.mark.parametrize(
    "question", [ask_questions(CHINESE, 2), ask_relevant_sentences([CHINESE, "Lunch is free."], "首都?")]
)
def test_it_writes_and_chooses_nothing_in_a_script_that_it_cannot_read(
    judge: Judge, question: GenerateQuestion
) -> None:
    (answer,) = judge.generate([question])
    assert (answer.status, answer.reason) == (AnswerStatus.UNDEFINED, reasons.UNKNOWN_SCRIPT_TO_JUDGE)


def test_it_says_on_which_languages_it_was_measured(judge: Judge) -> None:
    assert judge.identity.languages == ("en",)
