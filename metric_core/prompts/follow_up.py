"""Ask the judge for a question that can be understood without what was said before it."""

from metric_core.columns import EARLIER_TURNS
from metric_core.prompts.judge_questions import USER_INPUT, GenerateQuestion
from metric_core.prompts.reply_schemas import object_schema
from metric_core.question_kinds import QuestionKind

FOLLOW_UP_SCHEMA = object_schema({"question": {"type": "string"}})


def ask_follow_up(user_input: str, earlier_turns: str) -> GenerateQuestion:
    """Ask for a user question in words that can be understood without what was said before it.

    Reply: `{"question": str}`.
    """
    texts = {EARLIER_TURNS: earlier_turns, USER_INPUT: user_input}
    return GenerateQuestion(QuestionKind.FOLLOW_UP, texts, FOLLOW_UP_SCHEMA)
