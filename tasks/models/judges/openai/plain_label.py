"""Parse the usual reply to a choice question: one label, one token, and the log-probabilities in its place.

Most replies of a run have this form, and reading it directly takes a fourth of the time. Every other reply is left to
the parser that knows all forms; both give the same answer wherever this one gives one.
"""

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from metric_core.prompts.reasoning import split_thought
from metric_core.records import AnswerStatus
from tasks.models.clients.replica import Reply, usage_of
from tasks.models.judges.openai.completion import check_distribution
from tasks.models.judges.openai.label_probabilities import decide_label, single_token_probabilities
from tasks.models.judges.openai.server_features import ChoiceConstraint, ServerFeatures
from tasks.models.judges.protocol import ChoiceAnswer

_ENFORCED = (ChoiceConstraint.STRUCTURED_OUTPUTS, ChoiceConstraint.GUIDED_CHOICE, ChoiceConstraint.GRAMMAR)
_OTHER_TEXTS = ("refusal", "reasoning", "reasoning_content")
"""Parts of a message beside its text."""


def parse_plain_label(reply: Reply, labels: Sequence[str], features: ServerFeatures) -> ChoiceAnswer | None:
    """Parse the reply to a choice question with one vote; None if it does not have the usual form.

    Args:
        features: Features of the server, which determine how it was asked.
    """
    choice = _only_choice(reply, features)
    text = None if choice is None else _text(choice)
    if choice is None or text is None or text not in labels or not _is_plain(text):
        return None
    probabilities = None
    if logprobs := choice.get("logprobs"):
        token = _only_token(logprobs)
        found = None if token is None else single_token_probabilities(*token, tuple(labels))
        if found is None:
            return None
        probabilities = found.by_label
    return ChoiceAnswer(
        AnswerStatus.ANSWERED,
        (decide_label(text, probabilities),),
        probabilities,
        reply=text,
        usage=usage_of(reply, features.cached_tokens),
    )


def _only_choice(reply: Reply, features: ServerFeatures) -> dict[str, Any] | None:
    """Return the choice in a reply of the right model that has one; None otherwise."""
    content = reply.content
    if reply.status != 200 or type(content) is not dict or features.choice not in _ENFORCED:
        return None
    name, choices = content.get("model"), content.get("choices")
    is_right = not name or name == features.model or name in features.reply_models
    if is_right and type(choices) is list and len(choices) == 1 and type(choices[0]) is dict:
        return choices[0]
    return None


def _text(choice: Mapping[str, object]) -> str | None:
    """Return the text of a message that has nothing else."""
    message = choice.get("message")
    if type(message) is not dict:
        return None
    for name in _OTHER_TEXTS:
        if message.get(name):
            return None
    text = message.get("content")
    return text if type(text) is str else None


@lru_cache(maxsize=256)
def _is_plain(label: str) -> bool:
    """Return whether a label as a reply is read as it is: no white space around it, no marks of reasoning in it."""
    try:
        return label == label.strip() and split_thought(label) == (None, label)
    except ValueError:
        return False


def _only_token(logprobs: Any) -> tuple[tuple[str, float], list[tuple[str, float]]] | None:
    """Return the token of a reply and the top tokens in its place, with probabilities; None for any other reply."""
    tokens = logprobs.get("content") if type(logprobs) is dict else None
    if type(tokens) is not list or len(tokens) != 1:
        return None
    try:
        (written,) = _parse(tokens)
        top = _parse(tokens[0].get("top_logprobs") or ())
    except (AttributeError, KeyError, TypeError, ValueError):
        return None
    return (written, top) if check_distribution([probability for _, probability in top]) is None else None


def _parse(tokens: Sequence[Mapping[str, object]]) -> list[tuple[str, float]]:
    """Return tokens with their probabilities.

    Raises:
        ValueError: A field is not what it usually is.
    """
    parsed = []
    for token in tokens:
        text, logprob = token["token"], token["logprob"]
        if type(text) is not str or type(logprob) is not float or not logprob <= 0.0:
            raise ValueError("not the usual token")
        parsed.append((text, math.exp(logprob)))
    return parsed
