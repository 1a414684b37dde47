"""Count the cost of answers and stages, and what stages noticed about the texts, added up over shards."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from operator import attrgetter

from pydantic import BaseModel, ConfigDict, Field


@dataclass(frozen=True, slots=True)
class Usage:
    """The cost of an answer. Requests and tokens are 0 if no language model was asked.

    Args:
        requests: Number of requests sent to a server, including retries.
        prompt_tokens: Number of tokens sent.
        cached_tokens: Number of these tokens that the server found in its prefix cache.
        output_tokens: Number of tokens generated.
        seconds: Time from the question to its answer.
        untold_tokens: Number of prompt tokens of which the server did not tell how many were in its prefix cache, as
            for several conversations in one request.
        splits: Number of requests with several conversations that failed, whose conversations were sent again one by
            one.
    """

    requests: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    seconds: float = 0.0
    untold_tokens: int = 0
    splits: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        """Return the sum of two costs."""
        return Usage(
            requests=self.requests + other.requests,
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            seconds=self.seconds + other.seconds,
            untold_tokens=self.untold_tokens + other.untold_tokens,
            splits=self.splits + other.splits,
        )


_NUMBERS = attrgetter(*Usage.__slots__)


def add_usages(usages: Iterable[Usage]) -> Usage:
    """Return the sum of costs.

    Args:
        usages: Costs of answers.

    >>> add_usages([Usage(requests=1, prompt_tokens=7), Usage(requests=2)])
    Usage(requests=3, prompt_tokens=7, cached_tokens=0, output_tokens=0, seconds=0.0, untold_tokens=0, splits=0)
    """
    return Usage(*map(sum, zip(*map(_NUMBERS, usages), strict=True)))


class CutOff(BaseModel):
    """The replies that were cut off at their token limit.

    Args:
        replies: Number of replies.
        fewest: Smallest number of tokens at which one was cut off.
        most: Largest number of tokens at which one was cut off.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    replies: int = 0
    fewest: int = 0
    most: int = 0

    def __add__(self, other: "CutOff") -> "CutOff":
        """Return the replies of both."""
        if not (self.replies and other.replies):
            return self if self.replies else other
        fewest, most = min(self.fewest, other.fewest), max(self.most, other.most)
        return CutOff(replies=self.replies + other.replies, fewest=fewest, most=most)


class ModelWork(BaseModel):
    """The work of a model in this process for a stage.

    Args:
        texts: Number of texts that the model read; cached ones are not read.
        cpu_seconds: CPU time that it took, over all threads and processes, with loading the model.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    texts: int = 0
    cpu_seconds: float = 0.0

    def __add__(self, other: "ModelWork") -> "ModelWork":
        """Return the work of both."""
        return ModelWork(texts=self.texts + other.texts, cpu_seconds=self.cpu_seconds + other.cpu_seconds)


def work_of(model: object) -> ModelWork:
    """Return the work that a model has counted for a stage; none if it does not count it, as a model on a server.

    >>> work_of(object()).texts
    0
    """
    work = getattr(model, "work", None)
    return work if isinstance(work, ModelWork) else ModelWork()


class KindUsage(BaseModel):
    """The cost of the questions of one kind.

    Args:
        questions: Number of distinct questions.
        stored: Number of these questions whose answers were cached.
        requests: Number of requests sent to the judge's server for the others, including retries.
        prompt_tokens: Number of tokens sent.
        cached_tokens: Number of these tokens that the server found in its prefix cache.
        output_tokens: Number of tokens generated.
        failed: Number of unusable answers.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    questions: int = 0
    stored: int = 0
    requests: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    failed: int = 0

    def __add__(self, other: "KindUsage") -> "KindUsage":
        """Return the sum of two costs."""
        return KindUsage(**{name: getattr(self, name) + getattr(other, name) for name in KindUsage.model_fields})


class StageUsage(BaseModel):
    """The cost of computing a stage table, and what the stage noticed about its texts.

    Args:
        questions: Number of distinct questions of the stage.
        stored: Number of these questions whose answers were cached.
        requests: Number of requests sent to the judge's server for the others, including retries.
        prompt_tokens: Number of tokens sent.
        cached_tokens: Number of these tokens that the server found in its prefix cache.
        output_tokens: Number of tokens generated.
        seconds: Wall time of the stage.
        failed: Number of unusable answers by reason.
        cut_off: Replies that were cut off at their token limit.
        warnings: Sentences about the server that answered.
        long_texts: Number of distinct texts of the stage that the embedder does not read at once.
        languages: Number of rows by language of their texts; empty for a stage that does not detect it.
        models: Work of the models in this process: `embedder`, `recognizer`.
        kinds: Cost by kind of question.
        untold_tokens: Number of prompt tokens of which the server did not tell how many were in its prefix cache.
        splits: Number of requests with several conversations that failed, whose conversations were sent again one by
            one.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    questions: int = 0
    stored: int = 0
    requests: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    seconds: float = 0.0
    failed: dict[str, int] = Field(default_factory=dict)
    cut_off: CutOff = CutOff()
    warnings: tuple[str, ...] = ()
    long_texts: int = 0
    languages: dict[str, int] = Field(default_factory=dict)
    models: dict[str, ModelWork] = Field(default_factory=dict)
    kinds: dict[str, KindUsage] = Field(default_factory=dict)
    untold_tokens: int = 0
    splits: int = 0

    def __add__(self, other: "StageUsage") -> "StageUsage":
        """Return the sum of two costs."""
        return StageUsage(
            questions=self.questions + other.questions,
            stored=self.stored + other.stored,
            requests=self.requests + other.requests,
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            seconds=self.seconds + other.seconds,
            cut_off=self.cut_off + other.cut_off,
            warnings=tuple(dict.fromkeys((*self.warnings, *other.warnings))),
            failed=_add_counts(self.failed, other.failed),
            long_texts=self.long_texts + other.long_texts,
            languages=_add_counts(self.languages, other.languages),
            models=_add_work(self.models, other.models),
            kinds=_add_kinds(self.kinds, other.kinds),
            untold_tokens=self.untold_tokens + other.untold_tokens,
            splits=self.splits + other.splits,
        )


def _add_work(one: Mapping[str, ModelWork], other: Mapping[str, ModelWork]) -> dict[str, ModelWork]:
    return {name: one.get(name, ModelWork()) + other.get(name, ModelWork()) for name in sorted({*one, *other})}


def _add_counts(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    return {name: one.get(name, 0) + other.get(name, 0) for name in sorted({*one, *other})}


def _add_kinds(one: Mapping[str, KindUsage], other: Mapping[str, KindUsage]) -> dict[str, KindUsage]:
    return {kind: one.get(kind, KindUsage()) + other.get(kind, KindUsage()) for kind in sorted({*one, *other})}
