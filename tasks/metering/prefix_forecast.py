"""Predict which prompt tokens a server finds in its prefix cache, from the order in which prompts are asked."""

from itertools import islice
from threading import Lock

BLOCK_CHARACTERS = 64
"""Characters of a block of 16 tokens of English text; servers cache whole blocks."""

MOST_BLOCKS = 500_000
"""Number of blocks that are remembered, about 8 million tokens; beyond it, the older half is forgotten."""


class PrefixForecast:
    """A prefix cache that remembers the beginnings of prompts, but no model. May be used from several threads.

    It is that of one server with room for the questions of a few hundred rows. Several replicas, each with a cache of
    its own, and a smaller cache find less.
    """

    def __init__(self) -> None:
        self._blocks: dict[int, None] = {}
        self._lock = Lock()
        self._latest = ("", 0)  # whole blocks that prompts began with, all of them remembered, and their digest

    def count_cached(self, prompt: str, shared: int = 0) -> int:
        """Return the number of a prompt's characters that earlier prompts begin with too, and remember the prompt.

        Args:
            prompt: The whole prompt.
            shared: Number of characters that the next prompts probably begin with too; it only saves time.

        >>> forecast = PrefixForecast()
        >>> [forecast.count_cached(text, 100) for text in ("c" * 200, "c" * 130, "c" * 70 + "d" * 130)]
        [0, 128, 64]
        >>> [forecast.count_cached(text) for text in ("a" * 200, "a" * 150 + "b" * 50, "b" * 200)]
        [0, 128, 0]
        """
        with self._lock:
            known, digest = self._latest
            cached = len(known)
            if not prompt.startswith(known):
                digest, cached = 0, 0
            latest = shared // BLOCK_CHARACTERS * BLOCK_CHARACTERS
            for start in range(cached, len(prompt) - BLOCK_CHARACTERS + 1, BLOCK_CHARACTERS):
                if start == latest != len(known):
                    self._latest = prompt[:start], digest
                digest = hash((digest, prompt[start : start + BLOCK_CHARACTERS]))
                if digest in self._blocks:
                    cached += BLOCK_CHARACTERS  # a block follows from all before it, so that cached ones come first
                else:
                    self._blocks[digest] = None
            if len(self._blocks) > MOST_BLOCKS:
                self._blocks = dict(islice(self._blocks.items(), len(self._blocks) // 2, None))
        return cached
