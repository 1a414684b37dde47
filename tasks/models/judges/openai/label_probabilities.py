"""Compute the probability of each label from the log-probabilities of a reply's tokens.

Tokens are not labels: a label may consist of several tokens, and its prefixes ("y", "ye", " Yes") are tokens too. A
token counts for a label if, together with the tokens before it, it is a prefix of that label and of no other; case
and leading spaces are ignored. A token that is a prefix of several labels ("score" of "score1" and "score2") counts
for none; the next token decides, for the label that was written. The probability of the other labels of such a token
is unknown and left out, as is the probability of tokens that are a prefix of no label. The result is normalized over
the labels.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

VERSION = 2
"""Increase it whenever the same tokens would give other probabilities, or another label."""

NEGLIGIBLE = 0.01
"""Maximum share of the labels' total probability that a label missing from the top tokens may have had."""

_MOST_KEPT = 4096
"""Beginnings of replies for which the possible labels are kept, per set of labels."""

_PARTIAL_CHARACTER = "\ufffd"
"""The text of a token that is part of an unknown character."""


@dataclass(frozen=True, slots=True)
class TokenStep:
    """One token of a reply.

    Args:
        top: The most probable tokens in its place with their probabilities; may include the token itself.
    """

    text: str
    probability: float
    top: Sequence[tuple[str, float]] = ()


def label_probabilities(
    steps: Sequence[TokenStep], texts: Mapping[str, str], frame: re.Pattern[str] | None = None
) -> dict[str, float] | None:
    """Return the probability of each label, normalized over the labels.

    A server may return fewer top tokens than it was asked for, so a label may be missing from them. Its probability
    is at most what the top tokens leave, and at most that of the least probable top token. The label counts as 0 if
    this bound is negligible; otherwise the probabilities are unknown.

    Args:
        texts: Label -> its text in a reply.
        frame: Pattern of the text before the label, with the group `rest` for what follows.

    Returns:
        Label -> probability, of sum 1; None if the probabilities are unknown.

    >>> labels = {"yes": "yes", "no": "no"}
    >>> top = [("yes", 0.5), ("y", 0.125), (" Yes", 0.125), ("no", 0.25), ("The", 0.0)]
    >>> label_probabilities([TokenStep("yes", 0.5, top)], labels)
    {'yes': 0.75, 'no': 0.25}
    >>> split = [TokenStep("score", 1.0, [("score", 1.0)]), TokenStep("2", 0.5, [("2", 0.5), ("1", 0.25), ("3", 0.25)])]
    >>> label_probabilities(split, {"a": "score1", "b": "score2"})["b"]
    0.6666666666666666
    """
    matcher = _LabelMatcher(texts, frame)
    for step in steps:
        matcher.add(step)
        if matcher.is_done:
            break
    else:
        matcher.end()
    total = math.fsum(matcher.mass.values())
    has_missing = any(probability == 0 for probability in matcher.mass.values())
    unknown = max(matcher.partial, matcher.unseen if has_missing else 0.0)
    if total <= 0 or unknown > NEGLIGIBLE * total:
        return None
    return {label: probability / total for label, probability in matcher.mass.items()}


def decide_label(written: str, probabilities: Mapping[str, float] | None) -> str:
    """Return the label of a reply: the most probable one, or the written one if no other is more probable.

    The written label is one spelling, chosen by its own probability or at random, while a label has the probability of
    all its spellings: a reply "yes" of 0.39 may stand against "No" and "no", which have 0.61 together.

    >>> decide_label("yes", {"yes": 0.39, "no": 0.61}), decide_label("yes", {"yes": 0.5, "no": 0.5})
    ('no', 'yes')
    >>> decide_label("yes", None)
    'yes'

    Args:
        written: Label in the reply.
        probabilities: Label -> probability; None if the probabilities are unknown.
    """
    return written if probabilities is None else max((written, *probabilities), key=lambda label: probabilities[label])


@dataclass(frozen=True, slots=True)
class LabelDistribution:
    """The probabilities of the labels.

    Args:
        by_label: Label -> probability, of sum 1; None if the probabilities are unknown.
    """

    by_label: dict[str, float] | None


def single_token_probabilities(
    written: tuple[str, float], top: Sequence[tuple[str, float]], labels: tuple[str, ...]
) -> LabelDistribution | None:
    """Return what `label_probabilities` returns for a reply of one token that decides for a label, in less time.

    Args:
        written: The token of the reply and its probability.
        top: The most probable tokens in its place with their probabilities; may include the token itself.
        labels: Labels, whose texts in a reply are themselves.

    Returns:
        The probabilities; None if one token does not decide, or a token is a part of a character.

    >>> single_token_probabilities(("yes", 0.5), [("yes", 0.5), ("y", 0.25), ("no", 0.25)], ("yes", "no")).by_label
    {'yes': 0.75, 'no': 0.25}
    """
    starting_with = _plain_labels(labels).starting_with
    text, probability = written
    chosen = starting_with(text)
    if len(chosen) != 1 or len(labels) < 2 or "" in labels or _PARTIAL_CHARACTER in text:
        return None
    mass = dict.fromkeys(labels, 0.0)
    others: list[float] = []
    is_left_out = False
    for token, each in top:
        if token == text and not is_left_out:
            is_left_out = True
            continue
        if _PARTIAL_CHARACTER in token:
            return None
        others.append(each)
        found = starting_with(token)
        if len(found) == 1:
            mass[found[0]] += each
    mass[chosen[0]] += probability
    total = math.fsum(mass.values())
    unseen = 0.0
    if 0.0 in mass.values():
        left = max(0.0, 1.0 - math.fsum([*others, probability]))
        unseen = min([left, *[each for _, each in top]])
    if total <= 0 or unseen > NEGLIGIBLE * total:
        return LabelDistribution(None)
    return LabelDistribution({label: each / total for label, each in mass.items()})


