"""The protocols of embedders and cross-encoders."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T", str, tuple[str, str])


@dataclass(frozen=True, slots=True)
class EmbedderIdentity:
    """The identity of an embedder: everything about it that can change its vectors.

    Args:
        backend: `minilm`, `huggingface`, `server` or the name of a plugin.
        revision: The revision or digest of the model.
        dimensions: The length of a vector.
        languages: ISO 639 codes of the languages on which it was measured; empty if that is not known.
        served: Digest of what a server tells of its model and how it replies; empty for a model without a server.
    """

    backend: str
    model: str
    revision: str
    dimensions: int
    languages: tuple[str, ...] = ()
    served: str = ""


@dataclass(frozen=True, slots=True)
class TextCoverage:
    """The coverage of a text by an embedder, or of a pair by a cross-encoder.

    Args:
        windows: Number of windows that cover the text; 1 if the model reads it at once.
        problem: Reason why the text has no vector that says something about it; None if it has one.
    """

    windows: int = 1
    problem: str | None = None


class Embedder(Protocol):
    """A model that turns texts into vectors.

    A vector covers the whole text: an embedder whose model reads less at once averages over windows, or fails. An
    embedder may also have `coverage(texts) -> list[TextCoverage]`, which says how it covers each text.
    """

    @property
    def identity(self) -> EmbedderIdentity:
        """The identity of the model."""

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return vectors of shape (len(texts), dimensions), in order. Equal texts are embedded once."""


class CrossEncoder(Protocol):
    """A model that scores the similarity of pairs of texts directly.

    A cross-encoder may also have `coverage(pairs) -> list[TextCoverage]`, which says how it covers each pair.
    """

    @property
    def identity(self) -> EmbedderIdentity:
        """The identity of the model."""

    def similarity(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float32]:
        """Return the similarity of each pair, in [0, 1], in the order of the pairs."""


def coverage_of(model: object, texts: Sequence[T]) -> list[TextCoverage]:
    """Return how an embedder covers texts, or a cross-encoder pairs; one window each if it does not say.

    >>> coverage_of(object(), ["It rains."])
    [TextCoverage(windows=1, problem=None)]
    """
    coverage = getattr(model, "coverage", None)
    return [TextCoverage()] * len(texts) if coverage is None else list(coverage(texts))
