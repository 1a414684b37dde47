"""What every judge is: something that answers choice and generate questions, in batches, in order."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias, TypeVar, runtime_checkable

from metric_core.judge_questions import ChoiceQuestion, GenerateQuestion, JudgeQuestion, QuestionKind
from metric_core.records import AnswerStatus
from tasks.runtime.usage import Usage


@dataclass(frozen=True, slots=True)
class JudgeIdentity:
    """Who answered: everything about a judge that can change its answers.

    Args:
        backend: `builtin`, `scripted` or `server`.
        model: the model's name.
        revision: the model's revision; for builtin models the digest or version of their numbers.
        note: one sentence for reports: what this judge is and how far to trust it.
        language_model: whether it can answer questions that need a language model.
    """

    backend: str
    model: str
    revision: str
    note: str
    language_model: bool


@dataclass(frozen=True, slots=True)
class PanelVote:
    """What one judge of a panel said.

    Args:
        judge: its name, unique in the panel.
        label: its label; None where it gave no usable one.
        probability: its probability of that label; None where it has none.
        vote: to which of the votes asked for this belongs, from 0.
    """

    judge: str
    label: str | None
    probability: float | None
    vote: int = 0


@dataclass(frozen=True, slots=True)
class ChoiceAnswer:
    """The answer to a choice question: one label a vote.

    Args:
        status: answered, undefined (this judge can not be asked that) or failed (nothing usable came back).
        votes: the label of each vote; None for a vote without a usable label. Empty unless answered.
        probabilities: probability of each label, renormalised over the labels; None where the judge has none.
        reason: why it is undefined or failed.
        reply: the judge's raw words.
        usage: what it cost when it was asked.
        stored: whether it was taken from a store of answers; then it cost nothing this time.
        panel: what each judge said, where a panel was asked.
    """

    status: AnswerStatus
    votes: tuple[str | None, ...] = ()
    probabilities: Mapping[str, float] | None = None
    reason: str | None = None
    reply: str | None = None
    usage: Usage = field(default_factory=Usage)
    stored: bool = False
    panel: tuple[PanelVote, ...] = ()

    @property
    def label(self) -> str | None:
        """The label of the first vote: the whole answer where one vote was asked."""
        return self.votes[0] if self.votes else None


@dataclass(frozen=True, slots=True)
class GenerateAnswer:
    """The answer to a generate question: a value that fits the question's schema.

    Args:
        status: answered, undefined (this judge can not be asked that) or failed (nothing usable came back).
        value: the parsed reply. None unless answered.
        reason: why it is undefined or failed.
        reply: the judge's raw words.
        usage: what it cost when it was asked.
        stored: whether it was taken from a store of answers; then it cost nothing this time.
    """

    status: AnswerStatus
    value: Any = None
    reason: str | None = None
    reply: str | None = None
    usage: Usage = field(default_factory=Usage)
    stored: bool = False


A = TypeVar("A", ChoiceAnswer, GenerateAnswer)
KeepChoice: TypeAlias = Callable[[int, ChoiceAnswer], None]
KeepGenerate: TypeAlias = Callable[[int, GenerateAnswer], None]
"""Called with the position of a question and its answer, as soon as the answer is there, from any thread."""


def notify_all(answers: Sequence[A], keep: Callable[[int, A], None] | None) -> None:
    """Tells of answers that all came at once, for judges that do not answer one by one."""
    if keep is not None:
        for position, answer in enumerate(answers):
            keep(position, answer)


def is_storable(value: Any) -> bool:
    r"""Whether a reply's value can be stored as JSON: a model may write half of a character, as in "\ud83d".

    >>> is_storable({"claims": ["It rains."]}), is_storable({"claims": ["\ud83d"]})
    (True, False)
    """
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except (TypeError, ValueError):
        return False
    return True


class Judge(Protocol):
    """Answers questions in batches.

    Answers come in the order of the questions, one each, and never raise for one unusable reply: that is a failed
    answer. A judge that can not be used at all raises JudgeError; `keep` has then been called with every answer that
    came before.
    """

    @property
    def identity(self) -> JudgeIdentity:
        """Who answers."""

    def can_answer(self, kind: QuestionKind) -> bool:
        """Whether questions of this kind can be asked at all."""

    def fingerprint(self, kind: QuestionKind) -> str:
        """Digest of all that determines an answer besides the question: model, prompt, sampling, version."""

    def choose(self, questions: Sequence[ChoiceQuestion], keep: KeepChoice | None = None) -> list[ChoiceAnswer]:
        """Answers to choice questions."""

    def generate(self, questions: Sequence[GenerateQuestion], keep: KeepGenerate | None = None) -> list[GenerateAnswer]:
        """Answers to generate questions."""


@runtime_checkable
class PerQuestionFingerprint(Protocol):
    """A judge that knows of each question what its answer depends on: not on all that others of its kind depend on."""

    def fingerprint_of(self, question: JudgeQuestion) -> str:
        """Digest of all that determines the answer to a question besides what the question says."""
