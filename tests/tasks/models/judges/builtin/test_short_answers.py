"""A response or reference of a few words is judged together with its question."""

import pytest

from metric_core.evidence import BY_RESPONSE, premise_text
from metric_core.prompts.judge_questions import ask_claims, ask_verdict
from metric_core.records import Sample
from tasks.models.embedders.minilm import MiniLm
from tasks.models.judges.builtin.builtin_judge import BuiltinJudge
from tasks.models.recognizers.spacy_pipeline import SpacyPipeline

pytestmark = pytest.mark.models

ANSWERS = [
    # question, answer, a passage that says so, one that says something else
    (
        "Is smoking allowed on the balcony?",
        "No.",
        "Smoking is not permitted on balconies, in stairways or in the lift.",
        "Smoking is allowed on balconies after 18:00.",
    ),
    (
        "Can I bring my dog to the office?",
        "Yes.",
        "Dogs may come to the office if all people in the room agree.",
        "Dogs and other animals are not allowed in the office.",
    ),
    (
        "Do part-time staff get the travel budget?",
        "Yes, half of it.",
        "Part-time staff get half of the travel budget.",
        "Full-time staff get a travel budget of 500 euros.",
    ),
    (
        "Is overtime paid?",
        "No.",
        "Overtime is not paid; it is compensated by time off.",
        "Overtime is paid with the next salary.",
    ),
    ("Does the gym open on Sundays?", "No.", "The gym is closed on Sundays.", "The gym opens on Sundays from 9 to 13."),
    (
        "How many guests can stay overnight?",
        "Two.",
        "At most two guests can stay overnight, for up to three nights.",
        "Guests must sign the visitors' book.",
    ),
    (
        "Who approves travel abroad?",
        "The head of department.",
        "Travel abroad has to be approved by the head of department.",
        "Travel within the country is approved by the team lead.",
    ),
    (
        "When is the canteen open?",
        "11:30 to 14:00.",
        "The canteen is open from 11:30 to 14:00 on working days.",
        "The library is open from 9:00 to 17:00.",
    ),
    (
        "What is the deposit for a key?",
        "25 euros.",
        "For each key we ask for a deposit of 25 euros.",
        "For each parking card we ask for a deposit of 40 euros.",
    ),
    (
        "Where do I report a lost badge?",
        "At the reception.",
        "Report a lost badge at the reception immediately.",
        "New badges are printed by the facility team.",
    ),
    (
        "Are receipts needed below 10 euros?",
        "No.",
        "Receipts are not needed for amounts below 10 euros.",
        "Receipts are needed for all amounts.",
    ),
    (
        "How often is the filter replaced?",
        "Every six months.",
        "Replace the filter every six months.",
        "Clean the tank every two weeks.",
    ),
    (
        "Can children under 6 travel free?",
        "Yes.",
        "Children under 6 travel free with an adult.",
        "Children from 6 to 14 pay half.",
    ),
    ("Is there wifi in the rooms?", "Yes.", "All rooms have wifi.", "The lobby has a printer for guests."),
    (
        "How long is a ticket valid?",
        "90 minutes.",
        "A ticket is valid for 90 minutes from stamping.",
        "A film lasts about 90 minutes.",
    ),
    (
        "Must I wear a helmet?",
        "Yes, on the whole site.",
        "A helmet must be worn on the whole site.",
        "Gloves are recommended in the workshop.",
    ),
    (
        "Which colour is the fire assembly sign?",
        "Green.",
        "The sign of the fire assembly point is green.",
        "Fire extinguishers are red.",
    ),
]


@pytest.fixture(scope="module")
def judge() -> BuiltinJudge:
    return BuiltinJudge(MiniLm(), SpacyPipeline())


def claim_of(judge: BuiltinJudge, question: str, answer: str) -> str:
    (claim,) = judge.generate([ask_claims(answer, question)])[0].value["claims"]
    return str(claim)


@pytest.mark.parametrize(("question", "answer", "passage", "other"), ANSWERS)
def test_a_short_answer_is_found_where_it_stands_and_only_there(
    judge: BuiltinJudge, question: str, answer: str, passage: str, other: str
) -> None:
    claim = claim_of(judge, question, answer)
    assert claim == f"{question} {answer}"
    assert [each.label for each in judge.choose([ask_verdict(claim, passage), ask_verdict(claim, other)])] == [
        "yes",
        "no",
    ]


@pytest.mark.parametrize(
    ("question", "reference", "right", "wrong"),
    [
        ("Do you ship to a box?", "No.", "No, we do not ship to boxes.", "Yes, we ship to boxes."),
        ("Do you ship to a box?", "No.", "No.", "Yes."),
        ("Is the label free?", "Yes.", "Yes, it is free.", "No, it is not free."),
        ("How long is the link valid?", "60 minutes.", "60 minutes", "30 minutes"),
    ],
)
def test_a_short_response_states_a_short_reference(
    judge: BuiltinJudge, question: str, reference: str, right: str, wrong: str
) -> None:
    claim = claim_of(judge, question, reference)
    premises = [premise_text(Sample(user_input=question, response=text), BY_RESPONSE) for text in (right, wrong)]
    assert [each.label for each in judge.choose([ask_verdict(claim, text) for text in premises])] == ["yes", "no"]


def test_a_sentence_is_a_claim_without_its_question(judge: BuiltinJudge) -> None:
    assert claim_of(judge, "How long is the link valid?", "The link is valid for 60 minutes.") == (
        "The link is valid for 60 minutes."
    )


def test_a_question_in_a_passage_is_read_with_its_answer(judge: BuiltinJudge) -> None:
    claim = claim_of(judge, "Do you ship to a box?", "No.")
    (answer,) = judge.choose(
        [ask_verdict(claim, "Do you ship abroad? Yes, we do. Do you ship to a box? No, we do not.")]
    )
    assert answer.label == "yes"
