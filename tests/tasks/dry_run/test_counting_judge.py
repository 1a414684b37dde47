"""Dry runs count as many requests per question as the judge sends."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from metric_core.judge_questions import ChoiceQuestion, QuestionKind, ask_verdict
from tasks.cache.answer_cache import AnswerCache
from tasks.cache.cached_judge import CachedJudge
from tasks.dry_run.counting_judge import CountingJudge, Ledger
from tasks.judges.openai.openai_judge import OpenAIJudge
from tasks.options.judge_options import JudgeSettings
from tasks.options.judge_server_options import ServerJudgeOptions
from tests.tasks.judges.openai.fake_server import FULL, FakeServer

VOTED = ChoiceQuestion(QuestionKind.ASPECT, {"response": "r"}, ("1", "0"), {"definition": "Is it kind?"}, votes=3)


@pytest.fixture(params=[FULL, FULL - {"n"}], ids=["several answers a request", "one answer a request"])
def server(request: pytest.FixtureRequest) -> Iterator[FakeServer]:
    with FakeServer(request.param, refuses=True) as running:
        yield running


@pytest.mark.parametrize("votes_temperature", [0.0, 0.7])
def test_votes_are_counted_as_they_are_asked_for(server: FakeServer, votes_temperature: float, tmp_path: Path) -> None:
    options = ServerJudgeOptions(urls=(server.url,), votes_temperature=votes_temperature)
    judge = OpenAIJudge(options)
    stored = CachedJudge(judge, AnswerCache(f"sqlite:///{tmp_path}/answers.db"))
    ledger = Ledger()
    CountingJudge(ledger, JudgeSettings(backend="server", server=options), lambda: stored).choose([VOTED])
    assert server.asked == []
    (answer,) = stored.choose([VOTED])
    judge.close()
    assert answer.votes == ("1", "1", "1")
    assert ledger.take()[VOTED.kind].requests == len(server.asked) == answer.usage.requests


def test_tokens_that_prompts_share_are_cached_tokens(tmp_path: Path) -> None:
    """A passage is read once: later questions about it, and further votes, find it in the prefix cache."""
    passage = "The hall opens at nine, and the canteen at noon. " * 60
    first, second, other = (
        ask_verdict(claim, text) for claim, text in (("A.", passage), ("B.", passage), ("A.", passage[7:]))
    )
    with FakeServer() as server:
        options = ServerJudgeOptions(urls=(server.url,))
        stored = CachedJudge(OpenAIJudge(options), AnswerCache(f"sqlite:///{tmp_path}/answers.db"))
        ledger = Ledger()
        counting = CountingJudge(ledger, JudgeSettings(backend="server", server=options), lambda: stored)
        tallies = []
        for question in (first, second, other):
            counting.choose([question])
            tallies.append(ledger.take()[question.kind])
    cached = [tally.cached_tokens / tally.prompt_tokens for tally in tallies]
    assert cached[0] == 0
    assert cached[1] > 0.9
    assert 0 <= cached[2] < 0.7
