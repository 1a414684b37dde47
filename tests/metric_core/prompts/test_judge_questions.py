"""Questions are told apart by all that a prompt or a reply follows from."""

import hashlib
import json
from dataclasses import fields, replace

from metric_core.prompts.judge_questions import (
    ChoiceQuestion,
    GenerateQuestion,
    JudgeQuestion,
    ask_explanation,
    ask_verdict,
    question_digest,
)
from metric_core.prompts.reply_schemas import object_schema
from metric_core.question_kinds import QuestionKind
from tests.metric_core.prompts.questions import QUESTIONS

ASKED = GenerateQuestion(
    QuestionKind.CRITERIA_NUMBER,
    {"response": "So."},
    {"properties": {"why": {"type": "string"}, "value": {"type": "number"}}},
    {"name": "clarity", "definition": "How clear is it?"},
)


def test_what_differs_has_another_digest() -> None:
    cases: list[JudgeQuestion] = [
        replace(ASKED, kind=QuestionKind.CRITERIA_INTEGER),
        replace(ASKED, texts={"response": "So. "}),
        replace(ASKED, texts={"reference": "So."}),
        replace(ASKED, schema={"properties": dict(reversed(list(ASKED.schema["properties"].items())))}),
        replace(ASKED, schema=object_schema(ASKED.schema["properties"])),
        replace(ASKED, instructions=dict(reversed(list(ASKED.instructions.items())))),
        ask_explanation("It rains.", "Rain.", "yes"),
    ]
    for other in cases:
        assert question_digest(other) != question_digest(ASKED), other
        assert question_digest(replace(other)) == question_digest(other), other


def test_votes_and_labels_belong_to_a_choice() -> None:
    asked = ask_verdict("It rains.", "Rain.")
    others = [replace(asked, votes=3), replace(asked, labels=("no", "yes")), asked]
    assert len({question_digest(question) for question in others}) == 3


def test_the_digest_is_that_of_the_question_as_json() -> None:
    cases: list[JudgeQuestion] = [
        *QUESTIONS.values(),
        ask_verdict("half a pair \ud83d", 'a "premise"\n\u2028\x00 of many lines'),
        ChoiceQuestion(QuestionKind.ASPECT, {}, ("a", "\u00e9"), {"definition": "Is it?\n"}, votes=3),
    ]
    for question in cases:
        parts = [part.name for part in fields(question) if part.name != "about"]  # says what the verdict is used for
        content = json.dumps({name: getattr(question, name) for name in parts}, ensure_ascii=False)
        assert question_digest(question) == hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest(), (
            question
        )
