"""An embedder and a recogniser of entities that remember: no text is read twice by one model."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import astuple
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from tasks.cache.answer_cache import AnswerCache
from tasks.cache.codec import ENTITIES, vectors
from tasks.cache.get_or_compute import CachedComputation, Compute, Keep
from tasks.embedders.protocol import Embedder, EmbedderIdentity
from tasks.recognizers.protocol import Entity, EntityRecognizer, RecognizerIdentity
from tasks.runtime import cancellation as interruption

T = TypeVar("T")

VERSION = 1
"""Raised whenever a model of the same identity would give something else."""

_BATCH = 1024
"""Texts a call of a model: enough to keep several servers busy, few enough for a killed run to lose."""


class CachedEmbedder:
    """Looks vectors up before it embeds: embedding is most of what an evaluation by the builtin judge costs.

    Args:
        embedder: embeds what is not in the store.
        store: where vectors are kept.
    """

    def __init__(self, embedder: Embedder, store: AnswerCache) -> None:
        self._embedder = embedder
        self._store = store

    @property
    def identity(self) -> EmbedderIdentity:
        """Which model."""
        return self._embedder.identity

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of shape (len(texts), dimensions), in the order of the texts. Equal texts are embedded once."""
        identity = self.identity
        codec = vectors(identity.dimensions)

        if not texts:
            return np.empty((0, identity.dimensions), np.float32)
        embed: Compute[NDArray[np.float32]] = _in_batches(self._embedder.embed, texts)
        parts = (str(VERSION), *map(str, astuple(identity)))
        return np.stack(
            CachedComputation(self._store, codec, embed).values([codec.key(*parts, text) for text in texts])
        )


class CachedRecognizer:
    """Looks entities up before it has a text read.

    Args:
        recognizer: reads what is not in the store.
        store: where entities are kept.
    """

    def __init__(self, recognizer: EntityRecognizer, store: AnswerCache) -> None:
        self._recognizer = recognizer
        self._store = store

    @property
    def identity(self) -> RecognizerIdentity:
        """Which model."""
        return self._recognizer.identity

    def entities(self, texts: Sequence[str]) -> list[list[Entity]]:
        """The entities of each text, in the order of the texts and of their appearance; repeated ones repeated."""
        read = _in_batches(self._recognizer.entities, texts)
        parts = (str(VERSION), *astuple(self.identity))
        return CachedComputation(self._store, ENTITIES, read).values([ENTITIES.key(*parts, text) for text in texts])


def _in_batches(model: Callable[[Sequence[str]], Iterable[T]], texts: Sequence[str]) -> Compute[T]:
    """Has the texts at some positions read, a batch a call, each value handed on as soon as its batch is there."""

    def compute(positions: Sequence[int], kept: Keep[T]) -> list[T]:
        found: list[T] = []
        for start in range(0, len(positions), _BATCH):
            interruption.current_cancellation().check()
            for value in model([texts[position] for position in positions[start : start + _BATCH]]):
                kept(len(found), value)
                found.append(value)
        return found

    return compute
