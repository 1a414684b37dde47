"""The protocol of models that run in this process, and the encoded texts that they read."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tasks.options.profile import Output


@dataclass(frozen=True, slots=True)
class Encoded:
    """One text or one pair of texts as a model reads it, special tokens included.

    Args:
        ids: Ids of the tokens.
        type_ids: 0 for the tokens of the first text, 1 for those of the second.
        second: Positions of the tokens of the second text, and where they are in it; empty without a second text.
    """

    ids: tuple[int, ...]
    type_ids: tuple[int, ...]
    second: tuple[tuple[int, int, int], ...] = ()


class LocalModel(Protocol):
    """A model with its tokenizer. Not thread-safe."""

    @property
    def revision(self) -> str:
        """The digest of its files, or its commit at the hub."""

    @property
    def software(self) -> str:
        """The library that runs it, its version and the device."""

    @property
    def window(self) -> int | None:
        """The largest number of tokens that it reads at once; None if it has no limit."""

    def count(self, texts: Sequence[str]) -> list[int]:
        """Return the number of tokens of each text, without special ones."""

    def encode(self, first: str, second: str | None) -> Encoded:
        """Return a text or a pair as the model reads it; nothing is cut."""

    def scores(self, batch: Sequence[Encoded], output: Output, decoder_start: int) -> list[NDArray[np.float64]]:
        """Return the scores of the classes for each text.

        Args:
            batch: Texts of about equal length.
            output: Place of the scores; for `every_token` one row per token, otherwise one number per class.
            decoder_start: For `decoder_step`, the token that decoding starts from.
        """
