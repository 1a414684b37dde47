"""The usual reply to a choice question is read quickly, to the same answer as by the parser of all replies."""

import json
import math
from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from metric_core.records import AnswerStatus
from tasks.judges.openai import reply_parsing
from tasks.judges.openai.plain_label import parse_plain_label
from tasks.judges.openai.reply_parsing import parse_choice_answer
from tasks.judges.openai.server_features import ChoiceConstraint, ServerFeatures
from tasks.judges.protocol import ChoiceAnswer
from tasks.model_clients.replica import Reply

FEATURES = ServerFeatures("judge", reply_models=("alias",), choice=ChoiceConstraint.STRUCTURED_OUTPUTS, top_logprobs=20)
LABELS = (("yes", "no"), ("0", "1", "2"), ("score1", "score10", "score2"), ("Yes", "yes"), ("one",))
TOKENS = ("yes", "no", " Yes", "y", "n", "The", "score", "score1", "0", "1", "", " ", "Yes", "\ufffd", "one")


def generally(
    reply: Reply, labels: tuple[str, ...], features: ServerFeatures, patch: pytest.MonkeyPatch
) -> ChoiceAnswer:
    with patch.context() as context:
        context.setattr(reply_parsing, "parse_plain_label", lambda *_: None)
        return parse_choice_answer([reply], labels, 1, features)


def make_reply(random: Random, labels: tuple[str, ...]) -> Reply:
    """Return a reply, mostly of the usual form, with up to two of the things that replies may have beside it."""
    written = random.choice(labels) if random.random() < 0.9 else random.choice(TOKENS)
    size = random.randrange(1, 9)
    weights = [random.random() ** 4 + 1e-12 for _ in range(size)]
    tokens = [written, *random.choices([*labels, *TOKENS], k=size - 1)]
    top = [
        {"token": token, "logprob": math.log(weight / sum(weights)), "bytes": None}
        for token, weight in zip(tokens, weights, strict=True)
    ]
    random.shuffle(top)
    step: dict[str, Any] = {"token": written, "logprob": math.log(weights[0] / sum(weights)), "top_logprobs": top}
    message: dict[str, Any] = {"role": "assistant", "content": written, "refusal": None}
    choice = {"index": 0, "message": message, "logprobs": {"content": [step]}, "finish_reason": "stop"}
    usage = {"prompt_tokens": 40, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 16}}
    content: dict[str, Any] = {"model": "judge", "choices": [choice], "usage": usage}
    changes: tuple[Callable[[], Any], ...] = (
        lambda: choice.update(logprobs=None),
        lambda: choice.update(finish_reason="length"),
        lambda: choice["logprobs"] and choice["logprobs"]["content"].append(step),  # type: ignore[index]
        lambda: step.update(logprob=0.5),
        lambda: step.update(top_logprobs=[{**one, "logprob": -0.1} for one in top]),
        lambda: step.update(top_logprobs=[*top, {"token": "no"}]),
        lambda: step.update(top_logprobs=None),
        lambda: message.update(reasoning_content="hm"),
        lambda: message.update(refusal="I must not."),
        lambda: message.update(content=f" {written}"),
        lambda: message.update(content=[{"type": "text", "text": written}]),
        lambda: message.update(content=f"<think>a</think>{written}"),
        lambda: content.update(model=random.choice(["alias", "other", "", 7])),
        lambda: content.update(usage=random.choice([None, {"prompt_tokens": -1, "completion_tokens": "3"}])),
        lambda: content.update(choices=[choice, choice]),
        lambda: content.update(choices=[]),
    )
    for change in random.choices(changes, k=random.choice([0, 0, 1, 2])):
        change()
    status = 200 if random.random() < 0.98 else 400
    return Reply(status, json.loads(json.dumps(content)), 0.5, conversations=random.choice([1, 4]))


def test_the_answers_are_those_of_the_general_parser(monkeypatch: pytest.MonkeyPatch) -> None:
    random = Random(11)
    quick = 0
    for _ in range(6000):
        labels = random.choice(LABELS)
        features = replace(FEATURES, choice=random.choice(list(ChoiceConstraint)), cached_tokens=random.random() < 0.5)
        reply = make_reply(random, labels)
        expected = generally(reply, labels, features, monkeypatch)
        answer = parse_plain_label(reply, labels, features)
        quick += answer is not None
        assert answer is None or answer == expected, reply
        assert parse_choice_answer([reply], labels, 1, features) == expected
    assert quick > 500


def test_the_usual_reply_is_read_quickly() -> None:
    top = [{"token": token, "logprob": math.log(weight)} for token, weight in (("yes", 0.75), (" No", 0.25))]
    choice = {"message": {"content": "yes"}, "logprobs": {"content": [{**top[0], "top_logprobs": top}]}}
    usage = {"prompt_tokens": 9, "completion_tokens": 1}
    reply = Reply(200, {"model": "alias", "choices": [choice], "usage": usage}, 0.5)
    answer = parse_plain_label(reply, ("yes", "no"), FEATURES)
    assert answer is not None
    assert (answer.status, answer.votes) == (AnswerStatus.ANSWERED, ("yes",))
    assert answer.probabilities == pytest.approx({"yes": 0.75, "no": 0.25})
    assert (answer.usage.requests, answer.usage.prompt_tokens, answer.usage.untold_tokens) == (1, 9, 9)
