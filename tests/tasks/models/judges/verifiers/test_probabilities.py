"""Probabilities from given logits, as the makers of each model compute them."""

import math

import numpy as np
import pytest

from tasks.models.clients.replica import Reply
from tasks.models.judges.openai.label_probabilities import TokenStep
from tasks.models.judges.verifiers.byte_level import token_offsets
from tasks.models.judges.verifiers.local_engine import softmax
from tasks.models.judges.verifiers.probabilities import (
    IMPOSSIBLE,
    TokenSupport,
    Verdict,
    class_support,
    merge_chunks,
    merge_sentences,
    read_chat,
    span_support,
    token_support,
)
from tasks.options.load_profile import load_profile
from tasks.options.profile import ClassReading, SpanReading, TokenReading
from tasks.runtime.usage import Usage

LOGITS = {"Yes": 3.0, "yes": 1.0, " Yes": 0.5, "No": 2.0, " no": -1.0, "Maybe": 0.0}


def step(logits: dict[str, float], most: int) -> TokenStep:
    """Return the step of a reply with the probabilities of logits."""
    total = sum(map(math.exp, logits.values()))
    ranked = sorted(((text, math.exp(value) / total) for text, value in logits.items()), key=lambda pair: -pair[1])
    return TokenStep(*ranked[0], ranked[:most])


def reading_of(name: str) -> TokenReading:
    reading = load_profile(name).reading
    assert isinstance(reading, TokenReading)
    return reading


def mass(*tokens: str) -> float:
    return sum(math.exp(LOGITS[token]) for token in tokens)


def test_minicheck_adds_up_the_exact_tokens_and_does_not_normalize() -> None:
    probability, _ = token_support([step(LOGITS, 5)], reading_of("minicheck-7b"))

    assert probability == pytest.approx(mass("Yes", "yes") / mass(*LOGITS), abs=1e-12)


def test_a_token_below_the_five_most_probable_does_not_count_for_minicheck() -> None:
    probability, _ = token_support([step(LOGITS, 2)], reading_of("minicheck-7b"))

    assert probability == pytest.approx(mass("Yes") / mass(*LOGITS), abs=1e-12)


def test_a_minicheck_reply_without_yes_and_no_supports_nothing() -> None:
    assert token_support([step({"Maybe": 1.0, "Perhaps": 0.0}, 5)], reading_of("minicheck-7b"))[0] == 0.0


@pytest.mark.parametrize("name", ["granite-guardian-3.3", "granite-guardian-4.1"])
def test_granite_guardian_says_yes_to_an_ungrounded_claim_behind_its_tag(name: str) -> None:
    before = [TokenStep(text, 1.0, [(text, 1.0)]) for text in ("<think>", "\n", "</think>", "\n", "<", "score>", " ")]

    probability, _ = token_support([*before, step(LOGITS, 6)], reading_of(name))

    yes, no = mass("Yes", "yes", " Yes"), mass("No", " no")
    assert probability == pytest.approx(no / (yes + no), abs=1e-12)
    assert token_support(before, reading_of(name))[0] is None


def test_flan_t5_reads_two_tokens_of_its_vocabulary() -> None:
    reading = load_profile("minicheck-ft5").reading
    assert isinstance(reading, ClassReading)
    logits = np.linspace(-3, 3, 300)

    chosen = softmax(logits[list(reading.classes)])

    wanted = math.exp(logits[209]) / (math.exp(logits[3]) + math.exp(logits[209]))
    assert class_support(chosen.tolist(), reading, Usage()).probability == pytest.approx(wanted, abs=1e-12)


def test_numbers_that_are_no_distribution_are_no_verdict() -> None:
    cases: list[object] = [[0.9, 0.9], [float("nan"), 1.0], [-0.5, 1.5], [1.0], "ab", None, [True, False]]
    for probs in cases:
        assert class_support(probs, ClassReading(), Usage()).probability is None, probs


def test_impossible_log_probabilities_are_no_verdict() -> None:
    token = {"token": "Yes", "logprob": 0.4, "top_logprobs": [{"token": "Yes", "logprob": 0.4}]}
    content = {"choices": [{"message": {"content": "Yes"}, "logprobs": {"content": [token]}}]}

    verdict = read_chat(Reply(200, content, 0.1), reading_of("minicheck-7b"), Usage())

    assert verdict.probability is None
    assert (verdict.problem or "").startswith(IMPOSSIBLE)


def test_tokens_are_as_supported_as_by_the_part_that_supports_them_most() -> None:
    parts = [
        span_support([[0.9, 0.1], [0.2, 0.8]], [(0, 2), (2, 4)], SpanReading(), Usage(requests=1)),
        span_support([[0.3, 0.7], [0.6, 0.4]], [(0, 2), (2, 4)], SpanReading(), Usage(requests=1)),
    ]

    merged = merge_chunks(parts)

    assert merged.tokens == (TokenSupport(0, 2, 0.1), TokenSupport(2, 4, 0.4))
    assert merged.probability == pytest.approx(0.6)
    assert merged.usage.requests == 2


def test_a_part_without_a_verdict_fails_the_claim() -> None:
    unread = Verdict(None, problem="no reply", reply="...")

    assert merge_chunks([Verdict(0.9), unread]).problem == "no reply"
    assert merge_sentences([Verdict(0.9), unread]).problem == "no reply"


@pytest.mark.parametrize(
    ("text", "tokens", "offsets"),
    [
        ("the\u00e9 au", ["the", "\u00c3\u00a9", "\u0120au"], [(0, 3), (3, 4), (4, 7)]),
        ("\U0001f327", ["\u00f0\u0141", "\u012e", "\u00a7"], [(0, 1), (0, 1), (0, 1)]),
        ("a    b", ["a", "    ", "b"], [(0, 1), (1, 5), (5, 6)]),
        ("ab", ["a"], None),
        ("ab", ["a", "c"], None),
    ],
)
def test_byte_level_tokens_have_places(text: str, tokens: list[str], offsets: list[tuple[int, int]] | None) -> None:
    assert token_offsets(text, tokens) == offsets
