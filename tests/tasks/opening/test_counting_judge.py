"""Dry runs count as many requests per question as the judge sends."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from metric_core.errors import AssayError
from metric_core.metrics.graded_rankings import ask_passage_relevance
from metric_core.prompts.judge_questions import ChoiceQuestion, ask_key_points, ask_verdict
from metric_core.prompts.reply_schemas import MOST_KEY_POINTS
from metric_core.question_kinds import QuestionKind
from metric_core.records import AnswerStatus
from tasks.cache.answer_cache import AnswerCache
from tasks.cache.cached_judge import CachedJudge
from tasks.models.judges.openai.openai_judge import OpenAIJudge
from tasks.models.judges.verifiers.open_served import open_served_verifier
from tasks.opening.counting_judge import CountingJudge, Ledger
from tasks.options.judge_options import JudgeSettings
from tasks.options.judge_server_options import ServerJudgeOptions
from tasks.options.load_profile import load_profile
from tests.tasks.models.judges.openai.fake_server import FULL, FakeServer
from tests.tasks.models.judges.verifiers.conftest import SPLITTER
from tests.tasks.models.judges.verifiers.random_models import CLASSIFIER
from tests.tasks.models.judges.verifiers.verifier_server import VerifierServer

VOTED = ChoiceQuestion(QuestionKind.ASPECT, {"response": "r"}, ("1", "0"), {"definition": "Is it kind?"}, votes=3)


@pytest.fixture(params=[FULL, FULL - {"n"}], ids=["several answers a request", "one answer a request"])
def server(request: pytest.FixtureRequest) -> Iterator[FakeServer]:
    with FakeServer(request.param, refuses=True) as running:
        yield running


def test_votes_are_counted_as_they_are_asked_for(server: FakeServer, tmp_path: Path) -> None:
    options = ServerJudgeOptions(urls=(server.url,))
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


def test_key_points_that_would_be_written_are_stood_in_for_by_sentences_of_relevant_passages() -> None:
    def unreachable() -> CachedJudge:
        raise AssayError("no server")

    counting = CountingJudge(Ledger(), JudgeSettings(), unreachable)
    (grade,) = counting.choose([ask_passage_relevance("When does it open?", "At nine.")])
    (written,) = counting.generate([ask_key_points("When does it open?", ["At nine.", "Tea is sold. " * 2])])
    assert grade.label == "3"
    assert [point["text"] for point in written.value["key_points"]] == ["At nine.", "Tea is sold."]
    (many,) = counting.generate([ask_key_points("Which?", [f"Hall {number} is open." for number in range(40)])])
    assert len(many.value["key_points"]) == MOST_KEY_POINTS


LONG = " ".join(f"Hall {number} opens at nine, and its canteen at noon." for number in range(100))
VERDICTS = [ask_verdict(f"The hall opens at {hour}. It is warm.", LONG) for hour in range(9)]
VERDICTS += [ask_verdict("It rains.", f"Hall {number} is closed.") for number in range(30)]


@pytest.mark.parametrize("name", [CLASSIFIER, "minicheck-7b", "granite-guardian-3.3", "lettucedetect"])
def test_requests_to_a_verifier_are_predicted_with_sentences_parts_and_the_size_of_its_form(
    name: str, tmp_path: Path
) -> None:
    profile = load_profile(name)
    with VerifierServer(profile, window=512 if name == CLASSIFIER else 1024) as server:
        options = ServerJudgeOptions(urls=(server.url,))
        with closing(open_served_verifier(profile, options, SPLITTER)) as judge:
            stored = CachedJudge(judge, AnswerCache(f"sqlite:///{tmp_path}/answers.db"))
            settings = JudgeSettings(backend="server", profile=name, server=options)
            ledger = Ledger()
            counting = CountingJudge(ledger, settings, lambda: stored, lambda: SPLITTER)
            server.requests.clear()
            counting.choose(VERDICTS)
            planned = ledger.take()[QuestionKind.VERDICT]
            assert server.requests == []

            answers = stored.choose(VERDICTS)

            counting.choose(VERDICTS)
            left = ledger.take()[QuestionKind.VERDICT]
    asked = [path for path, _ in server.requests if path != "/tokenize"]
    assert {answer.status for answer in answers} == {AnswerStatus.ANSWERED}
    assert (planned.questions, planned.asked, planned.requests) == (len(VERDICTS), len(VERDICTS), len(asked))
    assert (left.stored, left.requests) == (len(VERDICTS), 0)
    read = sum(answer.usage.prompt_tokens or 0 for answer in answers)
    assert planned.prompt_tokens == pytest.approx(read, rel=0.03)
    assert (planned.cached_tokens > 0) is (profile.route == "chat")


def test_requests_to_an_unreachable_verifier_are_predicted_by_its_profile() -> None:
    settings = JudgeSettings(backend="server", profile=CLASSIFIER, server=ServerJudgeOptions(urls=("http://x/v1",)))
    ledger = Ledger(unreachable={settings.model_dump_json()})

    def fail() -> Any:
        raise AssertionError

    counting = CountingJudge(ledger, settings, fail, lambda: SPLITTER)
    counting.choose(VERDICTS)

    planned = ledger.take()[QuestionKind.VERDICT]
    assert counting.can_answer(QuestionKind.VERDICT)
    assert not counting.can_answer(QuestionKind.CLAIMS)
    assert planned.requests * 16 > planned.asked == len(VERDICTS)
    assert planned.output_tokens == 0
