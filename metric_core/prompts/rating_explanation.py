"""Ask the judge why it rated as it did."""

from metric_core.prompts.judge_questions import ChoiceQuestion, CustomKind, GenerateQuestion, JudgeQuestion
from metric_core.prompts.reply_schemas import EXPLANATION_SCHEMA
from metric_core.question_kinds import QuestionKind

_SUBJECTS: dict[str, str] = {
    QuestionKind.ACCURACY_1: "how well the response agrees with the reference, which is correct",
    QuestionKind.ACCURACY_2: "how well the response agrees with the reference, which is correct",
    QuestionKind.CONTEXT_RELEVANCE_1: "how relevant the context is to the question",
    QuestionKind.CONTEXT_RELEVANCE_2: "how relevant the context is to the question",
    QuestionKind.GROUNDEDNESS_1: "how well the response is grounded in the context",
    QuestionKind.GROUNDEDNESS_2: "how well the response is grounded in the context",
    QuestionKind.REFUSAL: "whether the response declines to answer the question",
    QuestionKind.PASSAGE_RELEVANCE: "how well the context answers the question",
}
"""Subjects of the ratings whose prompt alone says what is rated."""


def ask_rating_explanation(question: JudgeQuestion, value: str) -> GenerateQuestion:
    """Ask for an explanation of the answer to a rating question.

    Reply: `{"explanation": str}`.

    Args:
        value: Its answer, a label or a number.

    >>> from metric_core.prompts.judge_questions import RESPONSE
    >>> asked = ChoiceQuestion(QuestionKind.ASPECT, {RESPONSE: "Hi!"}, ("1", "0"), {"definition": "Is it polite?"})
    >>> ask_rating_explanation(asked, "1").instructions
    {'definition': 'Is it polite?', 'allowed answers': '1, 0', 'answer': '1'}
    """
    instructions = dict(question.instructions)
    subject = _SUBJECTS.get(question.kind)
    if isinstance(question.kind, CustomKind):
        lines = (line for line in question.kind.prompt.splitlines() if not line.startswith("{"))
        subject = " ".join(" ".join(lines).replace("{answer}", "").replace("{instructions}", "").split())
    if subject:
        instructions["question"] = subject
    if isinstance(question, ChoiceQuestion):
        instructions["allowed answers"] = ", ".join(question.labels)
    instructions["answer"] = value
    return GenerateQuestion(QuestionKind.RATING_EXPLANATION, question.texts, EXPLANATION_SCHEMA, instructions)
