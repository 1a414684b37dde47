"""The probability of each label, from the log-probabilities of a reply's tokens.

Tokens are not labels: a label may be several tokens, and the beginnings of a label ("y", "ye", " Yes") are tokens of
their own. So probability goes to a label from every token that, with the tokens before it, begins that label and no
other; upper and lower case and spaces before it make no difference. A token that begins several labels ("score" of
"score1" and "score2") decides nothing: the next token does, for the label that was written. Probability of the rest
of such a token's labels is not known and left out, as is that of tokens that begin no label. What is found is
renormalised over the labels.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

VERSION = 1
"""Raised whenever the same tokens would give other probabilities."""

NEGLIGIBLE = 0.01
"""Share of the probability of all labels that a label missing among the top tokens may have had at most."""

_PIECE = "\ufffd"
"""How a server writes a token that is a piece of a character: which character is not known."""


@dataclass(frozen=True, slots=True)
class TokenStep:
    """One token of a reply.

    Args:
        text: the token.
        probability: its probability.
        top: the most probable tokens in its place, itself perhaps among them, with their probabilities.
    """

    text: str
    probability: float
    top: Sequence[tuple[str, float]] = ()


def label_probabilities(
    steps: Sequence[TokenStep], written: Mapping[str, str], frame: re.Pattern[str] | None = None
) -> dict[str, float] | None:
    """The probability of each label, renormalised over the labels.

    However many top tokens a server was asked for, it may give fewer, and a label may be among the others. That has at
    most what all of the top tokens leave, and no more than the least of them: it counts as 0 if that can not matter,
    else nothing is known.

    Args:
        steps: the tokens of the reply.
        written: label -> how a reply writes it.
        frame: what comes before the label, with the group `rest` for what follows.

    Returns:
        Label -> probability, of sum 1; None if they are not known.

    >>> labels = {"yes": "yes", "no": "no"}
    >>> top = [("yes", 0.5), ("y", 0.125), (" Yes", 0.125), ("no", 0.25), ("The", 0.0)]
    >>> label_probabilities([TokenStep("yes", 0.5, top)], labels)
    {'yes': 0.75, 'no': 0.25}
    >>> split = [TokenStep("score", 1.0, [("score", 1.0)]), TokenStep("2", 0.5, [("2", 0.5), ("1", 0.25), ("3", 0.25)])]
    >>> label_probabilities(split, {"a": "score1", "b": "score2"})["b"]
    0.6666666666666666
    """
    walk = _Walk(written, frame)
    for step in steps:
        walk.take(step)
        if walk.is_over:
            break
    else:
        walk.end()
    total = math.fsum(walk.found.values())
    missing = any(probability == 0 for probability in walk.found.values())
    unknown = max(walk.pieces, walk.unseen if missing else 0.0)
    if total <= 0 or unknown > NEGLIGIBLE * total:
        return None
    return {label: probability / total for label, probability in walk.found.items()}


class _Walk:
    """Goes along the tokens of a reply and collects what belongs to which label.

    `found` is the probability of each label so far, `unseen` the most that a missing label may have had, `pieces` the
    probability of tokens that may belong to any label.
    """

    def __init__(self, written: Mapping[str, str], frame: re.Pattern[str] | None) -> None:
        folded = {label: text.casefold() for label, text in written.items()}
        self._folds = len(set(folded.values())) == len(folded)
        self._written = folded if self._folds else written
        self._frame = frame
        self._text = ""
        self._reached = 1.0
        self.found = dict.fromkeys(written, 0.0)
        self.unseen = 0.0
        self.pieces = 0.0
        self.is_over = False

    def take(self, step: TokenStep) -> None:
        """Takes one more token."""
        told = _others(step)
        every = (*told, (step.text, step.probability))
        self.pieces += self._reached * math.fsum(probability for text, probability in every if _PIECE in text)
        others = [(self._begun_by(self._text + text), probability) for text, probability in told]
        chosen = self._begun_by(self._text + step.text)
        self._add_finished([*others, (chosen, step.probability)])
        for labels, probability in others:
            if len(labels) == 1:
                self.found[labels[0]] += self._reached * probability
        if self._beginning(self._text + step.text):
            left = max(0.0, 1.0 - math.fsum(probability for _, probability in every))
            self.unseen = max(self.unseen, self._reached * min([left, *(probability for _, probability in step.top)]))
        self._text += step.text
        self._reached *= step.probability
        if len(chosen) == 1:
            self.found[chosen[0]] += self._reached
        self.is_over = len(chosen) <= 1

    def end(self) -> None:
        """The reply ends here, so a label that begins others is meant itself."""
        label = self._finished()
        if label is not None:
            self.found[label] += self._reached

    def _add_finished(self, tokens: Sequence[tuple[Sequence[str], float]]) -> None:
        """What goes on to no longer label belongs to the label that stands there already."""
        label = self._finished()
        if label is not None:
            longer = math.fsum(probability for labels, probability in tokens if labels)
            self.found[label] += self._reached * max(0.0, 1.0 - longer)

    def _finished(self) -> str | None:
        beginning = self._beginning(self._text)
        return next((label for label, text in self._written.items() if text == beginning), None)

    def _begun_by(self, text: str) -> list[str]:
        beginning = self._beginning(text)
        return [label for label, written in self._written.items() if written.startswith(beginning)]

    def _beginning(self, text: str) -> str:
        """What a reply has of its label so far."""
        if self._frame is not None:
            found = self._frame.fullmatch(text)
            text = found["rest"] if found else ""
        return text.lstrip().casefold() if self._folds else text.lstrip()


def _others(step: TokenStep) -> list[tuple[str, float]]:
    """The top tokens without the one that was written."""
    others = list(step.top)
    for i, (text, _) in enumerate(others):
        if text == step.text:
            del others[i]
            break
    return others