class _LabelMatcher:
    """An accumulator of label probabilities over the tokens of a reply.

    `mass` holds the probability of each label so far, `unseen` the upper bound for a label missing from the top
    tokens, `partial` the probability of tokens that may belong to any label.
    """

    def __init__(self, texts: Mapping[str, str], frame: re.Pattern[str] | None) -> None:
        self._labels = _labels(tuple(texts.items()), frame)
        self._text = ""
        self._reached = 1.0
        self.mass = dict.fromkeys(texts, 0.0)
        self.unseen = 0.0
        self.partial = 0.0
        self.is_done = False

    def add(self, step: TokenStep) -> None:
        """Add the next token."""
        alternatives = _alternatives(step)
        every = (*alternatives, (step.text, step.probability))
        if _PARTIAL_CHARACTER in "".join([text for text, _ in every]):
            self.partial += self._reached * math.fsum(p for text, p in every if _PARTIAL_CHARACTER in text)
        written, starting_with = self._text, self._labels.starting_with
        others = [(starting_with(written + text), probability) for text, probability in alternatives]
        chosen = starting_with(written + step.text)
        self._add_finished([*others, (chosen, step.probability)])
        for labels, probability in others:
            if len(labels) == 1:
                self.mass[labels[0]] += self._reached * probability
        if self._labels.prefix(written + step.text):
            left = max(0.0, 1.0 - math.fsum(probability for _, probability in every))
            self.unseen = max(self.unseen, self._reached * min([left, *(probability for _, probability in step.top)]))
        self._text += step.text
        self._reached *= step.probability
        if len(chosen) == 1:
            self.mass[chosen[0]] += self._reached
        self.is_done = len(chosen) <= 1

    def end(self) -> None:
        """End the reply: a label that is a prefix of others counts itself."""
        label = self._finished()
        if label is not None:
            self.mass[label] += self._reached

    def _add_finished(self, tokens: Sequence[tuple[Sequence[str], float]]) -> None:
        """Add the probability of tokens that do not continue to a longer label to the label completed before them."""
        label = self._finished()
        if label is not None:
            longer = math.fsum(probability for labels, probability in tokens if labels)
            self.mass[label] += self._reached * max(0.0, 1.0 - longer)

    def _finished(self) -> str | None:
        return self._labels.finished_by(self._text)


class _Labels:
    """The labels of a question, and which of them a beginning of a reply may become.

    Tokens repeat from reply to reply, so what was found for the beginning of one is kept for the next.

    Args:
        texts: Label -> its text in a reply.
        frame: Pattern of the text before the label, with the group `rest` for what follows.
    """

    def __init__(self, texts: Mapping[str, str], frame: re.Pattern[str] | None) -> None:
        folded = {label: text.casefold() for label, text in texts.items()}
        self._ignores_case = len(set(folded.values())) == len(folded)
        self._texts = folded if self._ignores_case else texts
        self._frame = frame
        self._found: dict[str, list[str]] = {}

    def starting_with(self, text: str) -> list[str]:
        """Return the labels that a reply with this beginning may become; do not change the list."""
        found = self._found.get(text)
        if found is None:
            prefix = self.prefix(text)
            found = [label for label, label_text in self._texts.items() if label_text.startswith(prefix)]
            if len(self._found) < _MOST_KEPT:
                self._found[text] = found
        return found

    def finished_by(self, text: str) -> str | None:
        """Return the label that a reply is; None if it is none."""
        prefix = self.prefix(text)
        return next((label for label, text in self._texts.items() if text == prefix), None)

    def prefix(self, text: str) -> str:
        """Return the part of the label that the beginning of a reply has."""
        if self._frame is not None:
            framed = self._frame.fullmatch(text)
            text = framed["rest"] if framed else ""
        return text.lstrip().casefold() if self._ignores_case else text.lstrip()


@lru_cache(maxsize=256)
def _labels(texts: tuple[tuple[str, str], ...], frame: re.Pattern[str] | None) -> _Labels:
    return _Labels(dict(texts), frame)


@lru_cache(maxsize=256)
def _plain_labels(labels: tuple[str, ...]) -> _Labels:
    return _Labels({label: label for label in labels}, None)


def _alternatives(step: TokenStep) -> list[tuple[str, float]]:
    """Return the top tokens without the one that was written."""
    others = list(step.top)
    for i, (text, _) in enumerate(others):
        if text == step.text:
            del others[i]
            break
    return others
