"""Tests that answers are kept for the model that gave them, whatever its server calls it."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from metric_core.errors import JudgeError
from metric_core.prompts.judge_questions import ask_claims, ask_verdict
from metric_core.question_kinds import QuestionKind
from metric_core.records import AnswerStatus
from tasks.cache.answer_cache import AnswerCache
from tasks.cache.cached_judge import CachedJudge
from tasks.models.clients.observed_model import ObservedModel
from tasks.models.judges.batching import JudgeBatcher
from tasks.models.judges.openai.openai_judge import OpenAIJudge
from tasks.models.judges.openai.server_features import ChoiceConstraint, ServerFeatures
from tasks.opening.model_memory import ServedModels
from tasks.options.judge_server_options import ServerJudgeOptions
from tests.tasks.models.judges.openai.conftest import OpenJudge, Serve
from tests.tasks.models.judges.openai.fake_server import BATCHES, FULL, FakeServer, step

VERDICT = ask_verdict("It rains.", "Rain.")
GRADED = ((0.7, 0.3), (0.2, 0.8), (0.55, 0.45), (0.9, 0.1))
MODEL = ObservedModel("judge", "default", {"root": "a/b"}, 2048, GRADED, "text", ("http://gpu1:8000/v1",))
SATURATED = replace(MODEL, replies=((1.0, 0.0), (0.0, 1.0), (1.0, 0.0), (1.0, 0.0)))

Open = Callable[..., CachedJudge]


def memory_of(cache: AnswerCache) -> ServedModels:
    """Return the models that gave the answers in a cache in a file."""
    return ServedModels(cache.database.name)


@pytest.fixture
def cache(tmp_path: Path) -> AnswerCache:
    return AnswerCache(f"sqlite:///{tmp_path / 'answers.db'}")


@pytest.fixture
def open_cached(cache: AnswerCache, open_judge: OpenJudge) -> Open:
    """Return a function that opens a judge with the cache, as a run does."""
    del open_judge  # shortens pauses

    def open_one(*servers: FakeServer, **options: Any) -> CachedJudge:
        settings = ServerJudgeOptions(urls=tuple(server.url for server in servers), **options)
        return CachedJudge(OpenAIJudge(settings, memory_of(cache)), cache)

    return open_one


def says_no(body: dict[str, Any]) -> dict[str, Any]:
    labels = body.get("structured_outputs", {}).get("choice", ())
    return {"content": "no"} if "no" in labels else {}


def test_a_restarted_server_is_the_same_judge(serve: Serve, open_cached: Open) -> None:
    for created in (1, 2):
        server = serve(say=says_no)
        server.card = {"created": created, "root": "a/b", "permission": [{"id": f"modelperm-{created}"}]}
        judge = open_cached(server)
        assert judge.choose([VERDICT])[0].stored is (created == 2)
        assert judge.warnings == ()


def test_a_known_server_is_asked_few_questions(serve: Serve, open_cached: Open) -> None:
    server = serve(BATCHES, say=says_no)
    first = open_cached(server)
    probed = len(server.bodies)
    server.bodies.clear()
    second = open_cached(server)
    assert probed > 20
    assert len(server.bodies) <= 8
    assert (second.features, second.fingerprint(VERDICT.kind)) == (first.features, first.fingerprint(VERDICT.kind))
    assert first.choose([VERDICT])[0].stored is False
    assert second.choose([VERDICT])[0].stored


@pytest.mark.parametrize("change", ["replies", "an option", "what it can do"])
def test_a_known_server_that_has_changed_is_probed_again(serve: Serve, open_cached: Open, change: str) -> None:
    server = serve(FULL)
    open_cached(server)
    server.bodies.clear()
    if change == "replies":
        server.say_of_itself = says_no
    elif change == "what it can do":
        server.abilities = server.abilities - {"structured_outputs", "logprobs"}
    options: dict[str, Any] = {"extra_body": {"top_k": 3}} if change == "an option" else {}
    features = open_cached(server, **options).features
    assert isinstance(features, ServerFeatures)
    assert len(server.bodies) > 20
    assert (features.choice is ChoiceConstraint.STRUCTURED_OUTPUTS) is (change != "what it can do")


@pytest.mark.parametrize("difference", ["root", "replies", "length"])
def test_another_model_of_the_same_name_does_not_share_answers(
    serve: Serve, open_cached: Open, difference: str
) -> None:
    first, second = serve(window=2048), serve(window=4096 if difference == "length" else 2048, say=says_no)
    first.card = {"root": "a/b"}
    second.card = {"root": "a/c" if difference == "root" else "a/b"}
    second.say_of_itself = says_no if difference == "replies" else lambda _body: None
    assert open_cached(first).choose([VERDICT])[0].label == "yes"
    judge = open_cached(second)
    (answer,) = judge.choose([VERDICT])
    assert (answer.label, answer.stored) == ("no", False)
    (warning,) = judge.warnings
    assert warning.startswith(f"{second.url} serves another model as 'judge-model' than {first.url} did: ")
    assert {"root": "root a/b is now a/c", "length": "max_model_len 2048 is now 4096"}.get(
        difference, "its replies to the probe questions are others"
    ) in warning
    assert open_cached(first).choose([VERDICT])[0].stored


def test_replicas_must_serve_the_same_model(serve: Serve, open_judge: OpenJudge) -> None:
    first, second = serve(), serve()
    second.say_of_itself = says_no
    with pytest.raises(JudgeError, match="serve different models: its replies to the probe questions"):
        open_judge(first, second)


def test_a_replica_that_returns_with_another_model_gets_no_questions(serve: Serve, open_judge: OpenJudge) -> None:
    first, second = serve(), serve()
    judge = open_judge(first, second, unavailable_timeout=20)
    second.stop()
    questions = [ask_verdict(f"claim {i}", f"context {i}") for i in range(20)]
    judge.choose(questions)
    second.say_of_itself = says_no
    second.start()
    asked = len(second.asked)
    for _ in range(5):
        assert all(answer.label == "yes" for answer in judge.choose(questions))
    assert len(second.asked) == asked


def test_noise_of_a_busy_server_is_not_another_model(cache: AnswerCache) -> None:
    token = memory_of(cache).recognize(MODEL).token
    noisy = replace(MODEL, replies=tuple((a + 0.02, b - 0.02) for a, b in GRADED), text="other", length=4096)
    assert noisy.token != token
    assert memory_of(cache).recognize(noisy).token == token
    flipped = replace(MODEL, replies=((0.3, 0.7), *GRADED[1:]))
    assert memory_of(cache).recognize(flipped).token != token


def test_without_graded_probabilities_the_text_decides(cache: AnswerCache) -> None:
    assert not SATURATED.is_distinctive
    token = memory_of(cache).recognize(SATURATED).token
    other = memory_of(cache).recognize(replace(SATURATED, text="another"))
    assert other.token != token
    assert "are others" in (other.warning or "")
    assert memory_of(cache).recognize(SATURATED).token == token


@pytest.mark.parametrize(
    ("old", "new", "is_foreign"),
    [
        ("http://gpu1:8000/v1", "http://gpu1:8000/v1", False),
        ("http://localhost:8001/v1", "http://127.0.0.1:8002/v1", False),
        ("http://gpu1:8000/v1", "http://gpu2:8000/v1", True),
    ],
)
def test_answers_of_another_server_are_named(cache: AnswerCache, old: str, new: str, is_foreign: bool) -> None:
    memory_of(cache).recognize(replace(MODEL, urls=(old,)))
    foreign = memory_of(cache).recognize(replace(MODEL, urls=(new,))).foreign
    assert (foreign is not None) is is_foreign
    assert not is_foreign or old in str(foreign)


IMPOSSIBLE = {
    "content": "yes",
    "steps": [step("yes", {"yes": 1.0}) | {"top_logprobs": [{"token": "no", "logprob": 5.0}]}],
}


def test_impossible_probabilities_are_refused_for_the_rest_of_the_run(serve: Serve, open_cached: Open) -> None:
    server = serve(say=lambda body: IMPOSSIBLE if "claim 0" in str(body) else None)
    judge = open_cached(server)
    batcher = JudgeBatcher(judge)
    batcher.choose([ask_verdict("claim 0", "context")])
    (later,) = batcher.choose([ask_verdict("claim 1", "context")])
    assert (later.label, later.probabilities) == ("yes", None)
    (warning,) = batcher.usage.warnings
    assert warning.startswith("the judge server's log-probabilities are impossible (some are above 0, such as 5)")
    assert judge.cached_choices([ask_verdict("claim 0", "context"), ask_verdict("claim 1", "context")]) == [None, None]


def test_impossible_probabilities_of_the_probe_are_never_asked_for(serve: Serve, open_judge: OpenJudge) -> None:
    server = serve()
    server.shape = _with_impossible
    judge = open_judge(server)
    assert judge.features.top_logprobs == 0
    (warning,) = judge.warnings
    assert "log-probabilities are impossible (some are above 0" in warning
    judge.choose([VERDICT])
    assert "logprobs" not in server.asked[-1]


def _with_impossible(reply: dict[str, Any]) -> dict[str, Any]:
    for choice in reply["choices"]:
        if choice["logprobs"]:
            choice["logprobs"]["content"][0]["top_logprobs"] = [{"token": "a", "logprob": 0.7}]
    return reply


def test_a_reply_of_another_model_is_not_used(serve: Serve, open_judge: OpenJudge) -> None:
    server = serve()
    judge = open_judge(server)
    server.shape = lambda reply: reply | {"model": "swapped"}
    batcher = JudgeBatcher(judge)
    (verdict,), (claims,) = batcher.choose([VERDICT]), batcher.generate([ask_claims("It rains.", None)])
    for answer in (verdict, claims):
        assert (answer.status, answer.reason) == (AnswerStatus.FAILED, "reply of another model than was asked")
    (warning,) = batcher.usage.warnings
    assert "names the model 'swapped', wanted 'judge-model'" in warning


@pytest.mark.parametrize(
    ("name", "has_warning"), [("judge-model", False), ("judge-model-2026-08-06", False), ("alias", True)]
)
def test_a_name_that_the_probes_saw_is_accepted(
    serve: Serve, open_judge: OpenJudge, name: str, has_warning: bool
) -> None:
    server = serve()
    server.shape = lambda reply: reply | {"model": name}
    judge = open_judge(server)
    assert judge.choose([VERDICT])[0].label == "yes"
    assert any(f"its replies name {name}" in warning for warning in judge.warnings) is has_warning
    other = open_judge(serve())
    assert (judge.fingerprint(QuestionKind.VERDICT) == other.fingerprint(QuestionKind.VERDICT)) is (
        name == "judge-model"
    )
