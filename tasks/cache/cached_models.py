"""Cache the results of an embedder and of a recognizer: a model reads each text once."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import astuple
from threading import Lock
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from tasks.cache.answer_cache import AnswerCache
from tasks.cache.codec import ENTITIES, vectors
from tasks.cache.get_or_compute import CachedComputation, Compute, OnValue
from tasks.models.clients.observed_model import RecognizedModel
from tasks.models.embedders.protocol import Embedder, EmbedderIdentity, TextCoverage, coverage_of
from tasks.models.recognizers.protocol import Entity, EntityRecognizer, RecognizerIdentity, copies_text
from tasks.runtime import cancellation
from tasks.runtime.cpu_time import measure_cpu
from tasks.runtime.usage import ModelWork

T = TypeVar("T")

VERSION = 1
"""Incremented whenever a model of the same identity would return something else."""

EMBEDDER_VERSION = 2
"""The same for embedders. 2: texts that a model does not read at once are covered by windows."""

_BATCH = 1024
"""Texts per call of a model: enough to keep several servers busy, few enough that a killed run loses little."""


class CachedEmbedder:
    """An embedder that looks vectors up first: they are the main cost of an evaluation with the built-in judge."""

    def __init__(self, embedder: Embedder, cache: AnswerCache) -> None:
        self._embedder = embedder
        self._cache = cache
        self._meter = _Meter()

    @property
    def identity(self) -> EmbedderIdentity:
        """The identity of the model."""
        return self._embedder.identity

    @property
    def recognized(self) -> RecognizedModel | None:
        """The model of the embedding server, compared with those seen before; None for an embedder without a server."""
        return getattr(self._embedder, "recognized", None)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Sentences for users about the embedding server."""
        return tuple(getattr(self._embedder, "warnings", ()))

    @property
    def work(self) -> ModelWork:
        """The texts that the embedder has read for this object, and their CPU time."""
        return self._meter.work

    def coverage(self, texts: Sequence[str]) -> list[TextCoverage]:
        """Return how the embedder covers each text."""
        return coverage_of(self._embedder, texts)

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return vectors of shape (len(texts), dimensions), in the order of the texts; embed equal texts once."""
        identity = self.identity
        codec = vectors(identity.dimensions)
        if not texts:
            return np.empty((0, identity.dimensions), np.float32)
        embed: Compute[NDArray[np.float32]] = _in_batches(self._embedder.embed, texts, self._meter)
        fields = astuple(identity) if identity.served else astuple(identity)[:-1]  # the key of a model without a server
        parts = (str(EMBEDDER_VERSION), *map(str, fields))
        return np.stack(
            CachedComputation(self._cache, codec, embed).values([codec.key(*parts, text) for text in texts])
        )


class CachedRecognizer:
    """An entity recognizer that looks entities up first."""

    def __init__(self, recognizer: EntityRecognizer, cache: AnswerCache) -> None:
        self._recognizer = recognizer
        self._cache = cache
        self._meter = _Meter()

    @property
    def identity(self) -> RecognizerIdentity:
        """The identity of the model."""
        return self._recognizer.identity

    @property
    def copies_text(self) -> bool:
        """True if each entity is a part of the text, as written there."""
        return copies_text(self._recognizer)

    @property
    def work(self) -> ModelWork:
        """The texts that the recognizer has read for this object, and their CPU time."""
        return self._meter.work

    def entities(self, texts: Sequence[str]) -> list[list[Entity]]:
        """Return the entities of each text, in the order of the texts and of their appearance, with repetitions."""
        read = _in_batches(self._recognizer.entities, texts, self._meter)
        parts = (str(VERSION), *astuple(self.identity))
        return CachedComputation(self._cache, ENTITIES, read).values([ENTITIES.key(*parts, text) for text in texts])


class _Meter:
    """The work of a model, counted from several threads."""

    def __init__(self) -> None:
        self.work = ModelWork()
        self._lock = Lock()

    def add(self, texts: int, cpu_seconds: float) -> None:
        with self._lock:
            self.work += ModelWork(texts=texts, cpu_seconds=cpu_seconds)


def _in_batches(model: Callable[[Sequence[str]], Iterable[T]], texts: Sequence[str], meter: _Meter) -> Compute[T]:
    """Return a computation that calls a model with one batch at a time and reports the values after each batch."""

    def compute(positions: Sequence[int], on_value: OnValue[T]) -> list[T]:
        values: list[T] = []
        for start in range(0, len(positions), _BATCH):
            cancellation.current_cancellation().check()
            batch = [texts[position] for position in positions[start : start + _BATCH]]
            with measure_cpu() as spent:
                found = list(model(batch))
            meter.add(len(batch), spent.seconds)
            for value in found:
                on_value(len(values), value)
                values.append(value)
        return values

    return compute
