"""Count the cost of answers and stages, and what stages noticed about the texts, added up over shards."""

from collections.abc import Iterable
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field


class Numbers:
    """The base of dataclasses with slots for numbers, which add up field by field."""

    __slots__: tuple[str, ...] = ()

    def __add__(self, other: Self) -> Self:
        """Return the sum of both."""
        return type(self)(*[getattr(self, name) + getattr(other, name) for name in self.__slots__])


@dataclass(frozen=True, slots=True)
class Usage(Numbers):
    """The cost of an answer. Requests and tokens are 0 if no language model was asked.

    Args:
        requests: Number of requests sent to a server, including retries.
        prompt_tokens: Number of tokens sent.
        cached_tokens: Number of these tokens that the server found in its prefix cache.
        output_tokens: Number of tokens generated.
        seconds: Time from the question to its answer.
        unreported_tokens: Number of prompt tokens for which the server did not report how many were in its prefix
            cache, as for several conversations in one request.
        splits: Number of requests with several conversations that failed, whose conversations were sent again one by
            one.
    """

    requests: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    seconds: float = 0.0
    unreported_tokens: int = 0
    splits: int = 0


_NUMBERS = attrgetter(*Usage.__slots__)


def add_usages(usages: Iterable[Usage]) -> Usage:
    """Return the sum of costs.

    >>> add_usages([Usage(requests=1, prompt_tokens=7), Usage(requests=2)])
    Usage(requests=3, prompt_tokens=7, cached_tokens=0, output_tokens=0, seconds=0.0, unreported_tokens=0, splits=0)
    """
    return Usage(*map(sum, zip(*map(_NUMBERS, usages), strict=True)))


class _Cost(BaseModel):
    """The base of stored costs, which add up field by field: mappings name by name, sentences without repetitions."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    def __add__(self, other: Self) -> Self:
        """Return the sum of both."""
        return type(self)(**{name: _add(value, getattr(other, name)) for name, value in self})


def _add(one: Any, other: Any) -> Any:
    if isinstance(one, dict):
        both = {name: _add(one[name], other[name]) for name in one.keys() & other.keys()}
        return dict(sorted((one | other | both).items()))
    return tuple(dict.fromkeys(one + other)) if isinstance(one, tuple) else one + other


class CutOff(_Cost):
    """The replies that were cut off at their token limit.

    Args:
        fewest: Smallest number of tokens at which one was cut off.
        most: Largest number of tokens at which one was cut off.
    """

    replies: int = 0
    fewest: int = 0
    most: int = 0

    def __add__(self, other: "CutOff") -> "CutOff":
        """Return the replies of both."""
        if not (self.replies and other.replies):
            return self if self.replies else other
        fewest, most = min(self.fewest, other.fewest), max(self.most, other.most)
        return CutOff(replies=self.replies + other.replies, fewest=fewest, most=most)


class ModelWork(_Cost):
    """The work of a model in this process for a stage.

    Args:
        texts: Number of texts that the model read; cached ones are not read.
        cpu_seconds: CPU time that it took, over all threads and processes, with loading the model.
    """

    texts: int = 0
    cpu_seconds: float = 0.0


def work_of(model: object) -> ModelWork:
    """Return the work that a model has counted for a stage; none if it does not count it, as a model on a server.

    >>> work_of(object()).texts
    0
    """
    work = getattr(model, "work", None)
    return work if isinstance(work, ModelWork) else ModelWork()


class QuestionUsage(_Cost):
    """The cost of questions.

    Args:
        questions: Number of distinct questions.
        stored: Number of these questions whose answers were cached.
        requests: Number of requests sent to the judge's server for the others, including retries.
        prompt_tokens: Number of tokens sent.
        cached_tokens: Number of these tokens that the server found in its prefix cache.
        output_tokens: Number of tokens generated.
    """

    questions: int = 0
    stored: int = 0
    requests: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0


class KindUsage(QuestionUsage):
    """The cost of the questions of one kind.

    Args:
        failed: Number of unusable answers.
    """

    failed: int = 0


class StageUsage(QuestionUsage):
    """The cost of computing a stage table, and what the stage noticed about its texts.

    Args:
        seconds: Wall time of the stage.
        failed: Number of unusable answers by reason.
        warnings: Sentences about the server that answered.
        long_texts: Number of distinct texts of the stage that the embedder does not read at once.
        models: Work of the models in this process: `embedder`, `recognizer`.
        kinds: Cost by kind of question.
        unreported_tokens: Number of prompt tokens for which the server did not report how many were in its prefix
            cache.
        splits: Number of requests with several conversations that failed, whose conversations were sent again one by
            one.
    """

    seconds: float = 0.0
    failed: dict[str, int] = Field(default_factory=dict)
    cut_off: CutOff = CutOff()
    warnings: tuple[str, ...] = ()
    long_texts: int = 0
    models: dict[str, ModelWork] = Field(default_factory=dict)
    kinds: dict[str, KindUsage] = Field(default_factory=dict)
    unreported_tokens: int = 0
    splits: int = 0
