"""Puts the questions of a stage to the judge: equal ones once, in batches, and counts what it cost."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TypeVar

from metric_core.questions import ChoiceQuestion, GenerateQuestion, JudgeQuestion, question_digest
from metric_core.records import AnswerStatus
from tasks.judge.protocol import ChoiceAnswer, GenerateAnswer, Judge, Usage
from tasks.usage import StageUsage

BATCH = 4096
"""Questions a call of the judge: large enough to share work between them, small enough to show progress."""

Q = TypeVar("Q", bound=JudgeQuestion)
A = TypeVar("A", ChoiceAnswer, GenerateAnswer)


class Asker:
    """One stage's way to the judge.

    Args:
        judge: who answers.
        progress: called with the number of questions answered, and with the growth of their total.
    """

    def __init__(self, judge: Judge, progress: Callable[[int, int], None] = lambda _done, _total: None) -> None:
        self._judge = judge
        self._progress = progress
        self._questions = 0
        self._usage = Usage()
        self._failed: Counter[str] = Counter()

    @property
    def usage(self) -> StageUsage:
        """What the questions so far cost; seconds are the stage's to fill in."""
        return StageUsage(
            questions=self._questions,
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

    def _ask(self, questions: Sequence[Q], ask: Callable[[Sequence[Q]], list[A]]) -> list[A]:
        digests = [question_digest(question) for question in questions]
        distinct = dict(zip(digests, questions, strict=True))
        self._progress(0, len(distinct))
        answers: dict[str, A] = {}
        waiting = list(distinct)
        for start in range(0, len(waiting), BATCH):
            batch = waiting[start : start + BATCH]
            for digest, answer in zip(batch, ask([distinct[digest] for digest in batch]), strict=True):
                answers[digest] = answer
                self._count(answer)
            self._progress(len(batch), 0)
        return [answers[digest] for digest in digests]

    def _count(self, answer: ChoiceAnswer | GenerateAnswer) -> None:
        self._questions += 1
        self._usage = Usage(
            self._usage.prompt_tokens + answer.usage.prompt_tokens,
            self._usage.cached_tokens + answer.usage.cached_tokens,
            self._usage.output_tokens + answer.usage.output_tokens,
            self._usage.seconds + answer.usage.seconds,
        )
        if answer.status is AnswerStatus.FAILED:
            self._failed[answer.reason or "no reason given"] += 1
