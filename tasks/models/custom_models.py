"""Judges, embedders and recognisers of the user's own, as the stages see them: held to the protocol of ours.

What they are made of (module, version, source, options) is part of their identity, and with it of every key.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import jsonschema
import numpy as np
from numpy.typing import NDArray

from metric_core import reasons
from metric_core.judge_questions import ChoiceQuestion, GenerateQuestion, JudgeQuestion, QuestionKind
from metric_core.records import AnswerStatus
from tasks.embedders.protocol import EmbedderIdentity
from tasks.judges.protocol import (
    ChoiceAnswer,
    GenerateAnswer,
    JudgeIdentity,
    OnChoiceAnswer,
    OnGenerateAnswer,
    is_storable,
)
from tasks.plugins.instantiate import PluginInstance, instantiate
from tasks.plugins.load_object import Group, digest_with
from tasks.recognizers.protocol import Entity, RecognizerIdentity
from tasks.runtime.usage import Usage

T = TypeVar("T")
Q = TypeVar("Q", bound=JudgeQuestion)
A = TypeVar("A", ChoiceAnswer, GenerateAnswer)

_PARTS = {"status": AnswerStatus, "usage": Usage, "reason": str | None, "reply": str | None}
_REASONS = {
    AnswerStatus.FAILED: reasons.NO_USABLE_REPLY,
    AnswerStatus.UNDEFINED: reasons.NEEDS_LANGUAGE_MODEL,
}
"""Why there is no answer, where a judge does not say it."""


class CustomJudge:
    """A judge of the user's own. May be used from several threads, if it may.

    Args:
        name: `module:attribute` or an entry point's name.
        options: what it is made with.

    Raises:
        ExtensionError: it can not be found or made, or is no judge.
    """

    def __init__(self, name: str, options: Mapping[str, Any]) -> None:
        self._made = instantiate(Group.JUDGES, name, options)

    @property
    def identity(self) -> JudgeIdentity:
        """Who answers, and by which code."""
        own = _identity(self._made, JudgeIdentity)
        return replace(own, backend=self._made.name, revision=_revision(self._made, own.revision))

    def can_answer(self, kind: QuestionKind) -> bool:
        """Whether questions of this kind can be asked at all."""
        return bool(self._made.call("can_answer", self._made.obj.can_answer, kind))

    def fingerprint(self, kind: QuestionKind) -> str:
        """Digest of the judge's own fingerprint and of its code."""
        own = self._made.call("fingerprint", self._made.obj.fingerprint, kind)
        if not isinstance(own, str):
            raise self._made.error(f"gave {own!r} as a fingerprint, wanted a text")
        return digest_with(self._made.code, own)

    def choose(
        self, questions: Sequence[ChoiceQuestion], on_answer: OnChoiceAnswer | None = None
    ) -> list[ChoiceAnswer]:
        """Answers to choice questions."""
        return self._asked("choose", questions, ChoiceAnswer, _check_choice, on_answer)

    def generate(
        self, questions: Sequence[GenerateQuestion], on_answer: OnGenerateAnswer | None = None
    ) -> list[GenerateAnswer]:
        """Answers to generate questions."""
        return self._asked("generate", questions, GenerateAnswer, _check_value, on_answer)

    def _asked(
        self,
        method: str,
        questions: Sequence[Q],
        kind: type[A],
        check: Callable[[Q, A], A],
        on_answer: Callable[[int, A], None] | None,
    ) -> list[A]:
        def checked(position: int, answer: object) -> A:
            if not isinstance(answer, kind):
                raise self._made.error(f"gave {answer!r} in {method}, wanted a {kind.__name__}")
            for name, wanted in _PARTS.items():
                if not isinstance(value := getattr(answer, name), wanted):
                    raise self._made.error(f"gave {value!r} as {name} in {method}, wanted {_named(wanted)}")
            good: A = self._made.call(method, check, questions[position], answer)
            return good

        def told(position: int, answer: object) -> None:
            if on_answer is not None:
                on_answer(position, checked(position, answer))

        answers = self._made.call(method, getattr(self._made.obj, method), questions, told)
        if not isinstance(answers, Sequence) or len(answers) != len(questions):
            raise self._made.error(f"must give {len(questions)} answers in {method}, one a question, in their order")
        return [checked(position, answer) for position, answer in enumerate(answers)]


