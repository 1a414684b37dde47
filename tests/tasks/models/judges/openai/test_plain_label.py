"""The usual reply to a choice question is read quickly, to the same answer as by the parser of all replies."""

import json
import math
from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from metric_core.records import AnswerStatus
from tasks.models.clients.replica import Reply
from tasks.models.judges.openai import reply_parsing
from tasks.models.judges.openai.plain_label import parse_plain_label
from tasks.models.judges.openai.reply_parsing import parse_choice_answer
from tasks.models.judges.openai.server_features import ChoiceConstraint, ServerFeatures
from tasks.models.judges.protocol import ChoiceAnswer

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
    assert (answer.usage.requests, answer.usage.prompt_tokens, answer.usage.unreported_tokens) == (1, 9, 9)


def reply_of(written: str, top: dict[str, float], content: str | None = None, before: tuple[str, ...] = ()) -> Reply:
    """Return a reply whose last token has these alternatives."""
    ranked = [{"token": token, "logprob": math.log(p)} for token, p in top.items()]
    steps = [{"token": token, "logprob": 0.0, "top_logprobs": [{"token": token, "logprob": 0.0}]} for token in before]
    last = {"token": written, "logprob": math.log(top[written]), "top_logprobs": ranked}
    choice = {"message": {"content": content or written}, "logprobs": {"content": [*steps, last]}}
    return Reply(200, {"model": "judge", "choices": [choice], "usage": {}}, 0.5)


SPELLINGS = {"yes": 0.39, "No": 0.31, "no": 0.3}
SAMPLED = {"yes": 0.39, "no": 0.61}
GRADES = {"2": 0.3, "1": 0.25, " 1": 0.25, "0": 0.2}


def test_the_label_is_the_most_probable_one() -> None:
    cases: list[tuple[Reply, tuple[str, ...], ChoiceConstraint, str, float]] = [
        (reply_of("yes", SPELLINGS), ("yes", "no"), ChoiceConstraint.STRUCTURED_OUTPUTS, "no", 0.61),
        (reply_of("yes", SAMPLED), ("yes", "no"), ChoiceConstraint.GUIDED_CHOICE, "no", 0.61),
        (reply_of("yes", SPELLINGS), ("yes", "no"), ChoiceConstraint.NONE, "no", 0.61),
        (reply_of("yes", SPELLINGS, " yes"), ("yes", "no"), ChoiceConstraint.STRUCTURED_OUTPUTS, "no", 0.61),
        (reply_of("2", GRADES), ("0", "1", "2"), ChoiceConstraint.STRUCTURED_OUTPUTS, "1", 0.5),
        (
            reply_of("2", {"2": 0.4, "1": 0.6}, "score2", ("score",)),
            ("score1", "score2"),
            ChoiceConstraint.STRUCTURED_OUTPUTS,
            "score1",
            0.6,
        ),
        (
            reply_of("yes", SAMPLED, '{"answer": "yes"}', ('{"', "answer", '": "')),
            ("yes", "no"),
            ChoiceConstraint.JSON_SCHEMA,
            "no",
            0.61,
        ),
    ]
    for reply, labels, constraint, label, probability in cases:
        answer = parse_choice_answer([reply], labels, 1, replace(FEATURES, choice=constraint))
        assert answer.votes == (label,), (reply, labels, constraint)
        assert answer.probabilities is not None, (reply, labels, constraint)
        assert answer.probabilities[label] == pytest.approx(probability), (reply, labels, constraint)
        assert answer.reply == reply.content["choices"][0]["message"]["content"], (reply, labels, constraint)


def test_the_written_label_counts_where_probabilities_are_unknown_or_no_other_is_more_probable() -> None:
    cut = reply_of("yes", {"yes": 0.39, "The": 0.3})
    tied = reply_of("yes", {"no": 0.5, "yes": 0.5})
    thought = reply_of("yes", SAMPLED, "<think>Is it so?</think>yes")
    for reply in (cut, tied, thought):
        assert parse_choice_answer([reply], ("yes", "no"), 1, FEATURES).votes == ("yes",)


def test_several_votes_are_samples() -> None:
    replies = [reply_of("yes", SAMPLED), reply_of("no", SAMPLED)]
    answer = parse_choice_answer(replies, ("yes", "no"), 2, FEATURES)
    assert answer.votes == ("yes", "no")


def test_no_single_vote_contradicts_its_probabilities() -> None:
    random = Random(12)
    compared = 0
    for _ in range(3000):
        labels = random.choice(LABELS)
        features = replace(FEATURES, choice=random.choice(list(ChoiceConstraint)))
        answer = parse_choice_answer([make_reply(random, labels)], labels, 1, features)
        if answer.probabilities is not None and answer.label is not None:
            compared += 1
            assert answer.probabilities[answer.label] == max(answer.probabilities.values())
    assert compared > 100
