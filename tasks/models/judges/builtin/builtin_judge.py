"""The built-in judge: a baseline that needs no server, no GPU and no download."""

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from metric_core import reasons
from metric_core.prompts import judge_questions
from metric_core.prompts.judge_questions import ChoiceQuestion, GenerateQuestion, Kind
from metric_core.question_kinds import QuestionKind
from metric_core.records import AnswerStatus
from metric_core.refusals.refusal_forms import declines
from tasks.models.embedders.protocol import Embedder
from tasks.models.judges.builtin.claim_sentences import split_claims
from tasks.models.judges.builtin.feature_extraction import FeatureExtractor
from tasks.models.judges.builtin.linear_models import RELEVANCE, USEFULNESS, VERDICT, LinearModel, revision
from tasks.models.judges.builtin.other_scripts import is_readable, stands_verbatim
from tasks.models.judges.builtin.question_writing import write_questions
from tasks.models.judges.protocol import (
    ChoiceAnswer,
    GenerateAnswer,
    JudgeIdentity,
    OnChoiceAnswer,
    OnGenerateAnswer,
    notify_all,
)
from tasks.models.recognizers.scripts import is_mostly_latin
from tasks.models.recognizers.spacy_pipeline import SpacyPipeline
from tasks.runtime.usage import Usage

VERSION = 8
"""Increase it whenever the rules would give another answer to the same question."""

_NOTE = (
    "Not a language model: claims are clauses, verdicts come from word overlap, numbers, names and "
    "embeddings. Agreement with people (AUROC, 0.5 is chance): single claims in WiCE 0.84, BEGIN 0.96, Factcheck-Bench "
    "0.80, FActScore 0.88; whole answers, by the mean probability of their claims, in RAGTruth QA 0.80, QAGS 0.66, "
    "FaithBench 0.56. It sees missing facts, not subtle distortions: good for comparing runs, not for judging a single "
    "answer."
)
_THRESHOLD = 0.5
_VERBATIM = VERDICT.probability(
    dict.fromkeys(VERDICT.weights, 0.0)
    | dict.fromkeys(("words_covered", "best_sentence", "best_window", "cosine"), 1.0)
)
"""The probability that the model gives to a claim that occurs in the context verbatim."""
_CHOICES: Mapping[Kind, LinearModel] = {
    QuestionKind.VERDICT: VERDICT,
    QuestionKind.KEY_POINT: VERDICT,
    QuestionKind.USEFULNESS_FOR_REFERENCE: USEFULNESS,
    QuestionKind.USEFULNESS_FOR_RESPONSE: USEFULNESS,
}
_GENERATED = frozenset({QuestionKind.CLAIMS, QuestionKind.QUESTIONS, QuestionKind.RELEVANT_SENTENCES})


