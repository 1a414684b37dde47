"""Compute the surface features of texts that the linear models weigh."""

from collections.abc import Sequence

from metric_core.words.tokens import Tokens
from tasks.models.judges.builtin.contradictions import find_contradictions
from tasks.models.judges.builtin.premises import Match, Premise

_MAX_MISSING_NUMBERS = 3
_MIN_NEW_WORDS = 2
_ANSWER_WORDS = frozenset({"answer", "question", "context", "document", "passage", "text"})


def verdict_features(claim: Tokens, premise: Premise, match: Match, cosine: float) -> dict[str, float]:
    """Return the features of a verdict.

    Args:
        match: The best match of the claim in the premise.
        cosine: Cosine of the claim with the best-matching sentence.

    Returns:
        - words_covered: share of the claim's words, including function words, that the premise has.
        - best_sentence, best_window: weight of its content words found in one sentence, in three consecutive ones.
        - cosine: the argument.
        - numbers_missing: number of its numbers that the premise lacks, at most 3.
        - names_missing: 1 if the premise lacks one of its names.
        - the conflicts of `find_contradictions`.
    """
    return {
        "words_covered": share(sum(token in premise.every for token in claim.every), len(claim.every)),
        "best_sentence": match.in_sentence,
        "best_window": match.in_window,
        "cosine": cosine,
        "numbers_missing": min(len(claim.numbers - premise.every), _MAX_MISSING_NUMBERS),
        "names_missing": float(not claim.names <= premise.every),
        **find_contradictions(claim, premise, match),
    }


def usefulness_features(
    question: Tokens, answer: Sequence[Tokens], passage: Premise, match: Match, cosine: float
) -> dict[str, float]:
    """Return the features of a passage's usefulness for an answer to a question.

    Args:
        answer: Tokens of each sentence of the answer.
        match: The best match of the question in the passage.
        cosine: Cosine of the question with the sentence that matches it best.

    Returns:
        - new_words: for the sentence of the answer that the passage covers best, the weight of its words that are
          not in the question, found in three consecutive sentences.
        - new_and_asked: the same for these words together with the question's.
        - question_cosine: the argument `cosine`.
    """
    known = _ANSWER_WORDS.union(question.tokens)
    new = [[token for token in sentence.tokens if token not in known] for sentence in answer]
    informative = [tokens for tokens in new if len(tokens) >= _MIN_NEW_WORDS] or [tokens for tokens in new if tokens]
    # An answer without new words ("Yes.") leaves only the question to search for.
    new_words = max((passage.match(tokens).in_window for tokens in informative), default=match.in_window)
    both = max(
        (passage.match((*question.tokens, *tokens)).in_window for tokens in informative), default=match.in_window
    )
    return {"new_words": new_words, "new_and_asked": both, "question_cosine": cosine}


def relevance_features(question: Tokens, sentences: Premise, cosines: Sequence[float]) -> list[dict[str, float]]:
    """Return the features of each sentence's relevance to a question.

    Args:
        cosines: Cosine of each sentence with the question.

    Returns:
        For each sentence:
        - question_words: weight of the question's words that it has.
        - cosine: its cosine.
        - best_cosine: the largest cosine of all sentences.
    """
    asked = tuple(dict.fromkeys(question.tokens))
    total = sentences.weight(asked)
    return [
        {
            "question_words": share(sentences.weight(token for token in asked if token in sentence.content), total),
            "cosine": cosine,
            "best_cosine": max(cosines),
        }
        for sentence, cosine in zip(sentences.words, cosines, strict=True)
    ]


def share(part: float, whole: float) -> float:
    """Return part / whole; 0 if the whole is 0."""
    return part / whole if whole else 0.0
