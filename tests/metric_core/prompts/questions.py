"""One harmless question of every kind, and how to put another text into one of its roles."""

from dataclasses import replace

from metric_core.metrics.graded_rankings import ask_passage_relevance
from metric_core.prompts import judge_questions as q
from metric_core.prompts.judge_questions import (
    ChoiceQuestion,
    GenerateQuestion,
    JudgeQuestion,
    ask_follow_up,
    ask_rating_explanation,
)
from metric_core.prompts.reply_schemas import object_schema
from metric_core.question_kinds import QuestionKind as Kind

USER_INPUT = "How long is the crossing?"
RESPONSE = "The ferry needs 40 minutes."
REFERENCE = "The crossing takes 40 minutes by ferry."
CONTEXT = "The ferry crosses in 40 minutes.\nIt runs every hour."
SAMPLE = {
    "contexts": CONTEXT,
    "user_input": USER_INPUT,
    "response": RESPONSE,
    "reference": REFERENCE,
    "reference_contexts": "The timetable says 40 minutes.",
}
_ANSWERS = {"user_input": USER_INPUT, "response": RESPONSE, "reference": REFERENCE}
_SCORE = object_schema({"feedback": {"type": "string"}, "score": {"enum": [1, 2]}})
_RUBRIC = "score1_description: wrong\nscore2_description: right"

_ASPECT = ChoiceQuestion(Kind.ASPECT, SAMPLE, ("1", "0"), {"definition": "Is it harmful?"})

QUESTIONS: dict[str, JudgeQuestion] = {
    question.kind: question
    for question in (
        ask_follow_up(USER_INPUT, "User: Is there a ferry?\nAssistant: Yes."),
        q.ask_claims(RESPONSE, USER_INPUT),
        q.ask_questions(RESPONSE, 3),
        q.ask_verdict("It takes 40 minutes.", CONTEXT),
        q.ask_usefulness_for_reference(CONTEXT, USER_INPUT, REFERENCE),
        q.ask_usefulness_for_response(CONTEXT, USER_INPUT, RESPONSE),
        q.ask_relevant_sentences(["It takes 40 minutes.", "It is blue."], USER_INPUT),
        q.ask_key_point("It takes 40 minutes.", CONTEXT),
        ChoiceQuestion(Kind.ACCURACY_1, _ANSWERS, ("0", "2", "4")),
        ChoiceQuestion(Kind.ACCURACY_2, _ANSWERS, ("0", "2", "4")),
        ChoiceQuestion(Kind.CONTEXT_RELEVANCE_1, {"contexts": CONTEXT, "user_input": USER_INPUT}, ("0", "1", "2")),
        ChoiceQuestion(Kind.CONTEXT_RELEVANCE_2, {"contexts": CONTEXT, "user_input": USER_INPUT}, ("0", "1", "2")),
        ChoiceQuestion(Kind.GROUNDEDNESS_1, {"contexts": CONTEXT, "response": RESPONSE}, ("0", "1", "2")),
        ChoiceQuestion(Kind.GROUNDEDNESS_2, {"contexts": CONTEXT, "response": RESPONSE}, ("0", "1", "2")),
        ChoiceQuestion(Kind.ASPECT, SAMPLE, ("1", "0"), {"definition": "Is it harmful?"}, votes=3),
        ChoiceQuestion(Kind.CRITERIA_CATEGORY, SAMPLE, ("pass", "fail"), {"criteria": "Is it polite?"}),
        ChoiceQuestion(Kind.CRITERIA_INTEGER, SAMPLE, ("0", "1", "2"), {"criteria": "Clarity."}),
        GenerateQuestion(
            Kind.CRITERIA_NUMBER,
            SAMPLE,
            object_schema({"value": {"type": "number", "minimum": 0, "maximum": 1}}),
            {"criteria": "Clarity."},
        ),
        GenerateQuestion(Kind.RUBRIC, SAMPLE, _SCORE, {"score1_description": "wrong", "score2_description": "right"}),
        GenerateQuestion(Kind.INSTANCE_RUBRIC, {**SAMPLE, "rubric": _RUBRIC}, _SCORE),
        q.ask_refusal(USER_INPUT, RESPONSE),
        ask_passage_relevance(USER_INPUT, CONTEXT),
        ChoiceQuestion(Kind.SUFFICIENCY, {"contexts": CONTEXT, "user_input": USER_INPUT}, q.YES_NO),
        q.ask_explanation("It takes 40 minutes.", CONTEXT, "yes"),
        ask_rating_explanation(_ASPECT, "0"),
        q.ask_key_points(USER_INPUT, [CONTEXT]),
        q.ask_index_question([CONTEXT], "Ask for one fact.", ("question", "answer", "key_points", "evidence")),
    )
}


def with_text(question: JudgeQuestion, role: str, text: str) -> JudgeQuestion:
    """The question with another text in one role."""
    return replace(question, texts={**question.texts, role: text})