class BuiltinJudge:
    """A judge for claims, verdicts, usefulness and relevance; all other questions need a language model.

    Refusals are recognized by their forms: see `metric_core.refusals.refusal_forms`.

    Deterministic and thread-safe.
    """

    def __init__(self, embedder: Embedder, pipeline: SpacyPipeline) -> None:
        self._embedder = embedder
        self._pipeline = pipeline
        self._extractor = FeatureExtractor(embedder, pipeline)

    @property
    def identity(self) -> JudgeIdentity:
        """The identity of the judge, with those of its embedder and pipeline."""
        embedder, recognizer = self._embedder.identity, self._pipeline.identity
        model = f"builtin with {embedder.model} and {recognizer.model}"
        versions = f"{revision()}/{embedder.revision}/{recognizer.revision}"
        return JudgeIdentity("builtin", model, versions, _NOTE, language_model=False, languages=("en",))

    def can_answer(self, kind: Kind) -> bool:
        """Return whether the judge can answer questions of this kind."""
        return kind in _CHOICES or kind in _GENERATED or kind is QuestionKind.REFUSAL

    def fingerprint(self, kind: Kind) -> str:
        """Return a digest of the weights, the version of the rules, the embedder and the pipeline."""
        embedder, recognizer = self._embedder.identity, self._pipeline.identity
        content = repr((VERSION, kind, revision(), embedder, recognizer))
        return hashlib.sha256(content.encode()).hexdigest()

    def choose(
        self, questions: Sequence[ChoiceQuestion], on_answer: OnChoiceAnswer | None = None
    ) -> list[ChoiceAnswer]:
        """Answer choice questions, with the probability of each label."""
        started = time.perf_counter()
        readable = [question.kind in _CHOICES and is_readable(question) for question in questions]
        features = iter(
            self._extractor.choice_features(
                [question for question, read in zip(questions, readable, strict=True) if read]
            )
        )
        found = [
            _CHOICES[question.kind].probability(next(features)) if read else _answer_unread(question)
            for question, read in zip(questions, readable, strict=True)
        ]
        usage = _usage(started, len(questions))
        answers = [_choice(question, yes, usage) for question, yes in zip(questions, found, strict=True)]
        notify_all(answers, on_answer)
        return answers

    def generate(
        self, questions: Sequence[GenerateQuestion], on_answer: OnGenerateAnswer | None = None
    ) -> list[GenerateAnswer]:
        """Answer generate questions."""
        started = time.perf_counter()
        values: dict[int, Any] = {}
        generators: dict[Kind, Callable[[Sequence[GenerateQuestion]], list[Any]]] = {
            QuestionKind.CLAIMS: self._claims,
            QuestionKind.QUESTIONS: self._questions,
            QuestionKind.RELEVANT_SENTENCES: self._relevant_sentences,
        }
        for kind, generator in generators.items():
            positions = [
                position
                for position, question in enumerate(questions)
                if question.kind is kind and _can_generate(question)
            ]
            values.update(zip(positions, generator([questions[position] for position in positions]), strict=True))
        usage = _usage(started, len(questions))
        answers = [
            GenerateAnswer(AnswerStatus.ANSWERED, value=values[position], usage=usage)
            if position in values
            else GenerateAnswer(AnswerStatus.UNDEFINED, reason=_why_not(question))
            for position, question in enumerate(questions)
        ]
        notify_all(answers, on_answer)
        return answers

    def _claims(self, questions: Sequence[GenerateQuestion]) -> list[dict[str, list[str]]]:
        texts = [question.texts[judge_questions.TEXT] for question in questions]
        answered = [question.texts.get(judge_questions.USER_INPUT) for question in questions]
        return [{"claims": claims} for claims in split_claims(texts, self._pipeline, questions=answered)]

    def _questions(self, questions: Sequence[GenerateQuestion]) -> list[dict[str, list[dict[str, Any]]]]:
        responses = [question.texts[judge_questions.RESPONSE] for question in questions]
        counts = [int(question.schema["properties"]["questions"]["minItems"]) for question in questions]
        return [
            {"questions": [{"question": text, "noncommittal": written.noncommittal} for text in written.questions]}
            for written in write_questions(responses, counts, self._pipeline)
        ]

    def _relevant_sentences(self, questions: Sequence[GenerateQuestion]) -> list[dict[str, list[int]]]:
        return [
            {
                "relevant": [
                    number
                    for number, features in zip(sentences.numbers, sentences.features, strict=True)
                    if RELEVANCE.probability(features) >= _THRESHOLD
                ]
            }
            for sentences in self._extractor.sentence_features(questions)
        ]


def _answer_unread(question: ChoiceQuestion) -> float | str:
    """Return the probability of yes for a text that needs no model, else why there is none.

    Refusals are recognized by their forms; of other texts in other scripts, those that occur in the context verbatim.
    """
    if question.kind is QuestionKind.REFUSAL:
        return float(not declines(question.texts[judge_questions.RESPONSE]))
    if question.kind not in _CHOICES:
        return reasons.NEEDS_LANGUAGE_MODEL
    return _VERBATIM if stands_verbatim(question) else reasons.UNKNOWN_SCRIPT_TO_JUDGE


def _can_generate(question: GenerateQuestion) -> bool:
    """Return whether the judge can answer; it splits texts of all scripts into claims."""
    if question.kind is QuestionKind.QUESTIONS:
        return is_mostly_latin(question.texts[judge_questions.RESPONSE])
    if question.kind is QuestionKind.RELEVANT_SENTENCES:
        return all(map(is_mostly_latin, question.texts.values()))
    return question.kind in _GENERATED


def _why_not(question: GenerateQuestion) -> str:
    return reasons.UNKNOWN_SCRIPT_TO_JUDGE if question.kind in _GENERATED else reasons.NEEDS_LANGUAGE_MODEL


def _choice(question: ChoiceQuestion, yes: float | str, usage: Usage) -> ChoiceAnswer:
    if isinstance(yes, str):
        return ChoiceAnswer(AnswerStatus.UNDEFINED, reason=yes)
    label = judge_questions.YES if yes >= _THRESHOLD else judge_questions.NO
    probabilities = {judge_questions.YES: yes, judge_questions.NO: 1 - yes}
    return ChoiceAnswer(AnswerStatus.ANSWERED, (label,) * question.votes, probabilities, usage=usage)


def _usage(started: float, questions: int) -> Usage:
    """Return the usage per question, with the time of a batch divided equally."""
    return Usage(seconds=(time.perf_counter() - started) / max(questions, 1))
