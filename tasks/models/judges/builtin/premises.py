"""A premise as an index of its sentences' words, built once for all claims judged against it."""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from metric_core.words.tokens import Tokens, tokenize_claim

_WINDOW = 3
_CANDIDATE_SENTENCES = 4


@dataclass(frozen=True, slots=True)
class Match:
    """The sentence and window of a premise that match the words of a claim best.

    Args:
        sentence: Index of the best-matching sentence; -1 if the premise has no sentences.
        in_sentence: Weight of the claim's words in that sentence, as a share of the weight of all, in [0, 1].
        window: Indices of the best-matching consecutive sentences.
        in_window: Weight of the claim's words in the window, as a share of the weight of all, in [0, 1].
    """

    sentence: int
    in_sentence: float
    window: range
    in_window: float


class Premise:
    """An index of the sentences of a premise by word.

    Args:
        sentences: Sentences of the premise, in order.
    """

    def __init__(self, sentences: Sequence[str]) -> None:
        self.sentences = tuple(sentences)
        self.words: tuple[Tokens, ...] = tuple(tokenize_claim(sentence) for sentence in self.sentences)
        self.tokens = frozenset(token for sentence in self.words for token in sentence.tokens)
        self.every = frozenset(token for sentence in self.words for token in sentence.every)
        self._sentences_by_token: defaultdict[str, list[int]] = defaultdict(list)
        for index, sentence in enumerate(self.words):
            for token in dict.fromkeys(sentence.tokens):
                self._sentences_by_token[token].append(index)
        count = len(self.sentences)
        self._unseen = math.log(1 + max(count, 1))
        self._weights = {
            token: math.log(1 + count / len(indices)) for token, indices in self._sentences_by_token.items()
        }

    def weight(self, tokens: Iterable[str]) -> float:
        """Return the total weight of words; a word in fewer sentences weighs more, a word in none most."""
        return sum(self._weights.get(token, self._unseen) for token in tokens)

    def match(self, tokens: Iterable[str]) -> Match:
        """Return the best match of the words; the earliest of equally good matches.

        >>> Premise(["Staff have 25 days.", "Managers have 30 days."]).match(["manager", "30"])
        Match(sentence=1, in_sentence=1.0, window=range(0, 2), in_window=1.0)
        """
        distinct = tuple(dict.fromkeys(tokens))
        scores: defaultdict[int, float] = defaultdict(float)
        for token in distinct:
            for index in self._sentences_by_token.get(token, ()):
                scores[index] += self._weights[token]
        best = sorted(scores, key=lambda index: (-scores[index], index))[:_CANDIDATE_SENTENCES]
        if not best:
            return Match(min(len(self.words), 1) - 1, 0.0, range(min(len(self.words), 1)), 0.0)
        total = self.weight(distinct)
        windows = dict.fromkeys(
            self._window(start) for index in best for start in range(index - _WINDOW + 1, index + 1)
        )
        weights = {window: self._weight_within(distinct, window) for window in windows}
        window = max(weights, key=lambda window: weights[window])
        return Match(best[0], scores[best[0]] / total, window, weights[window] / total)

    def tokens_within(self, window: Iterable[int]) -> frozenset[str]:
        """Return all words of the sentences of a window, including function words."""
        return frozenset(token for index in window for token in self.words[index].every)

    def _window(self, start: int) -> range:
        first = max(min(start, len(self.words) - _WINDOW), 0)
        return range(first, min(first + _WINDOW, len(self.words)))

    def _weight_within(self, tokens: Sequence[str], window: range) -> float:
        return self.weight(
            token for token in tokens if any(index in window for index in self._sentences_by_token.get(token, ()))
        )


def join_answers(sentences: Iterable[str]) -> Iterator[str]:
    """Yield the sentences, a question together with the sentence that answers it.

    >>> list(join_answers(["Do you ship to a box?", "No.", "We ship to doors."]))
    ['Do you ship to a box? No.', 'We ship to doors.']
    """
    question = ""
    for sentence in sentences:
        if sentence.rstrip().endswith("?"):
            question = f"{question} {sentence.strip()}".strip()
        else:
            yield f"{question} {sentence}" if question else sentence
            question = ""
    if question:
        yield question
