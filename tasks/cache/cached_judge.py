"""A judge that remembers: what it was asked before, by any run that shares the store, is not asked again."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import TypeVar

from metric_core.judge_questions import ChoiceQuestion, GenerateQuestion, JudgeQuestion, QuestionKind, question_digest
from tasks.cache.answer_cache import AnswerCache
from tasks.cache.codec import CHOICES, GENERATED, Codec
from tasks.cache.get_or_compute import CachedComputation, Keep
from tasks.judges.protocol import (
    ChoiceAnswer,
    GenerateAnswer,
    Judge,
    JudgeIdentity,
    OnChoiceAnswer,
    OnGenerateAnswer,
    PerQuestionFingerprint,
)

A = TypeVar("A", ChoiceAnswer, GenerateAnswer)


class CachedJudge:
    """Looks answers up before it asks. May be used from several threads, if the judge may.

    Answers are kept while the judge works, so that a run that is killed loses a moment of judging. Only answers are
    kept: what failed or is undefined is asked for again next time.

    Args:
        judge: who is asked what is not in the store.
        store: where answers are kept.
        refresh: ask everything, and replace what is in the store.
    """

    def __init__(self, judge: Judge, store: AnswerCache, *, refresh: bool = False) -> None:
        self._judge = judge
        self._store = store
        self.refresh = refresh

    @property
    def identity(self) -> JudgeIdentity:
        """Who answers."""
        return self._judge.identity

    @property
    def features(self) -> object | None:
        """What the judge's server was found to do; None for a judge without a server."""
        return getattr(self._judge, "features", None)

    def can_answer(self, kind: QuestionKind) -> bool:
        """Whether questions of this kind can be asked at all."""
        return self._judge.can_answer(kind)

    def fingerprint(self, kind: QuestionKind) -> str:
        """Digest of all that determines an answer besides the question."""
        return self._judge.fingerprint(kind)

    def choose(
        self, questions: Sequence[ChoiceQuestion], on_answer: OnChoiceAnswer | None = None
    ) -> list[ChoiceAnswer]:
        """Answers to choice questions."""

        def ask(positions: Sequence[int], kept: Keep[ChoiceAnswer]) -> list[ChoiceAnswer]:
            return self._judge.choose([questions[position] for position in positions], kept)

        return CachedComputation(self._store, CHOICES, ask, self.refresh).values(
            self._keys(CHOICES, questions), on_answer
        )

    def generate(
        self, questions: Sequence[GenerateQuestion], on_answer: OnGenerateAnswer | None = None
    ) -> list[GenerateAnswer]:
        """Answers to generate questions."""

        def ask(positions: Sequence[int], kept: Keep[GenerateAnswer]) -> list[GenerateAnswer]:
            return self._judge.generate([questions[position] for position in positions], kept)

        return CachedComputation(self._store, GENERATED, ask, self.refresh).values(
            self._keys(GENERATED, questions), on_answer
        )

    def recalled_choices(self, questions: Sequence[ChoiceQuestion]) -> list[ChoiceAnswer | None]:
        """The answers that need not be asked for; None for the others."""
        return self._recalled(CHOICES, questions)

    def recalled_writings(self, questions: Sequence[GenerateQuestion]) -> list[GenerateAnswer | None]:
        """As `recalled_choices`."""
        return self._recalled(GENERATED, questions)

    def _recalled(self, codec: Codec[A], questions: Sequence[JudgeQuestion]) -> list[A | None]:
        if self.refresh:
            return [None] * len(questions)
        keys = self._keys(codec, questions)
        found = self._store.find(list(dict.fromkeys(keys)), codec.decode)
        return [found.get(key) for key in keys]

    def _keys(
        self, codec: Codec[ChoiceAnswer] | Codec[GenerateAnswer], questions: Sequence[JudgeQuestion]
    ) -> list[bytes]:
        determined_by = _determinants(self._judge)
        return [codec.key(determined_by(question), question_digest(question)) for question in questions]


def _determinants(judge: Judge) -> Callable[[JudgeQuestion], str]:
    """What a judge's answer depends on besides its question: the judge's account of that question, else of its kind."""
    if isinstance(judge, PerQuestionFingerprint):
        return judge.fingerprint_of
    fingerprint = cache(judge.fingerprint)
    return lambda question: fingerprint(question.kind)
