"""A judge is asked each question once; only answers are cached."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from metric_core.errors import JudgeError
from metric_core.question_kinds import QuestionKind
from metric_core.records import AnswerStatus
from tasks.cache.answer_cache import AnswerCache
from tasks.cache.cached_judge import CachedJudge
from tasks.models.judges.protocol import ChoiceAnswer
from tests.tasks.cache.helpers import CountingJudge, decompositions, verdicts


@pytest.fixture
def judge(tmp_path: Path) -> CountingJudge:
    return CountingJudge(tmp_path / "asked", fails=("unclear",))


def test_cached_answers_are_not_asked_again(cache: AnswerCache, judge: CountingJudge) -> None:
    stored = CachedJudge(judge, cache)
    first = stored.choose(verdicts("a", "b"))
    again = stored.choose(verdicts("b", "c", "a"))
    assert judge.asked == ["a", "b", "c"]
    assert [answer.stored for answer in (*first, *again)] == [False, False, True, False, True]
    assert again[2] == replace(first[0], stored=True)
    assert first[0].usage.prompt_tokens == 7


def test_generated_values_come_back_as_they_were(cache: AnswerCache, judge: CountingJudge) -> None:
    stored = CachedJudge(judge, cache)
    first = stored.generate(decompositions("a", "\ud800 b"))
    again = stored.generate(decompositions("a", "\ud800 b"))
    assert again == [replace(answer, stored=True) for answer in first]
    assert again[0].value == {"claims": ["a", "né à 東京 \ud800"]}


def test_failed_questions_are_asked_again(cache: AnswerCache, judge: CountingJudge) -> None:
    stored = CachedJudge(judge, cache)
    for _ in range(2):
        clear, unclear = stored.choose(verdicts("clear", "unclear"))
        assert (clear.status, unclear.status) == (AnswerStatus.ANSWERED, AnswerStatus.FAILED)
        assert unclear.reason == "cut off"
    assert judge.asked == ["clear", "unclear", "unclear"]


@pytest.mark.parametrize(
    "change", [lambda judge: setattr(judge, "revision", "2"), lambda judge: setattr(judge, "fingerprint", str.upper)]
)
def test_another_judge_finds_nothing(
    cache: AnswerCache, judge: CountingJudge, change: Callable[[CountingJudge], None]
) -> None:
    CachedJudge(judge, cache).choose(verdicts("a"))
    change(judge)
    CachedJudge(judge, cache).choose(verdicts("a"))
    assert judge.asked == ["a", "a"]


def test_any_difference_of_the_question_counts(cache: AnswerCache, judge: CountingJudge) -> None:
    question = verdicts("a")[0]
    others = [
        replace(question, votes=3),
        replace(question, labels=("yes", "no", "unknown")),
        replace(question, instructions={"definition": "x"}),
        replace(question, kind=QuestionKind.ASPECT),
    ]
    CachedJudge(judge, cache).choose([question, *others])
    assert len(judge.asked) == 5


def test_refreshing_asks_again(cache: AnswerCache, judge: CountingJudge) -> None:
    CachedJudge(judge, cache).choose(verdicts("a"))
    (answer,) = CachedJudge(judge, cache, refresh=True).choose(verdicts("a"))
    assert judge.asked == ["a", "a"]
    assert not answer.stored


def test_answers_before_a_failure_of_the_judge_are_cached(cache: AnswerCache, tmp_path: Path) -> None:
    breaking = CountingJudge(tmp_path / "asked", breaks_at="c")
    with pytest.raises(JudgeError):
        CachedJudge(breaking, cache).choose(verdicts("a", "b", "c", "d"))
    answers = CachedJudge(CountingJudge(tmp_path / "asked"), cache).choose(verdicts("a", "b", "c", "d"))
    assert [answer.stored for answer in answers] == [True, True, False, False]
    assert breaking.asked == ["a", "b", "c", "d"]


def test_answers_are_reported_as_they_come(cache: AnswerCache, judge: CountingJudge) -> None:
    stored = CachedJudge(judge, cache)
    stored.choose(verdicts("b"))
    reported: list[tuple[int, bool]] = []

    def keep(position: int, answer: ChoiceAnswer) -> None:
        reported.append((position, answer.stored))

    stored.choose(verdicts("a", "b", "unclear"), keep)
    assert reported == [(1, True), (0, False), (2, False)]


def test_it_passes_the_judges_properties_on(cache: AnswerCache, judge: CountingJudge) -> None:
    stored = CachedJudge(judge, cache)
    assert stored.identity == judge.identity
    assert stored.fingerprint(QuestionKind.VERDICT) == judge.fingerprint(QuestionKind.VERDICT)
    assert stored.can_answer(QuestionKind.VERDICT)
    assert stored.features is None
