"""Extract features from judge questions; texts shared by a batch are split, indexed and embedded once."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from metric_core.prompts import judge_questions
from metric_core.prompts.judge_questions import ChoiceQuestion, GenerateQuestion
from metric_core.question_kinds import ON_CLAIMS, QuestionKind
from metric_core.words.tokens import tokenize, tokenize_claim
from tasks.models.embedders.protocol import Embedder
from tasks.models.judges.builtin.features import relevance_features, usefulness_features, verdict_features
from tasks.models.judges.builtin.premises import Match, Premise, join_answers
from tasks.models.recognizers.spacy_pipeline import SpacyPipeline

_NUMBERED = re.compile(r"^\[(\d+)\] ?(.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class NumberedSentences:
    """The numbered sentences of a relevance question."""

    numbers: tuple[int, ...]
    features: tuple[Mapping[str, float], ...]


class FeatureExtractor:
    """A feature extractor for batches of questions."""

    def __init__(self, embedder: Embedder, pipeline: SpacyPipeline) -> None:
        self._embedder = embedder
        self._pipeline = pipeline

    def choice_features(self, questions: Sequence[ChoiceQuestion]) -> list[dict[str, float]]:
        """Return the features of verdict and usefulness questions, in their order."""
        contexts = [question.texts[judge_questions.CONTEXT] for question in questions]
        sentences = self._sentences([*contexts, *(answer for q in questions if (answer := _answer(q)))])
        premises = {context: Premise(list(join_answers(sentences[context]))) for context in dict.fromkeys(contexts)}
        searched = [question.texts[_searched_role(question)] for question in questions]
        matches = [
            premises[context].match(tokenize_claim(text).tokens)
            for context, text in zip(contexts, searched, strict=True)
        ]
        best = [_best_sentence(premises[context], match) for context, match in zip(contexts, matches, strict=True)]
        cosines = self._cosines(list(zip(searched, best, strict=True)))
        features = []
        for question, context, match, cosine in zip(questions, contexts, matches, cosines, strict=True):
            premise = premises[context]
            if question.kind in ON_CLAIMS:
                features.append(
                    verdict_features(tokenize_claim(question.texts[judge_questions.CLAIM]), premise, match, cosine)
                )
            else:
                question_tokens = tokenize(question.texts[judge_questions.USER_INPUT])
                answer_tokens = [tokenize(sentence) for sentence in sentences.get(_answer(question), ())]
                features.append(usefulness_features(question_tokens, answer_tokens, premise, match, cosine))
        return features

    def sentence_features(self, questions: Sequence[GenerateQuestion]) -> list[NumberedSentences]:
        """Return the features of the numbered sentences of relevance questions, in their order."""
        numbered = [_NUMBERED.findall(question.texts[judge_questions.SENTENCES]) for question in questions]
        user_questions = [question.texts[judge_questions.USER_INPUT] for question in questions]
        pairs = [
            (question, text)
            for question, sentences in zip(user_questions, numbered, strict=True)
            for _, text in sentences
        ]
        cosines = iter(self._cosines(pairs))
        results = []
        for question, sentences in zip(user_questions, numbered, strict=True):
            premise = Premise([text for _, text in sentences])
            features = relevance_features(tokenize(question), premise, [next(cosines) for _ in sentences])
            results.append(NumberedSentences(tuple(int(number) for number, _ in sentences), tuple(features)))
        return results

    def _sentences(self, texts: Sequence[str]) -> dict[str, list[str]]:
        distinct = list(dict.fromkeys(texts))
        return dict(zip(distinct, self._pipeline.sentences(distinct), strict=True))

    def _cosines(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """Return the cosine of each pair of texts; 0 if one of them is empty."""
        distinct = list(dict.fromkeys(text for pair in pairs if all(pair) for text in pair))
        position = {text: i for i, text in enumerate(distinct)}
        vectors = self._embedder.embed(distinct).astype(np.float64)
        vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), np.finfo(np.float64).tiny)
        return [float(vectors[position[one]] @ vectors[position[two]]) if one and two else 0.0 for one, two in pairs]


def _searched_role(question: ChoiceQuestion) -> str:
    """Return the role of the text to search for in the context."""
    return judge_questions.CLAIM if question.kind in ON_CLAIMS else judge_questions.USER_INPUT


def _answer(question: ChoiceQuestion) -> str:
    """Return the answer that a context may be useful for; empty for verdicts."""
    if question.kind is QuestionKind.USEFULNESS_FOR_REFERENCE:
        return question.texts[judge_questions.REFERENCE]
    return question.texts[judge_questions.RESPONSE] if question.kind is QuestionKind.USEFULNESS_FOR_RESPONSE else ""


def _best_sentence(premise: Premise, match: Match) -> str:
    return premise.sentences[match.sentence] if match.sentence >= 0 else ""
