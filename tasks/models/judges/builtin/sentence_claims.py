"""Take sentences as claims, for runs whose judges only judge and write nothing."""

import hashlib
from collections.abc import Callable, Sequence
from functools import cached_property

from metric_core import reasons
from metric_core.prompts.judge_questions import TEXT, ChoiceQuestion, GenerateQuestion, Kind
from metric_core.question_kinds import QuestionKind
from metric_core.records import AnswerStatus
from tasks.models.judges.builtin.claim_sentences import split_claims
from tasks.models.judges.protocol import (
    SENTENCES,
    ChoiceAnswer,
    GenerateAnswer,
    JudgeIdentity,
    OnChoiceAnswer,
    OnGenerateAnswer,
    notify_all,
)
from tasks.models.recognizers.spacy_pipeline import SpacyPipeline

VERSION = 2
"""Increase it whenever the same text would be split into other claims."""

NOTE = (
    "No judge of this run writes claims, so each sentence of a text is one claim. A sentence that is only partly "
    "supported counts as not supported."
)


class SentenceClaims:
    """A stand-in for a judge that writes: each sentence of a text that claims something is one claim.

    Questions, courtesies, headings and refusals to answer claim nothing, as for the built-in judge.

    Args:
        open_pipeline: Function that returns the pipeline that splits sentences; called when it is needed.
    """

    def __init__(self, open_pipeline: Callable[[], SpacyPipeline]) -> None:
        self._open_pipeline = open_pipeline

    @cached_property
    def _pipeline(self) -> SpacyPipeline:
        return self._open_pipeline()

    @property
    def identity(self) -> JudgeIdentity:
        """The identity of the pipeline that splits sentences."""
        pipeline = self._pipeline.identity
        return JudgeIdentity(SENTENCES, f"sentences of {pipeline.model}", pipeline.revision, NOTE, False)

    def can_answer(self, kind: Kind) -> bool:
        """Return whether this is the kind of questions for claims."""
        return kind is QuestionKind.CLAIMS

    def fingerprint(self, kind: Kind) -> str:
        """Return a digest of the rules and the pipeline."""
        return hashlib.sha256(repr((SENTENCES, VERSION, kind, self._pipeline.identity)).encode()).hexdigest()

    def choose(
        self, questions: Sequence[ChoiceQuestion], on_answer: OnChoiceAnswer | None = None
    ) -> list[ChoiceAnswer]:
        """Return undefined answers."""
        answers = [ChoiceAnswer(AnswerStatus.UNDEFINED, reason=reasons.NEEDS_LANGUAGE_MODEL) for _ in questions]
        notify_all(answers, on_answer)
        return answers

    def generate(
        self, questions: Sequence[GenerateQuestion], on_answer: OnGenerateAnswer | None = None
    ) -> list[GenerateAnswer]:
        """Return the sentences of each text as its claims; questions of other kinds are undefined."""
        asked = [position for position, question in enumerate(questions) if self.can_answer(question.kind)]
        answers = [GenerateAnswer(AnswerStatus.UNDEFINED, reason=reasons.NEEDS_LANGUAGE_MODEL) for _ in questions]
        found = split_claims([questions[position].texts[TEXT] for position in asked], self._pipeline, clauses=False)
        for position, claims in zip(asked, found, strict=True):
            answers[position] = GenerateAnswer(AnswerStatus.ANSWERED, {"claims": claims})
        notify_all(answers, on_answer)
        return answers
