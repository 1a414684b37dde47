"""From judge questions to features; what questions of a batch have in common is split, indexed and embedded once."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from metric_core import judge_questions as roles
from metric_core.judge_questions import ChoiceQuestion, GenerateQuestion, QuestionKind
from tasks.embedders.protocol import Embedder
from tasks.judges.builtin.features import relevance_features, usefulness_features, verdict_features
from tasks.judges.builtin.premises import Match, Premise
from tasks.judges.builtin.tokens import tokenize
from tasks.recognizers.spacy_pipeline import SpacyPipeline

_NUMBERED = re.compile(r"^\[(\d+)\] ?(.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class NumberedSentences:
    """The sentences of a relevance question.

    Args:
        numbers: their numbers.
        features: the features of each.
    """

    numbers: tuple[int, ...]
    features: tuple[Mapping[str, float], ...]


class FeatureExtractor:
    """Computes the features of questions, whole batches at a time.

    Args:
        embedder: for cosines.
        pipeline: for sentences.
    """

    def __init__(self, embedder: Embedder, pipeline: SpacyPipeline) -> None:
        self._embedder = embedder
        self._pipeline = pipeline

    def of_choices(self, questions: Sequence[ChoiceQuestion]) -> list[dict[str, float]]:
        """The features of verdict and usefulness questions, in their order."""
        contexts = [question.texts[roles.CONTEXT] for question in questions]
        sentences = self._sentences([*contexts, *(answer for q in questions if (answer := _answer(q)))])
        premises = {context: Premise(sentences[context]) for context in dict.fromkeys(contexts)}
        looked_for = [question.texts[_search_terms(question)] for question in questions]
        matches = [
            premises[context].match(tokenize(text).tokens) for context, text in zip(contexts, looked_for, strict=True)
        ]
        found = [_find(premises[context], match) for context, match in zip(contexts, matches, strict=True)]
        cosines = self._cosines(list(zip(looked_for, found, strict=True)))
        features = []
        for question, context, match, cosine in zip(questions, contexts, matches, cosines, strict=True):
            premise = premises[context]
            if question.kind is QuestionKind.VERDICT:
                features.append(verdict_features(tokenize(question.texts[roles.CLAIM]), premise, match, cosine))
            else:
                asked = tokenize(question.texts[roles.USER_INPUT])
                said = [tokenize(sentence) for sentence in sentences.get(_answer(question), ())]
                features.append(usefulness_features(asked, said, premise, match, cosine))
        return features

    def of_sentences(self, questions: Sequence[GenerateQuestion]) -> list[NumberedSentences]:
        """The features of the numbered sentences of relevance questions, in their order."""
        numbered = [_NUMBERED.findall(question.texts[roles.SENTENCES]) for question in questions]
        asked = [question.texts[roles.USER_INPUT] for question in questions]
        pairs = [(question, text) for question, found in zip(asked, numbered, strict=True) for _, text in found]
        cosines = iter(self._cosines(pairs))
        results = []
        for question, found in zip(asked, numbered, strict=True):
            sentences = Premise([text for _, text in found])
            features = relevance_features(tokenize(question), sentences, [next(cosines) for _ in found])
            results.append(NumberedSentences(tuple(int(number) for number, _ in found), tuple(features)))
        return results

    def _sentences(self, texts: Sequence[str]) -> dict[str, list[str]]:
        distinct = list(dict.fromkeys(texts))
        return dict(zip(distinct, self._pipeline.sentences(distinct), strict=True))

    def _cosines(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """Cosine of each pair of texts; 0 where one of them is empty."""
        distinct = list(dict.fromkeys(text for pair in pairs if all(pair) for text in pair))
        position = {text: i for i, text in enumerate(distinct)}
        vectors = self._embedder.embed(distinct).astype(np.float64)
        vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), np.finfo(np.float64).tiny)
        return [float(vectors[position[one]] @ vectors[position[two]]) if one and two else 0.0 for one, two in pairs]


def _search_terms(question: ChoiceQuestion) -> str:
    """The role of the text whose words are looked for in the context."""
    return roles.CLAIM if question.kind is QuestionKind.VERDICT else roles.USER_INPUT


def _answer(question: ChoiceQuestion) -> str:
    """The answer that a context may be useful for; empty for verdicts."""
    if question.kind is QuestionKind.USEFULNESS_FOR_REFERENCE:
        return question.texts[roles.REFERENCE]
    return question.texts[roles.RESPONSE] if question.kind is QuestionKind.USEFULNESS_FOR_RESPONSE else ""


def _find(premise: Premise, match: Match) -> str:
    return premise.sentences[match.sentence] if match.sentence >= 0 else ""
