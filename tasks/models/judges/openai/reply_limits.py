"""Limit what a judge may write by what it reads, and recognize replies without end.

A weak model can repeat itself until its token limit, question after question. A token has at least one byte, so a limit
of one token per byte leaves room for claims several times as long as their text: English has four bytes per token. A
reply that is cut off at this limit and does not repeat itself gets one more request with the full limit.

The list of claims is limited in the schema too. The length of each claim is not: with the grammar of vLLM 0.32
(xgrammar) `maxItems` costs nothing; `maxLength` costs a second for each new length, and ten times as much per token.
"""

import re
from collections.abc import Mapping
from typing import Any

from metric_core.prompts.judge_questions import LISTS, RESPONSE, TEXT, GenerateQuestion
from metric_core.prompts.reply_schemas import MOST_KEY_POINTS
from metric_core.question_kinds import QuestionKind
from tasks.models.judges.openai.server_features import ServerFeatures
from tasks.options.judge_server_options import ServerJudgeOptions

TOKENS_PER_BYTE = 1.0
"""Number of tokens of claims and regenerated questions per byte of their text."""

FRAME_TOKENS = 128
"""Tokens for the JSON around short texts, with line breaks and indentation."""

_TOKENS_PER_NUMBER = 6
_TOKENS_PER_KEY_POINT = 64
_SHORT_TOKENS = 512
_SHORT = (QuestionKind.FOLLOW_UP, QuestionKind.EXPLANATION, QuestionKind.RATING_EXPLANATION)
_FEEDBACK_TOKENS = 1024
_MOST_TOKENS_PER_QUESTION = 256
_TAIL = 40
_REPEATS = 3
_STRING = re.compile(r'"((?:[^"\\]|\\.)*)"(\s*:)?')


def max_reply_tokens(question: GenerateQuestion, features: ServerFeatures, options: ServerJudgeOptions) -> int:
    """Return the token limit of a JSON reply: in proportion to the texts, at most `max_output_tokens`.

    Args:
        features: Features of the server. A model that reasons before it answers gets the full limit.
    """
    most = options.max_output_tokens
    if options.thinking or features.reasons:
        return most
    if question.kind is QuestionKind.CLAIMS:
        return min(most, FRAME_TOKENS + int(TOKENS_PER_BYTE * _bytes(question.texts[TEXT])))
    if question.kind is QuestionKind.QUESTIONS:
        each = min(
            _MOST_TOKENS_PER_QUESTION, FRAME_TOKENS // 2 + int(TOKENS_PER_BYTE * _bytes(question.texts[RESPONSE]))
        )
        count = _list_limit(question.schema, "questions")
        return most if count is None else min(most, FRAME_TOKENS + each * count)
    if question.kind is QuestionKind.KEY_POINT_WRITING:
        return min(most, FRAME_TOKENS + _TOKENS_PER_KEY_POINT * MOST_KEY_POINTS)
    if question.kind is QuestionKind.RELEVANT_SENTENCES:
        count = _list_limit(question.schema, "relevant")
        return most if count is None else min(most, FRAME_TOKENS + _TOKENS_PER_NUMBER * count)
    return min(most, _SHORT_TOKENS if question.kind in _SHORT else _FEEDBACK_TOKENS)


def fills_its_list(question: GenerateQuestion, value: Any) -> bool:
    """Return whether a reply has as many items as it may have, although no text has so many.

    Args:
        value: Answer to the question.
    """
    name = LISTS.get(question.kind)
    limit = None if name is None else _list_limit(question.schema, name)
    return limit is not None and len(value[name]) >= limit


def repeats_itself(text: str) -> bool:
    """Return whether a reply that was cut off was repeating itself: its end, or one of its items, occurs three times.

    >>> repeats_itself('{"claims": ["It rains in Paris.", "It rains in Paris.", "It rains in Paris.", "It ra')
    True
    >>> repeats_itself('{"claims": ["Ada plays chess.", "Bo plays chess.", "Cy plays chess.", "Di plays')
    False
    """
    items = [string.casefold() for string, is_name in _STRING.findall(text) if not is_name]
    if any(items.count(item) >= _REPEATS for item in {*items} if item):
        return True
    end = text.strip()
    tail = end[-_TAIL:]
    return len(tail) == _TAIL and end.count(tail) >= _REPEATS


def _list_limit(schema: Mapping[str, Any], name: str) -> int | None:
    limit: int | None = schema["properties"][name].get("maxItems")
    return limit


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "replace"))
