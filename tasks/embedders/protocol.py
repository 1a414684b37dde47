"""The protocols of embedders and cross-encoders."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class EmbedderIdentity:
    """The identity of an embedder: everything about it that can change its vectors.

    Args:
        backend: `minilm`, `huggingface`, `server` or the name of a plugin.
        model: The name of the model.
        revision: The revision or digest of the model.
        dimensions: The length of a vector.
    """

    backend: str
    model: str
    revision: str
    dimensions: int


class Embedder(Protocol):
    """A model that turns texts into vectors."""

    @property
    def identity(self) -> EmbedderIdentity:
        """The identity of the model."""

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return vectors of shape (len(texts), dimensions), in order. Equal texts are embedded once."""


class CrossEncoder(Protocol):
    """A model that scores the similarity of pairs of texts directly."""

    @property
    def identity(self) -> EmbedderIdentity:
        """The identity of the model."""

    def similarity(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float32]:
        """Return the similarity of each pair, in [0, 1], in the order of the pairs."""