class CustomEmbedder:
    """An embedder of the user's own; see `CustomJudge`."""

    def __init__(self, name: str, options: Mapping[str, Any]) -> None:
        self._made = instantiate(Group.EMBEDDERS, name, options)

    @property
    def identity(self) -> EmbedderIdentity:
        """Which model, and by which code."""
        own = _identity(self._made, EmbedderIdentity)
        return replace(own, backend=self._made.name, revision=_revision(self._made, own.revision))

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of shape (len(texts), dimensions), in the order of the texts.

        Raises:
            EmbedderError: what it gives has another shape, or is not finite.
        """
        given = self._made.call("embed", self._made.obj.embed, texts)
        wanted = (len(texts), self.identity.dimensions)
        try:
            vectors = np.asarray(given, dtype=np.float32).reshape(wanted if not texts else np.shape(given))
        except (TypeError, ValueError) as error:
            raise self._made.error(f"gave no vectors: {error}") from error
        if vectors.shape != wanted or not np.isfinite(vectors).all():
            raise self._made.error(f"gave vectors of shape {vectors.shape}, wanted finite numbers of shape {wanted}")
        return vectors


class CustomRecognizer:
    """A recogniser of entities of the user's own; see `CustomJudge`."""

    def __init__(self, name: str, options: Mapping[str, Any]) -> None:
        self._made = instantiate(Group.RECOGNIZERS, name, options)

    @property
    def identity(self) -> RecognizerIdentity:
        """Which model, and by which code."""
        own = _identity(self._made, RecognizerIdentity)
        return replace(own, backend=self._made.name, revision=_revision(self._made, own.revision))

    def entities(self, texts: Sequence[str]) -> list[list[Entity]]:
        """The entities of each text, in the order of the texts.

        Raises:
            ExtensionError: what it gives is no list of entities a text.
        """
        found = self._made.call("entities", self._made.obj.entities, texts)
        lists = [list(entities) for entities in found] if isinstance(found, Sequence) else []
        if len(lists) != len(texts) or any(not _is_entity(entity) for entities in lists for entity in entities):
            raise self._made.error(f"must give a list of Entity a text, {len(texts)} lists, each Entity with texts")
        return lists


def _identity(thing: PluginInstance, kind: type[T]) -> T:
    own = thing.call("identity", lambda: thing.obj.identity)
    if not isinstance(own, kind):
        raise thing.error(f"has the identity {own!r}, wanted a {kind.__name__}")
    return own


def _revision(thing: PluginInstance, own: str) -> str:
    return f"{own} (code {thing.code[:12]})"


def _is_entity(found: object) -> bool:
    return isinstance(found, Entity) and isinstance(found.text, str) and isinstance(found.label, str)


def _check_choice(question: ChoiceQuestion, answer: ChoiceAnswer) -> ChoiceAnswer:
    """A label that the question does not have is no usable answer, and so is none at all."""
    if answer.status is not AnswerStatus.ANSWERED:
        return replace(answer, reason=answer.reason or _REASONS[answer.status])
    votes, probabilities = tuple(answer.votes), answer.probabilities
    if probabilities is not None:
        probabilities = {label: float(probability) for label, probability in probabilities.items()}
    is_good = len(votes) == question.votes and {None} != {*votes} <= {None, *question.labels}
    told = probabilities or {}
    if is_good and {*told} <= {*question.labels} and all(0 <= p <= 1 for p in told.values()):
        return replace(answer, votes=votes, probabilities=probabilities)
    reply = answer.reply or repr(answer.votes)
    return ChoiceAnswer(AnswerStatus.FAILED, reason=reasons.NO_USABLE_REPLY, reply=reply, usage=answer.usage)


def _check_value(question: GenerateQuestion, answer: GenerateAnswer) -> GenerateAnswer:
    """A value that does not fit the schema, or that can not be stored, is no usable answer."""
    if answer.status is not AnswerStatus.ANSWERED:
        return replace(answer, reason=answer.reason or _REASONS[answer.status])
    if jsonschema.Draft202012Validator(question.schema).is_valid(answer.value) and is_storable(answer.value):
        return answer
    reply = answer.reply or repr(answer.value)
    return GenerateAnswer(AnswerStatus.FAILED, reason=reasons.NO_USABLE_REPLY, reply=reply, usage=answer.usage)


def _named(kind: Any) -> str:
    return getattr(kind, "__name__", "a text or None")
