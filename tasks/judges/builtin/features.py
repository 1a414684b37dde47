"""What can be seen in texts without understanding them: the numbers that the linear models weigh."""

from collections.abc import Sequence

from tasks.judges.builtin.contradictions import contradictions
from tasks.judges.builtin.premises import Match, Premise
from tasks.judges.builtin.tokens import Tokens

_MOST_COUNTED = 3
_FEWEST_NEW_WORDS = 2
_ANSWER_WORDS = frozenset({"answer", "question", "context", "document", "passage", "text"})


def verdict_features(claim: Tokens, premise: Premise, match: Match, cosine: float) -> dict[str, float]:
    """The features of a verdict.

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
        - names_missing: 1 if the premise lacks one of its names.
        - the conflicts.
    """
    return {
        "words_covered": share(sum(token in premise.every for token in claim.every), len(claim.every)),
        "best_sentence": match.in_sentence,
        "best_window": match.in_window,
        "cosine": cosine,
        "numbers_missing": min(len(claim.numbers - premise.every), _MOST_COUNTED),
        "names_missing": float(not claim.names <= premise.every),
        **contradictions(claim, premise, match),
    }


def usefulness_features(
    question: Tokens, answer: Sequence[Tokens], passage: Premise, match: Match, cosine: float
) -> dict[str, float]:
    """The features of a passage's usefulness for an answer to a question.

    Args:
        question: the question's words.
        answer: the words of each sentence of the answer.
        passage: the passage.
        match: where the question's words are found best in the passage.
        cosine: cosine of the question's vector with that of the sentence that matches it best.

    Returns:
        - new_words: for the sentence of the answer that the passage has most of, the weight of the words that are
          not in the question found in three neighbouring sentences.
        - new_and_asked: the same for these words together with the question's.
        - question_cosine: as given.
    """
    known = _ANSWER_WORDS.union(question.tokens)
    new = [[token for token in sentence.tokens if token not in known] for sentence in answer]
    telling = [tokens for tokens in new if len(tokens) >= _FEWEST_NEW_WORDS] or [tokens for tokens in new if tokens]
    # An answer without words of its own (Yes.) leaves only the question to look for.
    new_words = max((passage.match(tokens).in_window for tokens in telling), default=match.in_window)
    both = max((passage.match((*question.tokens, *tokens)).in_window for tokens in telling), default=match.in_window)
    return {"new_words": new_words, "new_and_asked": both, "question_cosine": cosine}


def relevance_features(question: Tokens, sentences: Premise, cosines: Sequence[float]) -> list[dict[str, float]]:
    """The features of each sentence's relevance to a question.

    Args:
        question: the question's words.
        sentences: the sentences.
        cosines: cosine of each sentence's vector with the question's.

    Returns:
        For each sentence:
        - question_words: weight of the question's words that it has.
        - cosine: as given.
        - best_cosine: the greatest cosine of all sentences.
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
    """A part of a whole; nothing of nothing is 0."""
    return part / whole if whole else 0.0
