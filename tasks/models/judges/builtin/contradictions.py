"""Detect contradictions between a premise and a claim: another number or name, an opposite, a negation."""

from collections import defaultdict
from collections.abc import Iterator
from collections.abc import Set as AbstractSet

from metric_core.words.lexicon import OPPOSITES
from metric_core.words.tokens import Tokens, stem
from tasks.models.judges.builtin.premises import Match, Premise

_REACH = 2
_SAME_STATEMENT = 3
"""Exponent of the share of words found: texts with few words in common say different things, not opposite ones."""


def find_contradictions(claim: Tokens, premise: Premise, match: Match) -> dict[str, float]:
    """Return the conflicts between a claim and the best-matching window of a premise.

    A word of the claim is in conflict if the window lacks it and has a rival in its place: a word of the same type
    that the claim lacks and that has the same neighbor.

    Args:
        match: The best match of the claim in the premise.

    Returns:
        number_conflict, name_conflict, opposite_conflict: 1 if there is one, weighted by the cube of the share of the
        claim's words found in the window. negation_conflict: 1 if a word is negated in one text and not near a
        negation in the other, weighted by the cube of the share of the claim's words found in the sentence.

    >>> from metric_core.words.tokens import tokenize
    >>> def found(claim, premise):
    ...     claim, premise = tokenize(claim), Premise([premise])
    ...     values = find_contradictions(claim, premise, premise.match(claim.tokens))
    ...     return [name for name, value in values.items() if value]
    >>> found("Staff have 30 days off.", "Staff have 25 days off."), found("It is led by Lee.", "It is led by Kim.")
    (['number_conflict'], ['name_conflict'])
    >>> found("It is paid monthly.", "It is paid weekly."), found("It is not paid.", "It is paid.")
    (['opposite_conflict'], ['negation_conflict'])
    """
    sentences = [premise.words[index] for index in match.window]
    nearby = premise.tokens_within(match.window)
    claim_words = frozenset(claim.every)
    numbers = claim.numbers - nearby
    names = claim.names - premise.every
    opposites = [
        (token, opposite)
        for token in sorted(claim_words - nearby - claim.negated)
        for same, opposite in _OPPOSITES.get(token, ())
        if not same & claim_words & nearby
    ]
    number = any(_replaced(claim, s, numbers, s.numbers) for s in sentences)
    name = any(_replaced(claim, s, names, s.names) for s in sentences)
    # "Not open" means "closed": a negated word and its opposite do not conflict.
    opposite = any(_replaced(claim, s, {token}, rivals - s.negated) for s in sentences for token, rivals in opposites)
    window, sentence = match.in_window**_SAME_STATEMENT, match.in_sentence**_SAME_STATEMENT
    return {
        "number_conflict": number * window,
        "name_conflict": name * window,
        "opposite_conflict": opposite * window,
        "negation_conflict": _negation(claim, premise, match) * sentence,
    }


def _replaced(claim: Tokens, sentence: Tokens, missing: AbstractSet[str], rivals: AbstractSet[str]) -> bool:
    """Return whether a rival has the same neighbor in the sentence as one of the missing words in the claim."""
    rivals = rivals - set(claim.every)
    if not missing or not rivals:
        return False
    neighbors = set(_neighbors(sentence, rivals))
    return any(token in neighbors for token in _neighbors(claim, missing))


def _neighbors(text: Tokens, targets: AbstractSet[str]) -> Iterator[str]:
    """Yield the content words next to the wanted ones, skipping names and numbers."""
    for position, token in enumerate(text.every):
        if token in targets:
            yield from _first_content(text, text.every[position + 1 :])
            yield from _first_content(text, text.every[:position][::-1])


def _first_content(text: Tokens, tokens: tuple[str, ...]) -> list[str]:
    content = (token for token in tokens if token in text.content and token not in text.numbers | text.names)
    return [token for token, _ in zip(content, range(_REACH), strict=False)]


def _negation(claim: Tokens, premise: Premise, match: Match) -> bool:
    """Return whether a word is negated in the claim or the sentence and not near a negation in the other."""
    if match.sentence < 0:
        return False
    sentence = premise.words[match.sentence]
    # "Not open" is what "closed" says.
    says_opposite = any(rivals & sentence.content for token in claim.negated for _, rivals in _OPPOSITES.get(token, ()))
    denied = set() if says_opposite else (claim.negated & sentence.content) - sentence.near_negation
    refused = sentence.near_negation if claim.affirms and sentence.negated else sentence.negated
    asserted = (refused & claim.content) - claim.near_negation
    return bool(denied or asserted)


def _index_opposites() -> dict[str, list[tuple[frozenset[str], frozenset[str]]]]:
    """Map each stem to pairs of synonymous and opposite stems, one pair per group."""
    pairs_by_stem: defaultdict[str, list[tuple[frozenset[str], frozenset[str]]]] = defaultdict(list)
    for group in OPPOSITES:
        sides = [frozenset(map(stem, side)) for side in group]
        for side in sides:
            for token in side:
                pairs_by_stem[token].append((side, frozenset().union(*(other for other in sides if other is not side))))
    return dict(pairs_by_stem)


_OPPOSITES = _index_opposites()
