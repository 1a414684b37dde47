"""Puts the questions of a stage to the judge: equal ones once, in batches, and counts what it cost."""

from collections import Counter
from collections.abc import Callable, Sequence
from threading import Lock
from typing import TypeVar

from metric_core import reasons
from metric_core.judge_questions import ChoiceQuestion, GenerateQuestion, JudgeQuestion, question_digest
from metric_core.records import AnswerStatus
from tasks.judges.protocol import ChoiceAnswer, GenerateAnswer, Judge
from tasks.runtime.usage import StageUsage, Usage

BATCH = 4096
"""Questions a call of the judge: large enough to share work between them, few enough to render at once."""

Q = TypeVar("Q", bound=JudgeQuestion)
A = TypeVar("A", ChoiceAnswer, GenerateAnswer)


class JudgeBatcher:
    """One stage's way to the judge.

    Args:
        judge: who answers.
        progress: called with the number of questions answered, and with the growth of their total.
    """

    def __init__(self, judge: Judge, progress: Callable[[int, int], None] = lambda _done, _total: None) -> None:
        self._judge = judge
        self._progress = progress
        self._questions = 0
        self._stored = 0
        self._usage = Usage()
        self._failed: Counter[str] = Counter()

    @property
    def usage(self) -> StageUsage:
        """What the questions so far cost; seconds are the stage's to fill in."""
        return StageUsage(
            questions=self._questions,
            stored=self._stored,
            requests=self._usage.requests,
            prompt_tokens=self._usage.prompt_tokens,
            cached_tokens=self._usage.cached_tokens,
            output_tokens=self._usage.output_tokens,
            failed=dict(self._failed),
        )

    def choose(self, questions: Sequence[ChoiceQuestion]) -> list[ChoiceAnswer]:
        """Answers to choice questions, in their order."""
        return self._ask(questions, self._judge.choose)

    def generate(self, questions: Sequence[GenerateQuestion]) -> list[GenerateAnswer]:
        """Answers to generate questions, in their order."""
        return self._ask(questions, self._judge.generate)

    def _ask(self, questions: Sequence[Q], ask: Callable[[Sequence[Q], Callable[[int, A], None]], list[A]]) -> list[A]:
        digests = [question_digest(question) for question in questions]
        distinct = dict(zip(digests, questions, strict=True))
        self._progress(0, len(distinct))
        answers: dict[str, A] = {}
        waiting = list(distinct)
        for start in range(0, len(waiting), BATCH):
            batch = waiting[start : start + BATCH]
            counter = _Counter(self._progress)
            found = ask([distinct[digest] for digest in batch], counter.count)
            for digest, answer in zip(batch, found, strict=True):
                answers[digest] = answer
                self._count(answer)
            counter.complete(len(batch))
        return [answers[digest] for digest in digests]

    def _count(self, answer: ChoiceAnswer | GenerateAnswer) -> None:
        self._questions += 1
        if answer.stored:
            self._stored += 1
            return
        self._usage = Usage(
            self._usage.requests + answer.usage.requests,
            self._usage.prompt_tokens + answer.usage.prompt_tokens,
            self._usage.cached_tokens + answer.usage.cached_tokens,
            self._usage.output_tokens + answer.usage.output_tokens,
            self._usage.seconds + answer.usage.seconds,
        )
        if answer.status is AnswerStatus.FAILED:
            self._failed[answer.reason or "no reason given"] += 1
        elif isinstance(answer, ChoiceAnswer) and None in answer.votes:
            self._failed[reasons.NO_USABLE_RATING] += 1


class _Counter:
    """Reports answers as they come, from any thread; a judge that tells of none is reported batch by batch.

    Args:
        progress: called with the number of questions answered, and with the growth of their total.
    """

    def __init__(self, progress: Callable[[int, int], None]) -> None:
        self._progress = progress
        self._lock = Lock()
        self._told: set[int] = set()

    def count(self, position: int, _answer: object) -> None:
        """Takes note of an answer."""
        with self._lock:
            if position not in self._told:
                self._told.add(position)
                self._progress(1, 0)

    def complete(self, size: int) -> None:
        """Takes note that all answers are there."""
        if size > len(self._told):
            self._progress(size - len(self._told), 0)
