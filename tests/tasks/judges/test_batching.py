"""The asker puts equal questions once, keeps the order, and counts what it cost."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from metric_core.judge_questions import ChoiceQuestion, ask_claims, ask_verdict
from metric_core.records import AnswerStatus
from tasks.judges import batching as asker_module
from tasks.judges.batching import JudgeBatcher
from tasks.judges.protocol import ChoiceAnswer, KeepChoice
from tasks.judges.scripted import ScriptedJudge
from tasks.runtime.usage import Usage


def test_equal_questions_are_asked_once_and_answered_each() -> None:
    judge = ScriptedJudge({("verdict", "a"): "yes", ("verdict", "b"): "no"})
    asker = JudgeBatcher(judge)
    answers = asker.choose([ask_verdict(claim, "premise") for claim in ("a", "b", "a")])
    assert [answer.label for answer in answers] == ["yes", "no", "yes"]
    assert (len(judge.asked), asker.usage.questions) == (2, 2)


def test_answers_keep_their_order_over_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asker_module, "BATCH", 2)
    judge = ScriptedJudge(lambda question: {"claims": [question.texts["text"]]})
    seen: list[tuple[int, int]] = []
    answers = JudgeBatcher(judge, lambda done, more: seen.append((done, more))).generate(
        [ask_claims(text, None) for text in "abcde"]
    )
    assert [answer.value["claims"][0] for answer in answers] == list("abcde")
    assert seen == [(0, 5), *[(1, 0)] * 5]


def test_a_judge_that_tells_of_nothing_is_reported_batch_by_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    class Silent(ScriptedJudge):
        def choose(self, questions: Sequence[ChoiceQuestion], keep: KeepChoice | None = None) -> list[ChoiceAnswer]:  # noqa: ARG002
            return super().choose(questions)

    monkeypatch.setattr(asker_module, "BATCH", 2)
    seen: list[tuple[int, int]] = []
    JudgeBatcher(Silent({"verdict": "yes"}), lambda done, more: seen.append((done, more))).choose(
        [ask_verdict(claim, "premise") for claim in "abc"]
    )
    assert seen == [(0, 3), (2, 0), (1, 0)]


def test_stored_answers_are_counted_and_cost_nothing() -> None:
    class Remembering(ScriptedJudge):
        def choose(self, questions: Sequence[ChoiceQuestion], keep: KeepChoice | None = None) -> list[ChoiceAnswer]:
            usage = Usage(requests=1, prompt_tokens=10)
            return [
                replace(answer, usage=usage, stored=i > 0) for i, answer in enumerate(super().choose(questions, keep))
            ]

    asker = JudgeBatcher(Remembering({"verdict": "yes"}))
    asker.choose([ask_verdict(claim, "premise") for claim in "abc"])
    usage = asker.usage
    assert (usage.questions, usage.stored, usage.requests, usage.prompt_tokens) == (3, 2, 1, 10)


def test_tokens_and_failures_add_up() -> None:
    class Counting(ScriptedJudge):
        def choose(self, questions: Sequence[ChoiceQuestion], keep: KeepChoice | None = None) -> list[ChoiceAnswer]:  # noqa: ARG002
            usage = Usage(prompt_tokens=10, cached_tokens=4, output_tokens=1)
            failed = ChoiceAnswer(AnswerStatus.FAILED, reason="cut off", usage=usage)
            return [failed for _ in questions]

    asker = JudgeBatcher(Counting({}))
    asker.choose([ask_verdict("a", "b"), ask_verdict("c", "d")])
    asker.choose([ask_verdict("e", "f")])
    usage = asker.usage
    assert (usage.questions, usage.prompt_tokens, usage.cached_tokens, usage.output_tokens) == (3, 30, 12, 3)
    assert usage.failed == {"cut off": 3}


def test_an_answer_that_lacks_a_vote_counts_as_failed_so_that_it_is_asked_again() -> None:
    asker = JudgeBatcher(ScriptedJudge({"verdict": ["yes", None, "yes"]}))
    (answer,) = asker.choose([replace(ask_verdict("a", "b"), votes=3)])
    assert answer.votes == ("yes", None, "yes")
    assert asker.usage.failed == {"no usable rating from the judge": 1}


def test_nothing_to_ask_asks_nothing() -> None:
    judge = ScriptedJudge({})
    assert JudgeBatcher(judge).choose([]) == []
    assert judge.asked == []
