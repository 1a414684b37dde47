"""Find the place of each claim in the text that it comes from.

A judge rewrites what a text says into standalone claims, so a claim is rarely a part of the text word for word. Its
place is the sentence that shares most of its words, weighted by how rare they are in the text; of equally good
sentences, the first one that is not before the place of the previous claim, because claims come in the order of the
text. A claim that shares too little with every sentence has no place.
"""

import math
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING

from metric_core.records import Place

if TYPE_CHECKING:
    from metric_core.claims.citations import StrippedText

LEAST_SHARED = 0.3
"""Least weighted share of the words of a claim that its sentence must have."""

_WORD = re.compile(r"\w+")
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\uff66-\uff9f]")
"""Characters of scripts that put no white space between words; their words are pairs of characters."""
_BACKWARDS = 0.05
"""Advantage of sentences that are not before the previous claim."""


def locate_sentences(text: str, sentences: Sequence[str]) -> list[tuple[int, int]]:
    r"""Return the position of each sentence in the text that it was split from, with any white space.

    A sentence that is not found is empty, at the end of the one before it.

    >>> locate_sentences("It rains.\n\n It\n pours.", ["It rains.", "It pours."])
    [(0, 9), (12, 22)]
    """
    spans: list[tuple[int, int]] = []
    done = 0
    for sentence in sentences:
        spans.append(_find_words(text, sentence.split(), done) or (done, done))
        done = spans[-1][1]
    return spans


def place_claims(text: "StrippedText", claims: Sequence[str], spans: Sequence[tuple[int, int]]) -> list[Place | None]:
    """Return the place of each claim in the original text; None for a claim that no sentence resembles.

    A claim that its sentence contains word for word has the position of these words; any other claim has that of its
    sentence. A marker belongs to the sentence before it, or after it if it begins a line. Within a sentence, it belongs
    to the words since the previous marker; a claim that is not in its sentence word for word cites all its markers.

    Args:
        text: The text without its citation markers.
        claims: Its claims, in order.
        spans: Positions of its sentences.

    >>> from metric_core.claims.citations import strip_citations
    >>> text = "It rains [1] and it pours [2]. Bring a coat."
    >>> stripped = strip_citations(text)
    >>> spans = locate_sentences(stripped.text, ["It rains and it pours.", "Bring a coat."])
    >>> places = place_claims(stripped, ["It rains.", "It pours.", "A coat is needed."], spans)
    >>> [(text[place.start:place.end], place.sentence, place.citations) for place in places]
    [('It rains', 0, ('1',)), ('it pours', 0, ('2',)), ('Bring a coat.', 1, ())]
    """
    sentences = [Counter(_words(text.text[start:end])) for start, end in spans]
    weights = _weights(sentences)
    found: list[tuple[int, int, int] | None] = []
    previous = 0
    for claim in claims:
        sentence = _closest(_words(claim), sentences, weights, previous)
        if sentence is None:
            found.append(None)
            continue
        previous = sentence
        found.append((*(_words_position(text.text, claim, spans[sentence]) or spans[sentence]), sentence))
    cited = _cite(text, found, spans)
    return [None if span is None else _place(text, span, labels) for span, labels in zip(found, cited, strict=True)]


def place_sentences(text: "StrippedText", spans: Sequence[tuple[int, int]]) -> list[Place]:
    """Return the place of each sentence of a text, with the labels of the markers that belong to it."""
    whole = [(*span, index) for index, span in enumerate(spans)]
    return [_place(text, span, labels) for span, labels in zip(whole, _cite(text, whole, spans), strict=True)]


def _place(text: "StrippedText", span: tuple[int, int, int], labels: Collection[str]) -> Place:
    start, end, sentence = span
    return Place(
        text.origin(start), text.origin(end - 1) + 1 if end > start else text.origin(start), sentence, tuple(labels)
    )


