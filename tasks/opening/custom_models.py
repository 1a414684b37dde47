"""Check custom judges, embedders and recognizers against the protocols of the built-in ones.

Their module, version, source code and options are part of their identity, and therefore of every cache key.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import jsonschema
import numpy as np
from numpy.typing import NDArray

from metric_core import reasons
from metric_core.prompts.judge_questions import ChoiceQuestion, GenerateQuestion, JudgeQuestion, Kind
from metric_core.records import AnswerStatus
from tasks.models.embedders.protocol import EmbedderIdentity
from tasks.models.judges.protocol import (
    ChoiceAnswer,
    GenerateAnswer,
    JudgeIdentity,
    OnChoiceAnswer,
    OnGenerateAnswer,
    is_storable,
)
from tasks.models.recognizers.protocol import Entity, RecognizerIdentity
from tasks.plugins.instantiate import PluginInstance, instantiate
from tasks.plugins.load_object import Group, digest_with
from tasks.runtime.usage import Usage

T = TypeVar("T")
Q = TypeVar("Q", bound=JudgeQuestion)
A = TypeVar("A", ChoiceAnswer, GenerateAnswer)

_FIELD_TYPES = {"status": AnswerStatus, "usage": Usage, "reason": str | None, "reply": str | None}
_REASONS = {
    AnswerStatus.FAILED: reasons.NO_USABLE_REPLY,
    AnswerStatus.UNDEFINED: reasons.NEEDS_LANGUAGE_MODEL,
}
"""Default reasons for answers without one."""


class CustomJudge:
    """A custom judge. May be used from several threads if the judge itself may.

    Args:
        name: Name as `module:attribute`, or the name of an entry point.
        options: Keyword arguments of its constructor.

    Raises:
        PluginError: The judge cannot be found or created, or does not implement the protocol.
    """

    def __init__(self, name: str, options: Mapping[str, object]) -> None:
        self._plugin = instantiate(Group.JUDGES, name, options)

    @property
    def identity(self) -> JudgeIdentity:
        """The identity of the judge and of its code."""
        identity = _identity(self._plugin, JudgeIdentity)
        return replace(identity, backend=self._plugin.name, revision=_revision(self._plugin, identity.revision))

    def can_answer(self, kind: Kind) -> bool:
        """Return whether the judge can answer questions of this kind."""
        return bool(self._plugin.call("can_answer", self._plugin.obj.can_answer, kind))

    def fingerprint(self, kind: Kind) -> str:
        """Return the digest of the fingerprint that the judge gives and of its code."""
        fingerprint = self._plugin.call("fingerprint", self._plugin.obj.fingerprint, kind)
        if not isinstance(fingerprint, str):
            raise self._plugin.error(f"gave {fingerprint!r} as a fingerprint, wanted a text")
        return digest_with(self._plugin.code, fingerprint)

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
                raise self._plugin.error(f"gave {answer!r} in {method}, wanted a {kind.__name__}")
            for name, field_type in _FIELD_TYPES.items():
                if not isinstance(value := getattr(answer, name), field_type):
                    raise self._plugin.error(f"gave {value!r} as {name} in {method}, wanted {_type_name(field_type)}")
            checked: A = self._plugin.call(method, check, questions[position], answer)
            return checked

        def report_answer(position: int, answer: object) -> None:
            if on_answer is not None:
                on_answer(position, check_answer(position, answer))

        answers = self._plugin.call(method, getattr(self._plugin.obj, method), questions, report_answer)
        if not isinstance(answers, Sequence) or len(answers) != len(questions):
            raise self._plugin.error(
                f"must give {len(questions)} answers in {method}, one per question, in their order"
            )
        return [check_answer(position, answer) for position, answer in enumerate(answers)]


class CustomEmbedder:
    """A custom embedder; see `CustomJudge`."""

    def __init__(self, name: str, options: Mapping[str, object]) -> None:
        self._plugin = instantiate(Group.EMBEDDERS, name, options)

    @property
    def identity(self) -> EmbedderIdentity:
        """The identity of the model and of its code."""
        identity = _identity(self._plugin, EmbedderIdentity)
        return replace(identity, backend=self._plugin.name, revision=_revision(self._plugin, identity.revision))

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return vectors of shape (len(texts), dimensions), in the order of the texts.

        Raises:
            EmbedderError: The vectors have another shape, or are not finite.
        """
        returned = self._plugin.call("embed", self._plugin.obj.embed, texts)
        wanted = (len(texts), self.identity.dimensions)
        try:
            vectors = np.asarray(returned, dtype=np.float32).reshape(wanted if not texts else np.shape(returned))
        except (TypeError, ValueError) as error:
            raise self._plugin.error(f"gave no vectors: {error}") from error
        if vectors.shape != wanted or not np.isfinite(vectors).all():
            raise self._plugin.error(f"gave vectors of shape {vectors.shape}, wanted finite numbers of shape {wanted}")
        return vectors


class CustomRecognizer:
    """A custom recognizer of entities; see `CustomJudge`."""

    def __init__(self, name: str, options: Mapping[str, object]) -> None:
        self._plugin = instantiate(Group.RECOGNIZERS, name, options)

    @property
    def identity(self) -> RecognizerIdentity:
        """The identity of the model and of its code."""
        identity = _identity(self._plugin, RecognizerIdentity)
        return replace(identity, backend=self._plugin.name, revision=_revision(self._plugin, identity.revision))

    def entities(self, texts: Sequence[str]) -> list[list[Entity]]:
        """Return the entities of each text, in the order of the texts.

        Raises:
            PluginError: The recognizer does not return one list of entities per text.
        """
        returned = self._plugin.call("entities", self._plugin.obj.entities, texts)
        lists = [list(entities) for entities in returned] if isinstance(returned, Sequence) else []
        if len(lists) != len(texts) or any(not _is_entity(entity) for entities in lists for entity in entities):
            raise self._plugin.error(
                f"must give one list of Entity per text, {len(texts)} lists, each Entity with a text and a label"
            )
        return lists


def _identity(plugin: PluginInstance, kind: type[T]) -> T:
    identity = plugin.call("identity", lambda: plugin.obj.identity)
    if not isinstance(identity, kind):
        raise plugin.error(f"has the identity {identity!r}, wanted a {kind.__name__}")
    return identity


def _revision(plugin: PluginInstance, revision: str) -> str:
    return f"{revision} (code {plugin.code[:12]})"


def _is_entity(obj: object) -> bool:
    return isinstance(obj, Entity) and isinstance(obj.text, str) and isinstance(obj.label, str)


def _check_choice(question: ChoiceQuestion, answer: ChoiceAnswer) -> ChoiceAnswer:
    """Return the answer, or a failure if its labels are not those of the question."""
    if answer.status is not AnswerStatus.ANSWERED:
        return replace(answer, reason=answer.reason or _REASONS[answer.status])
    votes, probabilities = tuple(answer.votes), answer.probabilities
    if probabilities is not None:
        probabilities = {label: float(probability) for label, probability in probabilities.items()}
    has_usable_votes = len(votes) == question.votes and {None} != {*votes} <= {None, *question.labels}
    by_label = probabilities or {}
    if has_usable_votes and {*by_label} <= {*question.labels} and all(0 <= p <= 1 for p in by_label.values()):
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


def _type_name(kind: Any) -> str:
    return kind.__name__ if isinstance(kind, type) else "a text or None"
