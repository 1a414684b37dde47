"""Estimate the tokens of prompts and replies from their bytes."""

from collections.abc import Mapping

from metric_core.prompts.judge_questions import TEXT, ChoiceQuestion, JudgeQuestion
from metric_core.question_kinds import QuestionKind

BYTES_PER_TOKEN = 4
"""Bytes per token of English text; most other languages have fewer."""

OUTPUT_TOKENS: Mapping[str, int] = {
    QuestionKind.FOLLOW_UP: 30,
    QuestionKind.RELEVANT_SENTENCES: 16,
    QuestionKind.EXPLANATION: 60,
    QuestionKind.RATING_EXPLANATION: 60,
    QuestionKind.KEY_POINT_WRITING: 400,
}
"""Estimated tokens of a generated reply, for kinds whose replies differ little in length."""

_TOKENS_PER_QUESTION = 30
_TOKENS_OF_FEEDBACK = 80


def estimate_tokens(text: str) -> int:
    """Return the estimated number of tokens of a text.

    >>> estimate_tokens("It rains in Dublin.")
    4
    """
    return len(text.encode("utf-8", "replace")) // BYTES_PER_TOKEN


def estimate_output_tokens(question: JudgeQuestion) -> int:
    """Return the estimated number of tokens of the reply to a question, without reasoning.

    >>> from metric_core.prompts.judge_questions import ask_claims, ask_verdict
    >>> estimate_output_tokens(ask_verdict("It rains.", "Rain."))
    1
    >>> estimate_output_tokens(ask_claims("It rains in Dublin.", None))
    12
    """
    if isinstance(question, ChoiceQuestion):
        return question.votes
    if question.kind is QuestionKind.CLAIMS:
        return 8 + estimate_tokens(question.texts[TEXT])
    if question.kind is QuestionKind.QUESTIONS:
        count: int = question.schema["properties"]["questions"]["maxItems"]
        return _TOKENS_PER_QUESTION * count
    return OUTPUT_TOKENS.get(question.kind, _TOKENS_OF_FEEDBACK)
