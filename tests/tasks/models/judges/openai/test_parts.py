"""Tests of helpers: routing, backoff, token limits, context window, background thread."""

import threading
from collections import Counter
from datetime import UTC, datetime

import pytest

from metric_core.prompts.judge_questions import ask_verdict
from tasks.models.clients.backoff import LONGEST, LONGEST_ASKED_FOR, backoff_seconds, retry_after_seconds
from tasks.models.clients.event_loop import EventLoopThread
from tasks.models.clients.lane import choose_replica
from tasks.models.clients.replica import Reply
from tasks.models.judges.openai.context_window import is_overflow, remaining_tokens
from tasks.models.judges.openai.request_body import max_label_tokens, serialize_labels
from tasks.models.judges.openai.server_features import ChoiceConstraint

NAMES = [f"http://host{i}/v1" for i in range(4)]
KEYS = [ask_verdict("c", f"context {i}").texts["context"] for i in range(400)]


def test_prefixes_are_spread_over_the_replicas() -> None:
    shares = Counter(choose_replica(key, NAMES) for key in KEYS)
    assert len(shares) == 4
    assert min(shares.values()) > 60


def test_losing_a_replica_moves_only_its_prefixes() -> None:
    before = [NAMES[choose_replica(key, NAMES)] for key in KEYS]
    after = [NAMES[choose_replica(key, NAMES[:3])] for key in KEYS]
    assert all(new == old for old, new in zip(before, after, strict=True) if old != NAMES[3])


def test_pauses_grow_to_a_limit() -> None:
    pauses = [backoff_seconds(attempt, None, 1.0) for attempt in range(1, 12)]
    assert pauses == sorted(pauses)
    assert pauses[-1] == LONGEST
    assert backoff_seconds(5, 60.0, 0.0) == 60.0
    assert backoff_seconds(1, 1e9, 0.0) == LONGEST_ASKED_FOR


def test_retry_after() -> None:
    cases: list[tuple[str | None, float | None]] = [
        (None, None),
        ("12", 12.0),
        ("0.5", 0.5),
        ("Mon, 05 Jan 2026 12:00:20 +99999999999999999999", None),
        ("-1", None),
        ("", None),
        ("Mon, 05 Jan 2026 12:00:20 GMT", 20.0),
        ("Mon, 05 Jan 2026 11:00:00 -0000", 0.0),
    ]
    for header, seconds in cases:
        assert retry_after_seconds(header, datetime(2026, 1, 5, 12, 0, 0, tzinfo=UTC)) == seconds, (header, seconds)


@pytest.mark.parametrize(
    ("labels", "tokens"),
    [(("yes", "no"), 1), (("0", "2", "4"), 1), (("1", "10"), 3), (("good", "great"), 6), (("ü", "o"), 7)],
)
def test_tokens_of_an_enforced_label(labels: tuple[str, ...], tokens: int) -> None:
    assert max_label_tokens(labels, ChoiceConstraint.STRUCTURED_OUTPUTS) == tokens


def test_tokens_of_other_labels_include_the_text_around_them() -> None:
    assert max_label_tokens(("yes", "no"), ChoiceConstraint.NONE) > 3
    assert max_label_tokens(("yes", "no"), ChoiceConstraint.JSON_SCHEMA) >= len('{ "answer": "yes" }')
    assert serialize_labels(('say "hi"',), ChoiceConstraint.JSON_SCHEMA) == {'say "hi"': 'say \\"hi\\""'}


def test_messages_about_long_prompts_are_recognized() -> None:
    for message in [
        "This model's maximum context length is 4097 tokens. However, your messages resulted in 6988 tokens.",
        "'max_tokens' is too large: 100. This model's maximum context length is 2048 tokens, your request has 2000",
        "The decoder prompt (length 3012) is longer than the maximum model length of 2048.",
        "the request exceeds the available context size, try increasing it",
        "The input (5021 tokens) is longer than the model's context length (2048 tokens).",
        "prompt is too long: 213462 tokens > 200000 maximum",
        "The input token count (2000000) exceeds the maximum number of tokens allowed (1048576).",
        "Input validation error: `inputs` must have less than 1024 tokens. Given: 5021",
        "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 4000 tokens and 2048",
    ]:
        assert is_overflow(message), message


def test_other_messages_are_not_overflows() -> None:
    assert not is_overflow("The model `x` does not exist.")


def test_remaining_tokens() -> None:
    assert remaining_tokens(100, 2048, 4096) == 2048
    assert remaining_tokens(4096, 1, 4096) is None


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"error": {"message": "a"}}, "a"),
        ({"error": "a"}, "a"),
        ({"message": "a", "code": 400}, "a"),
        ({"detail": [{"msg": "a"}]}, "[{'msg': 'a'}]"),
        ("<html>\n a", "<html> a"),
        (None, "None"),
    ],
)
def test_messages_of_a_server(content: object, message: str) -> None:
    assert Reply(400, content, 0.1).message == message


def test_the_background_thread_does_not_wait_for_itself() -> None:
    background = EventLoopThread("test")

    async def nothing() -> None:
        return None

    async def within() -> str:
        try:
            background.run(nothing())
        except RuntimeError as error:
            return str(error)
        return "waited"

    assert "own thread" in background.run(within())
    background.close()
    background.close()
    with pytest.raises(RuntimeError, match="closed"):
        background.run(nothing())


def test_the_background_thread_may_be_the_one_that_closes_it() -> None:
    """The garbage collector may close a connection there."""
    background = EventLoopThread("closed from within")
    ended: list[str] = []

    async def end() -> None:
        ended.append(threading.current_thread().name)

    async def within() -> None:
        background.close(end())

    background.run(within())
    for thread in threading.enumerate():
        if thread.name == "closed from within":
            thread.join()
    assert ended == ["closed from within"]
    with pytest.raises(RuntimeError, match="closed"):
        background.run(end())
