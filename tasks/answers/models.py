"""An embedder and a recogniser of entities that remember: no text is read twice by one model."""

from collections.abc import Sequence
from dataclasses import astuple

import numpy as np
from numpy.typing import NDArray

from tasks.answers.codec import ENTITIES, vectors
from tasks.answers.recall import Keep, Recall
from tasks.answers.store import AnswerStore
from tasks.embed.protocol import Embedder, EmbedderIdentity
from tasks.ner.protocol import Entity, EntityRecognizer, RecognizerIdentity

VERSION = 1
"""Raised whenever a model of the same identity would give something else."""

_BATCH = 1024
"""Texts a call of a model: enough to keep several servers busy, few enough for a killed run to lose."""


class StoredEmbedder:
    """Looks vectors up before it embeds: embedding is most of what an evaluation by the builtin judge costs.

    Args:
        embedder: embeds what is not in the store.
        store: where vectors are kept.
    """

    def __init__(self, embedder: Embedder, store: AnswerStore) -> None:
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

        def embed(positions: Sequence[int], kept: Keep[NDArray[np.float32]]) -> list[NDArray[np.float32]]:
            found: list[NDArray[np.float32]] = []
            for start in range(0, len(positions), _BATCH):
                batch = self._embedder.embed([texts[position] for position in positions[start : start + _BATCH]])
                for vector in batch:
                    kept(len(found), vector)
                    found.append(vector)
            return found

        if not texts:
            return np.empty((0, identity.dimensions), np.float32)
        parts = (str(VERSION), *map(str, astuple(identity)))
        return np.stack(Recall(self._store, codec, embed).values([codec.key(*parts, text) for text in texts]))


class StoredRecognizer:
    """Looks entities up before it has a text read.

    Args:
        recognizer: reads what is not in the store.
        store: where entities are kept.
    """

    def __init__(self, recognizer: EntityRecognizer, store: AnswerStore) -> None:
        self._recognizer = recognizer
        self._store = store

    @property
    def identity(self) -> RecognizerIdentity:
        """Which model."""
        return self._recognizer.identity

    def entities(self, texts: Sequence[str]) -> list[list[Entity]]:
        """The entities of each text, in the order of the texts and of their appearance; repeated ones repeated."""

        def read(positions: Sequence[int], kept: Keep[list[Entity]]) -> list[list[Entity]]:
            found: list[list[Entity]] = []
            for start in range(0, len(positions), _BATCH):
                batch = [texts[position] for position in positions[start : start + _BATCH]]
                for entities in self._recognizer.entities(batch):
                    kept(len(found), entities)
                    found.append(entities)
            return found

        parts = (str(VERSION), *astuple(self.identity))
        return Recall(self._store, ENTITIES, read).values([ENTITIES.key(*parts, text) for text in texts])
