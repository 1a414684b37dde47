"""Check custom judges, embedders and recognizers against the protocols of the built-in ones.

Their module, version, source and options are part of their identity, and so of every key.
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
"""Reasons for answers that a judge gives without one."""


class CustomJudge:
    """A custom judge. May be used from several threads if the judge itself may.

    Args:
        name: Name as `module:attribute`, or the name of an entry point.
        options: Keyword arguments of its constructor.

    Raises:
        PluginError: It cannot be found or created, or is no judge.
    """

    def __init__(self, name: str, options: Mapping[str, Any]) -> None:
        self._made = instantiate(Group.JUDGES, name, options)

    @property
    def identity(self) -> JudgeIdentity:
        """The identity of the judge and of its code."""
        own = _identity(self._made, JudgeIdentity)
        return replace(own, backend=self._made.name, revision=_revision(self._made, own.revision))

    def can_answer(self, kind: QuestionKind) -> bool:
        """Return whether the judge can answer questions of this kind."""
        return bool(self._made.call("can_answer", self._made.obj.can_answer, kind))

    def fingerprint(self, kind: QuestionKind) -> str:
        """Return the digest of the judge's own fingerprint and of its code."""
        own = self._made.call("fingerprint", self._made.obj.fingerprint, kind)
        if not isinstance(own, str):
            raise self._made.error(f"gave {own!r} as a fingerprint, wanted a text")
        return digest_with(self._made.code, own)

    def choose(
        self, questions: Sequence[ChoiceQuestion], on_answer: OnChoiceAnswer | None = None
    ) -> list[ChoiceAnswer]:
        """Return answers to choice questions, in their order."""
        return self._ask("choose", questions, ChoiceAnswer, _check_choice, on_answer)

    def generate(
        self, questions: Sequence[GenerateQuestion], on_answer: OnGenerateAnswer | None = None
    ) -> list[GenerateAnswer]:
        """Return answers to generate questions, in their order."""
        return self._ask("generate", questions, GenerateAnswer, _check_value, on_answer)

    def _ask(
        self,
        method: str,
        questions: Sequence[Q],
        kind: type[A],
        check: Callable[[Q, A], A],
        on_answer: Callable[[int, A], None] | None,
    ) -> list[A]:
        def check_answer(position: int, answer: object) -> A:
            if not isinstance(answer, kind):
                raise self._made.error(f"gave {answer!r} in {method}, wanted a {kind.__name__}")
            for name, wanted in _PARTS.items():
                if not isinstance(value := getattr(answer, name), wanted):
                    raise self._made.error(f"gave {value!r} as {name} in {method}, wanted {_named(wanted)}")
            good: A = self._made.call(method, check, questions[position], answer)
            return good

        def keep_checked(position: int, answer: object) -> None:
            if on_answer is not None:
                on_answer(position, check_answer(position, answer))

        answers = self._made.call(method, getattr(self._made.obj, method), questions, keep_checked)
        if not isinstance(answers, Sequence) or len(answers) != len(questions):
            raise self._made.error(f"must give {len(questions)} answers in {method}, one a question, in their order")
        return [check_answer(position, answer) for position, answer in enumerate(answers)]


class CustomEmbedder:
    """A custom embedder; see `CustomJudge`."""

    def __init__(self, name: str, options: Mapping[str, Any]) -> None:
        self._made = instantiate(Group.EMBEDDERS, name, options)

    @property
    def identity(self) -> EmbedderIdentity:
        """The identity of the model and of its code."""
        own = _identity(self._made, EmbedderIdentity)
        return replace(own, backend=self._made.name, revision=_revision(self._made, own.revision))

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return vectors of shape (len(texts), dimensions), in the order of the texts.

        Raises:
            PluginError: The vectors have another shape, or are not finite.
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
    """A custom recognizer of entities; see `CustomJudge`."""

    def __init__(self, name: str, options: Mapping[str, Any]) -> None:
        self._made = instantiate(Group.RECOGNIZERS, name, options)

    @property
    def identity(self) -> RecognizerIdentity:
        """The identity of the model and of its code."""
        own = _identity(self._made, RecognizerIdentity)
        return replace(own, backend=self._made.name, revision=_revision(self._made, own.revision))

    def entities(self, texts: Sequence[str]) -> list[list[Entity]]:
        """Return the entities of each text, in the order of the texts.

        Raises:
            PluginError: The recognizer does not return one list of entities per text.
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
    """Return the answer, or a failure if its labels are not those of the question."""
    if answer.status is not AnswerStatus.ANSWERED:
        return replace(answer, reason=answer.reason or _REASONS[answer.status])
    votes, probabilities = tuple(answer.votes), answer.probabilities
    if probabilities is not None:
        probabilities = {label: float(probability) for label, probability in probabilities.items()}
    is_good = len(votes) == question.votes and {None} != {*votes} <= {None, *question.labels}
    given = probabilities or {}
    if is_good and {*given} <= {*question.labels} and all(0 <= p <= 1 for p in given.values()):
        return replace(answer, votes=votes, probabilities=probabilities)
    reply = answer.reply or repr(answer.votes)
    return ChoiceAnswer(AnswerStatus.FAILED, reason=reasons.NO_USABLE_REPLY, reply=reply, usage=answer.usage)


def _check_value(question: GenerateQuestion, answer: GenerateAnswer) -> GenerateAnswer:
    """Return the answer, or a failure if its value does not fit the schema or cannot be stored."""
    if answer.status is not AnswerStatus.ANSWERED:
        return replace(answer, reason=answer.reason or _REASONS[answer.status])
    if jsonschema.Draft202012Validator(question.schema).is_valid(answer.value) and is_storable(answer.value):
        return answer
    reply = answer.reply or repr(answer.value)
    return GenerateAnswer(AnswerStatus.FAILED, reason=reasons.NO_USABLE_REPLY, reply=reply, usage=answer.usage)


def _named(kind: Any) -> str:
    return getattr(kind, "__name__", "a text or None")
