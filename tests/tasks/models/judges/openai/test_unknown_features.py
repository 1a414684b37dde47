"""A probe that gets an error, or a reply that nobody can read, is not learnt from: the next run probes again."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from metric_core.errors import JudgeError
from metric_core.prompts.judge_questions import ask_verdict
from tasks.cache.answer_cache import AnswerCache
from tasks.models.clients.observed_model import NOT_READ
from tasks.models.judges.openai.model_probe import SYSTEM
from tasks.models.judges.openai.openai_judge import OpenAIJudge
from tasks.models.judges.openai.server_features import ChoiceConstraint, ServerFeatures
from tasks.options.judge_server_options import ServerJudgeOptions
from tests.tasks.models.judges.openai.conftest import OpenJudge, Serve
from tests.tasks.models.judges.openai.fake_server import BATCHES, FULL, PLAIN, FakeServer
from tests.tasks.models.judges.openai.test_served_model import GRADED, MODEL, memory_of

VERDICT = ask_verdict("It rains.", "Rain.")

Open = Callable[[FakeServer], OpenAIJudge]
Fails = Callable[[str, dict[str, Any]], bool]


@pytest.fixture
def cache(tmp_path: Path) -> AnswerCache:
    return AnswerCache(f"sqlite:///{tmp_path / 'answers.db'}")


@pytest.fixture
def open_remembering(cache: AnswerCache, open_judge: OpenJudge) -> Open:
    """Return a function that opens a judge that remembers the servers it has seen."""
    del open_judge  # shortens pauses

    def open_one(server: FakeServer) -> OpenAIJudge:
        options = ServerJudgeOptions(urls=(server.url,), max_retries=0, max_output_tokens=512)
        return OpenAIJudge(options, memory_of(cache))

    return open_one


def has(name: str) -> Fails:
    return lambda _path, body: name in body


def ends_with(end: str) -> Fails:
    return lambda path, _body: path.endswith(end)


CASES: dict[str, Fails] = {
    "thinking_switch": has("chat_template_kwargs"),
    "choice": has("structured_outputs"),
    "list_limits": lambda _path, body: "minItems" in str(body.get("response_format")),
    "json": has("response_format"),
    "top_logprobs": has("top_logprobs"),
    "several": has("n"),
    "seed": has("seed"),
    "request format": lambda _path, body: "messages" in body and body["messages"][0]["role"] == "system",
    "tokenizer": ends_with("/tokenize"),
    "prompt_lists": ends_with("/v1/completions"),
    "batches": ends_with("/batch"),
    "version": ends_with("/version"),
}


@pytest.mark.parametrize(
    ("feature", "status"),
    # A server that gives 503 to the simplest request is not available.
    [*((feature, 500) for feature in CASES), *((feature, 503) for feature in CASES if feature != "request format")],
)
def test_a_feature_behind_an_error_is_probed_again(
    serve: Serve, open_remembering: Open, feature: str, status: int
) -> None:
    server = serve(BATCHES)
    server.fails = lambda path, body: status if CASES[feature](path, body) else None
    first = open_remembering(server)
    assert feature in first.features.unknown
    (warning,) = [each for each in first.warnings if "could not be probed" in each]
    assert feature in warning
    assert str(status) in warning
    server.fails = lambda _path, _body: None
    second = open_remembering(server)
    assert second.features == open_remembering(serve(BATCHES)).features
    assert second.features.unknown == {}
    assert second.warnings == ()


@pytest.mark.parametrize("status", [400, 404, 422, 501])
def test_a_refusal_is_remembered(serve: Serve, open_remembering: Open, status: int) -> None:
    server = serve(FULL)
    server.fails = lambda path, body: status if "structured_outputs" in body or path.endswith("/tokenize") else None
    first = open_remembering(server)
    server.bodies.clear()
    second = open_remembering(server)
    assert (first.features.choice, first.features.tokenizer) == (ChoiceConstraint.JSON_SCHEMA, False)
    assert (second.features, second.features.unknown, len(server.bodies)) == (first.features, {}, 7)


def in_reasoning(reply: dict[str, Any]) -> dict[str, Any]:
    """Return the reply of a server with a wrong parser of reasoning, which finds no answer behind it."""
    for choice in reply["choices"]:
        choice["message"] = {"content": None, "reasoning_content": choice["message"]["content"]}
    return reply


def test_replies_without_words_identify_nobody(serve: Serve, open_remembering: Open, cache: AnswerCache) -> None:
    server = serve(FULL)
    server.shape = in_reasoning
    first, second = open_remembering(server), open_remembering(server)
    assert memory_of(cache).recall("judge", "judge-model") == []
    assert first.fingerprint(VERDICT.kind) != second.fingerprint(VERDICT.kind)
    assert any("replies that cannot be read" in warning for warning in first.warnings)
    server.shape = lambda reply: reply
    repaired = open_remembering(server)
    assert repaired.features == open_remembering(serve(FULL)).features
    assert repaired.choose([VERDICT])[0].label == "yes"


def test_a_server_that_breaks_for_a_night_is_the_same_afterwards(serve: Serve, open_remembering: Open) -> None:
    server = serve(FULL)
    before = open_remembering(server)
    server.shape = in_reasoning
    open_remembering(server)
    server.shape = lambda reply: reply
    after = open_remembering(server)
    assert (after.features, after.recognized.token) == (before.features, before.recognized.token)
    assert after.warnings == ()


def test_one_question_without_a_reply_does_not_make_another_model(
    serve: Serve, open_remembering: Open, cache: AnswerCache
) -> None:
    server = serve(PLAIN)
    known = open_remembering(server)
    (remembered,) = memory_of(cache).recall("judge", "judge-model")
    server.fails = lambda _path, body: 500 if SYSTEM in str(body) and "Choose a color" in str(body) else None
    judge = open_remembering(server)
    assert judge.recognized.token == known.recognized.token
    assert memory_of(cache).recall("judge", "judge-model") == [remembered]


def test_an_error_of_a_moment_is_asked_past(serve: Serve, open_judge: OpenJudge) -> None:
    server = serve(FULL)
    failed: list[str] = []

    def fail_once(path: str, body: dict[str, Any]) -> int | None:
        if str(body) in failed or path == "/v1/models":
            return None
        failed.append(str(body))
        return 500

    server.fails = fail_once
    judge = open_judge(server)
    assert len(failed) > 20
    assert judge.features == replace(open_judge(serve(FULL)).features, unknown=judge.features.unknown)
    assert set(judge.features.unknown) <= {"version"}


def test_a_model_that_thinks_first_is_probed_with_room_to_think(serve: Serve, open_remembering: Open) -> None:
    server = serve(FULL - {"switch"})

    def think(body: dict[str, Any]) -> dict[str, Any]:
        is_cut = body["max_tokens"] < 200
        thought = {"message": {"content": None, "reasoning_content": "Well"}, "finish_reason": "length"}
        return thought if is_cut else {"message": {"reasoning_content": "Well, yes."}}

    server.say_of_itself = server.say_of_a_probe = think
    judge = open_remembering(server)
    assert (judge.features.choice, judge.features.reasons) == (ChoiceConstraint.STRUCTURED_OUTPUTS, True)
    assert judge.features.unknown == {}
    assert open_remembering(server).recognized == judge.recognized


def test_models_are_compared_by_the_replies_that_were_read() -> None:
    partly = replace(MODEL, replies=(NOT_READ, *GRADED[1:]))
    assert partly.find_difference(MODEL) is None
    assert not partly.is_read
    other = replace(partly, replies=(NOT_READ, (0.9, 0.1), *GRADED[2:]))
    assert other.find_difference(MODEL) == "its replies to the probe questions are others"
    mute = replace(MODEL, replies=(NOT_READ,) * len(GRADED), text=None)
    assert mute.find_difference(MODEL) == "its replies to the probe questions cannot be read"


def test_replicas_of_which_one_cannot_be_read(serve: Serve, open_judge: OpenJudge) -> None:
    first, second = serve(), serve()
    second.shape = in_reasoning
    with pytest.raises(JudgeError, match="serve different models: its replies to the probe questions cannot be read"):
        open_judge(first, second)


def test_features_have_the_names_of_the_record() -> None:
    names = set(ServerFeatures.__dataclass_fields__)
    assert set(CASES) - names == {"request format", "version"}
