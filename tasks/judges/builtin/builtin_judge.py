"""The builtin judge: a baseline that needs no server, no GPU and no download."""

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from metric_core import judge_questions as roles
from metric_core import reasons
from metric_core.judge_questions import ChoiceQuestion, GenerateQuestion, QuestionKind
from metric_core.records import AnswerStatus
from tasks.embedders.protocol import Embedder
from tasks.judges.builtin.claim_sentences import split_claims
from tasks.judges.builtin.feature_extraction import FeatureExtractor
from tasks.judges.builtin.linear_models import RELEVANCE, USEFULNESS, VERDICT, LinearModel, revision
from tasks.judges.builtin.question_writing import regenerate
from tasks.judges.protocol import ChoiceAnswer, GenerateAnswer, JudgeIdentity, KeepChoice, KeepGenerate, notify_all
from tasks.recognizers.spacy_pipeline import SpacyPipeline
from tasks.runtime.usage import Usage

VERSION = 1
"""Raised whenever the rules would give another answer to the same question."""

_NOTE = (
    "A baseline without a language model: claims are clauses, verdicts come from word overlap, numbers, names and "
    "embeddings. Agreement with people (AUROC, 0.5 is chance): single claims in WiCE 0.83, BEGIN 0.96, Factcheck-Bench "
    "0.80, FActScore 0.88; whole answers in RAGTruth QA 0.80, QAGS 0.57, FaithBench 0.53. It sees missing facts, not "
    "subtle distortions: good for comparing runs, not for judging a single answer."
)
_THRESHOLD = 0.5
_CHOICES: Mapping[QuestionKind, LinearModel] = {
    QuestionKind.VERDICT: VERDICT,
    QuestionKind.USEFULNESS_FOR_REFERENCE: USEFULNESS,
    QuestionKind.USEFULNESS_FOR_RESPONSE: USEFULNESS,
}
_GENERATED = frozenset({QuestionKind.CLAIMS, QuestionKind.QUESTIONS, QuestionKind.RELEVANT_SENTENCES})


class BuiltinJudge:
    """Answers questions about claims, verdicts, usefulness and relevance; all others need a language model.

    Equal questions get equal answers. May be used from several threads.

    Args:
        embedder: for the likeness of texts.
        pipeline: for sentences and clauses.
    """

    def __init__(self, embedder: Embedder, pipeline: SpacyPipeline) -> None:
        self._embedder = embedder
        self._pipeline = pipeline
        self._extractor = FeatureExtractor(embedder, pipeline)

    @property
    def identity(self) -> JudgeIdentity:
        """Who answers."""
        embedder, recognizer = self._embedder.identity, self._pipeline.identity
        model = f"builtin with {embedder.model} and {recognizer.model}"
        versions = f"{revision()}/{embedder.revision}/{recognizer.revision}"
        return JudgeIdentity("builtin", model, versions, _NOTE, language_model=False)

    def can_answer(self, kind: QuestionKind) -> bool:
        """Whether questions of this kind can be asked at all."""
        return kind in _CHOICES or kind in _GENERATED

    def fingerprint(self, kind: QuestionKind) -> str:
        """Digest of the model's numbers, the rules' version, and what they work with."""
        embedder, recognizer = self._embedder.identity, self._pipeline.identity
        content = repr((VERSION, kind, revision(), embedder, recognizer))
        return hashlib.sha256(content.encode()).hexdigest()

    def choose(self, questions: Sequence[ChoiceQuestion], keep: KeepChoice | None = None) -> list[ChoiceAnswer]:
        """Answers to choice questions, with the probability of each label."""
        started = time.perf_counter()
        features = iter(self._extractor.of_choices([question for question in questions if question.kind in _CHOICES]))
        probabilities = [
            _CHOICES[question.kind].probability(next(features)) if question.kind in _CHOICES else None
            for question in questions
        ]
        usage = _usage(started, len(questions))
        answers = [_choice(question, yes, usage) for question, yes in zip(questions, probabilities, strict=True)]
        notify_all(answers, keep)
        return answers

    def generate(self, questions: Sequence[GenerateQuestion], keep: KeepGenerate | None = None) -> list[GenerateAnswer]:
        """Answers to generate questions."""
        started = time.perf_counter()
        values: dict[int, Any] = {}
        generators: dict[QuestionKind, Callable[[Sequence[GenerateQuestion]], list[Any]]] = {
            QuestionKind.CLAIMS: self._claims,
            QuestionKind.QUESTIONS: self._questions,
            QuestionKind.RELEVANT_SENTENCES: self._relevant_sentences,
        }
        for kind, generator in generators.items():
            places = [place for place, question in enumerate(questions) if question.kind is kind]
            values.update(zip(places, generator([questions[place] for place in places]), strict=True))
        usage = _usage(started, len(questions))
        answers = [
            GenerateAnswer(AnswerStatus.ANSWERED, value=values[place], usage=usage)
            if place in values
            else GenerateAnswer(AnswerStatus.UNDEFINED, reason=reasons.NEEDS_LANGUAGE_MODEL)
            for place in range(len(questions))
        ]
        notify_all(answers, keep)
        return answers

    def _claims(self, questions: Sequence[GenerateQuestion]) -> list[dict[str, list[str]]]:
        texts = [question.texts[roles.TEXT] for question in questions]
        return [{"claims": claims} for claims in split_claims(texts, self._pipeline)]

    def _questions(self, questions: Sequence[GenerateQuestion]) -> list[dict[str, list[dict[str, Any]]]]:
        responses = [question.texts[roles.RESPONSE] for question in questions]
        counts = [int(question.schema["properties"]["questions"]["minItems"]) for question in questions]
        return [
            {"questions": [{"question": text, "noncommittal": found.noncommittal} for text in found.questions]}
            for found in regenerate(responses, counts, self._pipeline)
        ]

    def _relevant_sentences(self, questions: Sequence[GenerateQuestion]) -> list[dict[str, list[int]]]:
        return [
            {
                "relevant": [
                    number
                    for number, features in zip(found.numbers, found.features, strict=True)
                    if RELEVANCE.probability(features) >= _THRESHOLD
                ]
            }
            for found in self._extractor.of_sentences(questions)
        ]


def _choice(question: ChoiceQuestion, yes: float | None, usage: Usage) -> ChoiceAnswer:
    if yes is None:
        return ChoiceAnswer(AnswerStatus.UNDEFINED, reason=reasons.NEEDS_LANGUAGE_MODEL)
    label = roles.YES if yes >= _THRESHOLD else roles.NO
    probabilities = {roles.YES: yes, roles.NO: 1 - yes}
    return ChoiceAnswer(AnswerStatus.ANSWERED, (label,) * question.votes, probabilities, usage=usage)


def _usage(started: float, questions: int) -> Usage:
    """The time of a batch, shared equally by its questions."""
    return Usage(seconds=(time.perf_counter() - started) / max(questions, 1))
