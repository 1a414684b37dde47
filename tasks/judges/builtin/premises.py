"""A premise as the features see it: its sentences as words, indexed once for all the claims held against it."""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tasks.judges.builtin.tokens import Tokens, tokenize

_WINDOW = 3
_TRIED_SENTENCES = 4


@dataclass(frozen=True, slots=True)
class Match:
    """Where in a premise the words of a claim are found best.

    Args:
        sentence: index of the sentence with most of the claim's words; -1 if the premise has no sentence.
        in_sentence: weight of the claim's words in that sentence, as a share of all of them.
        window: indices of the neighbouring sentences with most of the claim's words.
        in_window: weight of the claim's words there, as a share of all of them.
    """

    sentence: int
    in_sentence: float
    window: range
    in_window: float


class Premise:
    """The sentences of a premise, searchable by word.

    Args:
        sentences: its sentences in order.
    """

    def __init__(self, sentences: Sequence[str]) -> None:
        self.sentences = tuple(sentences)
        self.words: tuple[Tokens, ...] = tuple(tokenize(sentence) for sentence in sentences)
        self.tokens = frozenset(token for sentence in self.words for token in sentence.tokens)
        self.every = frozenset(token for sentence in self.words for token in sentence.every)
        self._where: defaultdict[str, list[int]] = defaultdict(list)
        for index, sentence in enumerate(self.words):
            for token in dict.fromkeys(sentence.tokens):
                self._where[token].append(index)
        self._unseen = math.log(1 + max(len(sentences), 1))
        self._weights = {token: math.log(1 + len(sentences) / len(where)) for token, where in self._where.items()}

    def weight(self, tokens: Iterable[str]) -> float:
        """The weight of words: more for those in few sentences of the premise, most for those in none."""
        return sum(self._weights.get(token, self._unseen) for token in tokens)

    def match(self, tokens: Iterable[str]) -> Match:
        """Where the words are found best; the earliest of equally good places.

        >>> Premise(["Staff have 25 days.", "Managers have 30 days."]).match(["manager", "30"])
        Match(sentence=1, in_sentence=1.0, window=range(0, 2), in_window=1.0)
        """
        wanted = tuple(dict.fromkeys(tokens))
        found: defaultdict[int, float] = defaultdict(float)
        for token in wanted:
            for index in self._where.get(token, ()):
                found[index] += self._weights[token]
        best = sorted(found, key=lambda index: (-found[index], index))[:_TRIED_SENTENCES]
        if not best:
            return Match(min(len(self.words), 1) - 1, 0.0, range(min(len(self.words), 1)), 0.0)
        total = self.weight(wanted)
        windows = dict.fromkeys(
            self._window(start) for index in best for start in range(index - _WINDOW + 1, index + 1)
        )
        weights = {window: self._weight_within(wanted, window) for window in windows}
        window = max(weights, key=lambda window: weights[window])
        return Match(best[0], found[best[0]] / total, window, weights[window] / total)

    def near(self, window: Iterable[int]) -> frozenset[str]:
        """All words, function words too, of some of the sentences."""
        return frozenset(token for index in window for token in self.words[index].every)

    def _window(self, start: int) -> range:
        first = max(min(start, len(self.words) - _WINDOW), 0)
        return range(first, min(first + _WINDOW, len(self.words)))

    def _weight_within(self, tokens: Sequence[str], window: range) -> float:
        return self.weight(token for token in tokens if any(index in window for index in self._where.get(token, ())))
