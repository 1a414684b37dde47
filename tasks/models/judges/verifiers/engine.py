"""The protocol of engines, which run the model of a verifier: on a server or in this process."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from tasks.models.judges.verifiers.probabilities import Verdict


@dataclass(frozen=True, slots=True)
class ClaimPair:
    """A premise and a claim, guarded, and short enough for one request."""

    premise: str
    claim: str


OnVerdict: TypeAlias = Callable[[int, Verdict], None]
"""Called from any thread with the position of a pair and the verdict on it."""


class Engine(Protocol):
    """A model that reads one premise and one claim at a time."""

    @property
    def window(self) -> int:
        """The largest number of tokens of a request, with its reply."""

    @property
    def overhead(self) -> int:
        """The number of tokens of a request besides premise and claim, with its reply."""

    def count(self, texts: Sequence[str]) -> list[int]:
        """Return the number of tokens of each text, or an upper bound."""

    def ask(self, pairs: Sequence[ClaimPair], on_verdict: OnVerdict) -> None:
        """Ask about each pair, and call back with each verdict before returning.

        Raises:
            JudgeError: The model cannot be used any more.
        """

    def close(self) -> None:
        """Release what the engine holds."""
