"""The protocol of judges, which answer choice and generate questions in batches."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias, TypeVar, runtime_checkable

from metric_core.prompts.judge_questions import ChoiceQuestion, GenerateQuestion, JudgeQuestion, Kind
from metric_core.records import AnswerStatus
from tasks.options.model_backends import BACKENDS
from tasks.plugins.load_object import Group
from tasks.runtime.usage import Usage


@dataclass(frozen=True, slots=True)
class JudgeIdentity:
    """The identity of a judge: everything about it that can change its answers.

    Args:
        backend: `builtin`, `scripted`, `server`, `panel` or the name of a plugin.
        model: The name of the model.
        revision: The revision of the model; for builtin models the digest or version of their weights.
        note: One sentence for reports about what the judge is and how far to trust it.
        language_model: True if the judge can answer questions that need a language model.
        languages: ISO 639 codes of the languages on which it was measured; empty if that is not known.
        served: Digest of what a server tells of its model and how it replies; empty for a judge without a server.
    """

    backend: str
    model: str
    revision: str
    note: str
    language_model: bool
    languages: tuple[str, ...] = ()
    served: str = ""


NO_JUDGE = JudgeIdentity("none", "none", "", "No metric of this run asks a judge.", language_model=False)
"""The identity that a run records if it needs no judge; the configured one is neither started nor asked."""

ROUTED = "routed"
"""Backend in the identity of several judges that answer groups of questions."""

CASCADE = "cascade"
"""Backend in the identity of two judges, the cheaper of which is asked first; entry of run.json and summary.json."""

SENTENCES = "sentences"
"""Backend in the identity of the stand-in for a judge that writes claims."""

_LOADED = {name for name, backend in BACKENDS[Group.JUDGES].items() if not backend.is_served}

IN_PROCESS = frozenset({*_LOADED, NO_JUDGE.backend, SENTENCES, ROUTED})
"""Backends of judges whose fingerprints determine their answers: their weights are read in this process."""


@dataclass(frozen=True, slots=True)
class PanelVote:
    """The vote of one judge of a panel.

    Args:
        judge: The name of the judge, unique in the panel.
        label: The label it gave; None if it gave no usable label.
        probability: Its probability of that label, in [0, 1]; None if it gives no probabilities.
        vote: The index of the vote, from 0, where a question asks for several.
    """

    judge: str
    label: str | None
    probability: float | None
    vote: int = 0


@dataclass(frozen=True, slots=True)
class ChoiceAnswer:
    """The answer to a choice question: one label per vote.

    Args:
        status: Answered, undefined (the judge cannot answer this kind of question) or failed (no usable reply).
        votes: The label of each vote; None for a vote without a usable label. Empty unless answered.
        probabilities: The probability of each label, normalized to sum 1; None if the judge gives none.
        reason: The reason why the answer is undefined or failed.
        reply: The raw text of the judge's reply.
        usage: The cost of the answer at the time the question was asked.
        stored: True if the answer was read from the cache and cost nothing this time.
        panel: The votes of all judges, where a panel was asked.
        cut_off: The token limit at which the last reply was cut off; None if it was not.
        warning: A sentence for users about the server, if this reply revealed a problem. The answer is not cached.
    """

    status: AnswerStatus
    votes: tuple[str | None, ...] = ()
    probabilities: Mapping[str, float] | None = None
    reason: str | None = None
    reply: str | None = None
    usage: Usage = field(default_factory=Usage)
    stored: bool = False
    panel: tuple[PanelVote, ...] = ()
    cut_off: int | None = None
    warning: str | None = None

    @property
    def label(self) -> str | None:
        """The label of the first vote; None if there is no vote."""
        return self.votes[0] if self.votes else None


@dataclass(frozen=True, slots=True)
class GenerateAnswer:
    """The answer to a generate question: a value that fits the question's schema.

    Args:
        status: Answered, undefined (the judge cannot answer this kind of question) or failed (no usable reply).
        value: The parsed reply. None unless answered.
        reason: The reason why the answer is undefined or failed.
        reply: The raw text of the judge's reply.
        usage: The cost of the answer at the time the question was asked.
        stored: True if the answer was read from the cache and cost nothing this time.
        cut_off: The token limit at which the last reply was cut off; None if it was not.
        warning: A sentence for users about the server, if this reply revealed a problem. The answer is not cached.
    """

    status: AnswerStatus
    value: Any = None
    reason: str | None = None
    reply: str | None = None
    usage: Usage = field(default_factory=Usage)
    stored: bool = False
    cut_off: int | None = None
    warning: str | None = None


A = TypeVar("A", ChoiceAnswer, GenerateAnswer)
OnChoiceAnswer: TypeAlias = Callable[[int, ChoiceAnswer], None]
OnGenerateAnswer: TypeAlias = Callable[[int, GenerateAnswer], None]
"""Called from any thread with the position of a question and its answer, as soon as the answer is available."""


def notify_all(answers: Sequence[A], on_answer: Callable[[int, A], None] | None) -> None:
    """Call `on_answer` for each answer of a batch, for judges that answer a whole batch at once."""
    if on_answer is not None:
        for position, answer in enumerate(answers):
            on_answer(position, answer)


def is_storable(value: Any) -> bool:
    r"""Return whether a value can be stored as JSON; a model may write half of a surrogate pair, such as "\ud83d".

    >>> is_storable({"claims": ["It rains."]}), is_storable({"claims": ["\ud83d"]})
    (True, False)
    """
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except (TypeError, ValueError):
        return False
    return True


class Judge(Protocol):
    """A model that answers questions in batches.

    `choose` and `generate` return one answer per question, in the order of the questions. An unusable reply is a
    failed answer, not an exception. A judge that cannot be used at all raises JudgeError, after calling `on_answer`
    with every answer received until then.
    """

    @property
    def identity(self) -> JudgeIdentity:
        """The identity of the judge."""

    def can_answer(self, kind: Kind) -> bool:
        """Return whether the judge can answer questions of this kind."""

    def fingerprint(self, kind: Kind) -> str:
        """Return a digest of everything but the question that determines an answer: model, prompt, sampling."""

    def choose(
        self, questions: Sequence[ChoiceQuestion], on_answer: OnChoiceAnswer | None = None
    ) -> list[ChoiceAnswer]:
        """Answer choice questions, in their order."""

    def generate(
        self, questions: Sequence[GenerateQuestion], on_answer: OnGenerateAnswer | None = None
    ) -> list[GenerateAnswer]:
        """Answer generate questions, in their order."""


@runtime_checkable
class PerQuestionFingerprint(Protocol):
    """A judge with one fingerprint per question, where questions of a kind depend on different settings."""

    def fingerprint_of(self, question: JudgeQuestion) -> str:
        """Return a digest of everything but the question's content that determines its answer."""
