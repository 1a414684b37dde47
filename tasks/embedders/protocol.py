"""What every embedder is: texts in, vectors out."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class EmbedderIdentity:
    """Everything about an embedder that can change its vectors.

    Args:
        backend: `minilm`, `huggingface` or `server`.
        model: the model's name.
        revision: the model's revision or digest.
        dimensions: length of a vector.
    """

    backend: str
    model: str
    revision: str
    dimensions: int


class Embedder(Protocol):
    """Turns texts into vectors."""

    @property
    def identity(self) -> EmbedderIdentity:
        """Which model."""

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of shape (len(texts), dimensions), in the order of the texts. Equal texts are embedded once."""


class CrossEncoder(Protocol):
    """Scores pairs of texts directly."""

    @property
    def identity(self) -> EmbedderIdentity:
        """Which model."""

    def similarity(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float32]:
        """Similarity of each pair in [0, 1], in the order of the pairs."""