def _cite(
    text: "StrippedText", found: Sequence[tuple[int, int, int] | None], spans: Sequence[tuple[int, int]]
) -> list[list[str]]:
    """Return the labels that each found span cites."""
    markers: dict[int, dict[int, list[str]]] = {}
    for position, labels in text.citations:
        markers.setdefault(_sentence_of(text.text, position, spans), {}).setdefault(position, []).extend(labels)
    return [[] if span is None else _cite_within(span, spans, markers.get(span[2], {})) for span in found]


def _cite_within(
    span: tuple[int, int, int], spans: Sequence[tuple[int, int]], markers: Mapping[int, Sequence[str]]
) -> list[str]:
    """Return the labels of the markers of a sentence that a part of it cites: those behind the words it shares."""
    start, end, sentence = span
    is_whole = (start, end) == spans[sentence]
    before = spans[sentence][0]
    chosen: list[str] = []
    for position, labels in markers.items():
        if is_whole or (start < position and end > before):
            chosen += labels
        before = position
    if not chosen and markers:
        chosen += markers[max(markers)]
    return list(dict.fromkeys(chosen))


def _sentence_of(text: str, position: int, spans: Sequence[tuple[int, int]]) -> int:
    """Return the index of the sentence that a marker belongs to."""
    last = bisect_left(spans, position, key=itemgetter(0)) - 1
    if last < 0:
        return 0
    begins_line = "\n" in text[spans[last][1] : position]
    return last + 1 if begins_line and last + 1 < len(spans) else last


def _words(text: str) -> list[str]:
    words: list[str] = []
    for word in _WORD.findall(text.casefold()):
        if _UNSPACED.search(word) and len(word) > 1:
            words += [word[i : i + 2] for i in range(len(word) - 1)]
        else:
            words.append(word)
    return words


def _weights(sentences: Sequence[Counter[str]]) -> Mapping[str, float]:
    """Return a weight per word: the fewer sentences have it, the greater."""
    holders = Counter(word for sentence in sentences for word in sentence)
    return {word: math.log(1 + len(sentences) / count) for word, count in holders.items()}


def _closest(
    words: Sequence[str], sentences: Sequence[Counter[str]], weights: Mapping[str, float], previous: int
) -> int | None:
    rarest = math.log(1 + max(len(sentences), 1))  # the weight of words that the text does not have
    distinct = dict.fromkeys(words)
    total = sum(weights.get(word, rarest) for word in distinct)
    best, best_share = None, 0.0
    for index, sentence in enumerate(sentences):
        share = sum(weights[word] for word in distinct if word in sentence) / total if total else 0.0
        share += _BACKWARDS if share and index >= previous else 0.0
        if share > best_share + 1e-9:
            best, best_share = index, share
    return best if best_share >= LEAST_SHARED else None


def _words_position(text: str, claim: str, span: tuple[int, int]) -> tuple[int, int] | None:
    """Return the position of the words of a claim in a sentence, ignoring case, punctuation at the end and markers."""
    words = claim.rstrip(" .!?").split()
    if not words:
        return None
    if claim.isascii() and text.isascii():  # lower case is then all that ignoring case means
        found = _find_words(text[slice(*span)].lower(), [word.lower() for word in words])
        return None if found is None else (span[0] + found[0], span[0] + found[1])
    match = re.compile(r"\s+".join(map(re.escape, words)), re.IGNORECASE).search(text, *span)
    return None if match is None else match.span()


def _find_words(text: str, words: Sequence[str], start: int = 0) -> tuple[int, int] | None:
    """Return the first position of words with any white space between them; None if there is none.

    Without compiling a pattern for every sentence, which takes longer than finding it.
    """
    if not words:
        return start, start
    whole, at = " ".join(words), text.find(words[0], start)
    while at >= 0:
        if text.startswith(whole, at):
            return at, at + len(whole)
        end = at + len(words[0])
        for word in words[1:]:
            gap = end
            while end < len(text) and text[end].isspace():
                end += 1
            if end == gap or not text.startswith(word, end):
                break
            end += len(word)
        else:
            return at, end
        at = text.find(words[0], at + 1)
    return None
