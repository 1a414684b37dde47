"""Cache the answers of a judge: a question that any run with the same cache has asked is not asked again."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import TypeVar

from metric_core.prompts.judge_questions import ChoiceQuestion, GenerateQuestion, JudgeQuestion, Kind, question_digest
from tasks.cache.answer_cache import AnswerCache
from tasks.cache.codec import CHOICES, GENERATED, Codec
from tasks.cache.get_or_compute import CachedComputation, OnValue
from tasks.models.clients.observed_model import RecognizedModel
from tasks.models.judges.protocol import (
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
    """A judge that looks answers up before it asks. May be used from several threads, if the judge may.

    Answers are cached while the judge works, so that a run that is killed loses little. Only answers are cached:
    questions that failed or whose answer is undefined are asked again next time.

    Args:
        refresh: If true, ask everything and replace cached answers.
    """

    def __init__(self, judge: Judge, cache: AnswerCache, *, refresh: bool = False) -> None:
        self._judge = judge
        self._cache = cache
        self.refresh = refresh

    @property
    def identity(self) -> JudgeIdentity:
        """The identity of the judge."""
        return self._judge.identity

    @property
    def uncached(self) -> Judge:
        """The judge without its cache."""
        return self._judge

    @property
    def features(self) -> object | None:
        """The probed features of the judge's server; None for a judge without a server."""
        return getattr(self._judge, "features", None)

    @property
    def recognized(self) -> RecognizedModel | None:
        """The model of the judge's server, compared with those seen before; None for a judge without a server."""
        return getattr(self._judge, "recognized", None)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Sentences for users about the judge's server."""
        return tuple(getattr(self._judge, "warnings", ()))

    def can_answer(self, kind: Kind) -> bool:
        """Return whether the judge can be asked questions of this kind."""
        return self._judge.can_answer(kind)

    def fingerprint(self, kind: Kind) -> str:
        """Return the digest of all that determines an answer besides the question."""
        return self._judge.fingerprint(kind)

    def choose(
        self, questions: Sequence[ChoiceQuestion], on_answer: OnChoiceAnswer | None = None
    ) -> list[ChoiceAnswer]:
        """Return the answers to choice questions."""

        def ask(positions: Sequence[int], on_value: OnValue[ChoiceAnswer]) -> list[ChoiceAnswer]:
            return self._judge.choose([questions[position] for position in positions], on_value)

        return CachedComputation(self._cache, CHOICES, ask, self.refresh).values(
            self._keys(CHOICES, questions), on_answer
        )

    def generate(
        self, questions: Sequence[GenerateQuestion], on_answer: OnGenerateAnswer | None = None
    ) -> list[GenerateAnswer]:
        """Return the answers to generate questions."""

        def ask(positions: Sequence[int], on_value: OnValue[GenerateAnswer]) -> list[GenerateAnswer]:
            return self._judge.generate([questions[position] for position in positions], on_value)

        return CachedComputation(self._cache, GENERATED, ask, self.refresh).values(
            self._keys(GENERATED, questions), on_answer
        )

    def cached_choices(self, questions: Sequence[ChoiceQuestion]) -> list[ChoiceAnswer | None]:
        """Return the cached answer to each question; None where there is none."""
        return self._find_cached(CHOICES, questions)

    def cached_generations(self, questions: Sequence[GenerateQuestion]) -> list[GenerateAnswer | None]:
        """Return the cached answer to each question; None where there is none."""
        return self._find_cached(GENERATED, questions)

    def _find_cached(self, codec: Codec[A], questions: Sequence[JudgeQuestion]) -> list[A | None]:
        if self.refresh:
            return [None] * len(questions)
        keys = self._keys(codec, questions)
        found = self._cache.find(list(dict.fromkeys(keys)), codec.decode)
        return [found.get(key) for key in keys]

    def _keys(
        self, codec: Codec[ChoiceAnswer] | Codec[GenerateAnswer], questions: Sequence[JudgeQuestion]
    ) -> list[bytes]:
        determined_by = _determinants(self._judge)
        return [codec.key(determined_by(question), question_digest(question)) for question in questions]


def _determinants(judge: Judge) -> Callable[[JudgeQuestion], str]:
    """Return a function from a question to the judge's fingerprint for it, or else for its kind."""
    if isinstance(judge, PerQuestionFingerprint):
        return judge.fingerprint_of
    fingerprint = cache(judge.fingerprint)
    return lambda question: fingerprint(question.kind)
