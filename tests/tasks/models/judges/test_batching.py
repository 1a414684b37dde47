"""Tests of the judge batcher: deduplication, order, progress and usage."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from metric_core.prompts.judge_questions import ChoiceQuestion, ask_claims, ask_verdict
from metric_core.records import AnswerStatus, VerdictKind
from tasks.models.judges import batching
from tasks.models.judges.batching import JudgeBatcher
from tasks.models.judges.panel import CascadeRule, PanelJudge
from tasks.models.judges.protocol import ChoiceAnswer, GenerateAnswer, OnChoiceAnswer
from tasks.models.judges.scripted import ScriptedJudge
from tasks.runtime.usage import Usage


def test_equal_questions_are_asked_once_and_each_answered() -> None:
    judge = ScriptedJudge({("verdict", "a"): "yes", ("verdict", "b"): "no"})
    batcher = JudgeBatcher(judge)
    answers = batcher.choose([ask_verdict(claim, "premise") for claim in ("a", "b", "a")])
    assert [answer.label for answer in answers] == ["yes", "no", "yes"]
    assert (len(judge.asked), batcher.usage.questions) == (2, 2)


def test_answers_keep_their_order_across_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batching, "BATCH", 2)
    judge = ScriptedJudge(lambda question: {"claims": [question.texts["text"]]})
    seen: list[tuple[int, int]] = []
    answers = JudgeBatcher(judge, lambda done, more: seen.append((done, more))).generate(
        [ask_claims(text, None) for text in "abcde"]
    )
    assert [answer.value["claims"][0] for answer in answers] == list("abcde")
    assert seen == [(0, 5), *[(1, 0)] * 5]


def test_a_judge_without_callbacks_reports_progress_per_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    class SilentJudge(ScriptedJudge):
        def choose(
            self,
            questions: Sequence[ChoiceQuestion],
            on_answer: OnChoiceAnswer | None = None,  # noqa: ARG002
        ) -> list[ChoiceAnswer]:
            return super().choose(questions)

    monkeypatch.setattr(batching, "BATCH", 2)
    seen: list[tuple[int, int]] = []
    JudgeBatcher(SilentJudge({"verdict": "yes"}), lambda done, more: seen.append((done, more))).choose(
        [ask_verdict(claim, "premise") for claim in "abc"]
    )
    assert seen == [(0, 3), (2, 0), (1, 0)]


def test_stored_answers_are_counted_and_cost_nothing() -> None:
    class CachingJudge(ScriptedJudge):
        def choose(
            self, questions: Sequence[ChoiceQuestion], on_answer: OnChoiceAnswer | None = None
        ) -> list[ChoiceAnswer]:
            usage = Usage(requests=1, prompt_tokens=10)
            return [
                replace(answer, usage=usage, stored=i > 0)
                for i, answer in enumerate(super().choose(questions, on_answer))
            ]

    batcher = JudgeBatcher(CachingJudge({"verdict": "yes"}))
    batcher.choose([ask_verdict(claim, "premise") for claim in "abc"])
    usage = batcher.usage
    assert (usage.questions, usage.stored, usage.requests, usage.prompt_tokens) == (3, 2, 1, 10)


def test_tokens_and_failures_add_up() -> None:
    class FailingJudge(ScriptedJudge):
        def choose(
            self,
            questions: Sequence[ChoiceQuestion],
            on_answer: OnChoiceAnswer | None = None,  # noqa: ARG002
        ) -> list[ChoiceAnswer]:
            usage = Usage(prompt_tokens=10, cached_tokens=4, output_tokens=1)
            failed = ChoiceAnswer(AnswerStatus.FAILED, reason="cut off", usage=usage)
            return [failed for _ in questions]

    batcher = JudgeBatcher(FailingJudge({}))
    batcher.choose([ask_verdict("a", "b"), ask_verdict("c", "d")])
    batcher.choose([ask_verdict("e", "f")])
    usage = batcher.usage
    assert (usage.questions, usage.prompt_tokens, usage.cached_tokens, usage.output_tokens) == (3, 30, 12, 3)
    assert usage.failed == {"cut off": 3}


def test_an_answer_without_one_of_its_votes_counts_as_failed() -> None:
    batcher = JudgeBatcher(ScriptedJudge({"verdict": ["yes", None, "yes"]}))
    (answer,) = batcher.choose([replace(ask_verdict("a", "b"), votes=3)])
    assert answer.votes == ("yes", None, "yes")
    assert batcher.usage.failed == {"no usable rating from the judge": 1}


def test_no_questions_ask_the_judge_nothing() -> None:
    judge = ScriptedJudge({})
    assert JudgeBatcher(judge).choose([]) == []
    assert judge.asked == []


def test_questions_of_both_forms_are_answered_in_their_order() -> None:
    judge = ScriptedJudge({"verdict": "yes", "claims": {"claims": ["a"]}})
    first, second, third = JudgeBatcher(judge).ask(
        [ask_claims("text", None), ask_verdict("claim", "premise"), ask_claims("another", None)]
    )
    assert isinstance(first, GenerateAnswer)
    assert isinstance(second, ChoiceAnswer)
    assert isinstance(third, GenerateAnswer)


def test_only_a_cascade_learns_which_verdict_a_question_is_about() -> None:
    questions = [ask_verdict("claim", "premise")] * 2
    verdicts = [(VerdictKind.SUPPORT, "response:0", premise) for premise in ("contexts", "context:0")]
    alone, cheaper, lead = (ScriptedJudge({"verdict": "yes"}, name) for name in ("alone", "cheaper", "lead"))
    for judge in (alone, PanelJudge([lead, cheaper], CascadeRule(cheaper))):
        JudgeBatcher(judge).ask(questions, verdicts)
    abouts = [
        [question.about for question in judge.asked if isinstance(question, ChoiceQuestion)]
        for judge in (alone, cheaper)
    ]
    assert abouts == [[""], ["response claims by all contexts", "response claims by each context"]]
