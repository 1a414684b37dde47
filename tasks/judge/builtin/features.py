"""What can be seen in a claim and a premise without understanding them: the numbers that the linear models weigh."""

from collections import defaultdict

from tasks.judge.builtin.lexicon import OPPOSITES
from tasks.judge.builtin.premises import Match, Premise
from tasks.judge.builtin.words import Words, stem

_MOST_COUNTED = 3
_NEIGHBOURS = 2


def verdict_features(claim: Words, premise: Premise, match: Match, cosine: float) -> dict[str, float]:
    """The features of one verdict.

    Args:
        claim: the claim's words.
        premise: the premise.
        match: where the claim's words are found best in the premise.
        cosine: cosine of the claim's vector with that of the best matching sentence.

    Returns:
        - words_covered: share of the claim's words, function words too, that the premise has.
        - best_sentence, best_window: weight of its content words found in one sentence, in three neighbouring ones.
        - cosine: as given.
        - numbers_missing: how many of its numbers the premise lacks, up to 3.
        - numbers_missing_nearby: share of its numbers that the best window lacks.
        - number_conflict: 1 if the window has another number where the claim has one of these.
        - names_missing: 1 if the premise lacks one of its names.
        - negation_mismatch: share of the words in common with the best sentence that only one of both negates.
        - opposites: 1 if the window has the opposite of one of its words and not the word itself.
    """
    nearby = premise.near(match.window)
    absent = [number for number in claim.numbers if number not in premise.every]
    absent_nearby = [number for number in claim.numbers if number not in nearby]
    return {
        "words_covered": _share(sum(token in premise.every for token in claim.every), len(claim.every)),
        "best_sentence": match.in_sentence,
        "best_window": match.in_window,
        "cosine": cosine,
        "numbers_missing": min(len(absent), _MOST_COUNTED),
        "numbers_missing_nearby": _share(len(absent_nearby), len(claim.numbers)),
        "number_conflict": float(any(_has_rival(number, claim, premise, match) for number in absent_nearby)),
        "names_missing": float(any(name not in premise.every for name in claim.names)),
        "negation_mismatch": _negation_mismatch(claim, premise, match),
        "opposites": float(_has_opposite(claim, nearby)),
    }


def _share(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


def _has_rival(number: str, claim: Words, premise: Premise, match: Match) -> bool:
    """Whether the window has another number beside a word that the claim has beside this number."""
    beside = _neighbours(claim, number)
    for index in match.window:
        sentence = premise.words[index]
        if any(beside & _neighbours(sentence, rival) for rival in sentence.numbers - claim.numbers):
            return True
    return False


def _neighbours(text: Words, number: str) -> frozenset[str]:
    """The content words beside a number, other numbers left out."""
    places = [place for place, token in enumerate(text.tokens) if token == number]
    beside = {token for place in places for token in text.tokens[max(place - _NEIGHBOURS, 0) : place + _NEIGHBOURS + 1]}
    return frozenset(beside) - text.numbers


def _negation_mismatch(claim: Words, premise: Premise, match: Match) -> float:
    if match.sentence < 0:
        return 0.0
    sentence = premise.words[match.sentence]
    common = set(claim.tokens).intersection(sentence.tokens)
    return _share(sum((token in claim.negated) != (token in sentence.negated) for token in common), len(common))


def _has_opposite(claim: Words, nearby: frozenset[str]) -> bool:
    own = frozenset(claim.every)
    return any(
        not own & same & nearby and opposite & nearby and not opposite & own
        for token in own - nearby
        for same, opposite in _OPPOSITES.get(token, ())
    )


def _opposites() -> dict[str, list[tuple[frozenset[str], frozenset[str]]]]:
    """Stem -> the stems that say the same and the stems that say the opposite, once a group."""
    found: defaultdict[str, list[tuple[frozenset[str], frozenset[str]]]] = defaultdict(list)
    for group in OPPOSITES:
        sides = [frozenset(map(stem, side)) for side in group]
        for side in sides:
            for token in side:
                found[token].append((side, frozenset().union(*(other for other in sides if other is not side))))
    return dict(found)


_OPPOSITES = _opposites()
