"""A judge that answers from a script, for tests of pipelines and metrics that need known answers."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from threading import Lock
from typing import Any, TypeAlias

from metric_core.errors import ConfigError
from metric_core.parsing.regular_files import regular
from metric_core.parsing.strict_json import parse_json
from metric_core.prompts.judge_questions import ChoiceQuestion, GenerateQuestion, JudgeQuestion, Kind
from metric_core.question_kinds import QuestionKind
from metric_core.records import AnswerStatus
from tasks.models.judges.protocol import (
    ChoiceAnswer,
    GenerateAnswer,
    JudgeIdentity,
    OnChoiceAnswer,
    OnGenerateAnswer,
    notify_all,
)

ScriptKey: TypeAlias = str | tuple[str, ...]
"""A question kind, alone or followed by texts that the question must contain."""
Script: TypeAlias = Mapping[ScriptKey, Any] | Callable[[JudgeQuestion], Any]

NOT_IN_THE_SCRIPT = "not in the script"


class ScriptedJudge:
    """A judge that answers from a script; a question without an entry fails with "not in the script".

    The script is a table or a function. A key of the table is a question kind, or a tuple of the kind and texts that
    must be among the question's texts, verbatim, in any role and order; the key with the most texts wins. A function
    receives the question and returns the answer, or None for an unknown question.

    The answer to a choice question is a label, a list of labels (one per vote) or the probability of each label. The
    answer to a generate question is the value of the reply. Both may be a complete ChoiceAnswer or GenerateAnswer, to
    simulate a failure.

    Args:
        script: Table or function with the answers.
        name: Model name in the identity.

    >>> from metric_core.prompts.judge_questions import ask_claims, ask_verdict
    >>> judge = ScriptedJudge({
    ...     ("claims", "Rome is old."): {"claims": ["Rome is old."]},
    ...     "verdict": "no",
    ...     ("verdict", "Rome is old."): {"yes": 0.9, "no": 0.1},
    ... })
    >>> judge.generate([ask_claims("Rome is old.", None)])[0].value
    {'claims': ['Rome is old.']}
    >>> [answer.label for answer in judge.choose([ask_verdict("Rome is old.", "Any."), ask_verdict("Else.", "Any.")])]
    ['yes', 'no']
    >>> len(judge.asked)
    3
    """

    def __init__(self, script: Script, name: str = "script") -> None:
        self._name = name
        self._lock = Lock()
        self.asked: list[JudgeQuestion] = []
        """All questions received, in order."""
        if callable(script):
            self._find = script
            self._revision = f"{script.__module__}:{getattr(script, '__qualname__', type(script).__qualname__)}"
        else:
            table = [(_parse_key(key), answer) for key, answer in script.items()]
            # The sort is stable: among keys with equally many texts, the first one in the script wins.
            self._table = sorted(table, key=lambda entry: len(entry[0]), reverse=True)
            self._find = self._look_up
            self._revision = hashlib.sha256(json.dumps(table, default=repr).encode()).hexdigest()[:16]

    @classmethod
    def from_file(cls, path: str | Path) -> "ScriptedJudge":
        """Create a judge from a JSON file: a list of objects with `kind`, `answer` and, optionally, `texts`.

        An object with `failed` in place of `answer` gives a failed answer with that reason.

        Raises:
            ConfigError: The file cannot be read or is not such a list.
        """
        try:
            entries = parse_json(regular(Path(path)).read_text(encoding="utf-8-sig"))
        except (OSError, ValueError, RecursionError) as error:
            raise ConfigError(f"the script {path} cannot be read: {error}. Give a JSON file.") from error
        if not isinstance(entries, list):
            raise ConfigError(f"the script {path} must be a JSON list of answers, got {type(entries).__name__}")
        return cls(dict(_parse_entry(entry, path) for entry in entries), name=Path(path).name)

    @property
    def identity(self) -> JudgeIdentity:
        """The identity of the script."""
        note = "Answers come from a script, for tests; the scores say nothing about the data."
        return JudgeIdentity("scripted", self._name, self._revision, note, language_model=True)

    def can_answer(self, kind: Kind) -> bool:  # noqa: ARG002
        """Return True: a script can answer any kind."""
        return True

    def fingerprint(self, kind: Kind) -> str:
        """Return a digest of the script and the kind."""
        return hashlib.sha256(f"{kind}\n{self._name}\n{self._revision}".encode()).hexdigest()

    def choose(
        self, questions: Sequence[ChoiceQuestion], on_answer: OnChoiceAnswer | None = None
    ) -> list[ChoiceAnswer]:
        """Answer choice questions from the script."""
        answers = [_choice_answer(question, self._answer(question)) for question in questions]
        notify_all(answers, on_answer)
        return answers

    def generate(
        self, questions: Sequence[GenerateQuestion], on_answer: OnGenerateAnswer | None = None
    ) -> list[GenerateAnswer]:
        """Answer generate questions from the script."""
        answers = [_generate_answer(self._answer(question)) for question in questions]
        notify_all(answers, on_answer)
        return answers

    def _answer(self, question: JudgeQuestion) -> Any:
        with self._lock:
            self.asked.append(question)
        return self._find(question)

    def _look_up(self, question: JudgeQuestion) -> Any:
        texts = set(question.texts.values())
        for (kind, *required), answer in self._table:
            if kind == question.kind and texts.issuperset(required):
                return answer
        return None


def _parse_key(key: ScriptKey) -> tuple[str, ...]:
    parts = (key,) if isinstance(key, str) else tuple(key)
    kinds = [kind.value for kind in QuestionKind]
    if not parts or (parts[0] not in kinds and "." not in parts[0]):
        raise ConfigError(f"the script has the key {key!r}; a key must start with one of: {', '.join(kinds)}")
    return parts


def _parse_entry(entry: Any, path: str | Path) -> tuple[ScriptKey, Any]:
    if not isinstance(entry, Mapping) or "kind" not in entry or not entry.keys() & {"answer", "failed"}:
        raise ConfigError(f"the script {path} has the entry {entry!r}; wanted an object with kind, texts and answer")
    texts = entry.get("texts", [])
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise ConfigError(f"the script {path} has the texts {texts!r}; wanted a list of texts")
    key = (str(entry["kind"]), *texts)
    return key, _Failure(entry["failed"]) if "failed" in entry else entry["answer"]


class _Failure(str):
    """The reason for a scripted failure."""

    __slots__ = ()


def _choice_answer(question: ChoiceQuestion, answer: Any) -> ChoiceAnswer:
    if isinstance(answer, ChoiceAnswer):
        return answer
    if answer is None or isinstance(answer, _Failure):
        return ChoiceAnswer(AnswerStatus.FAILED, reason=answer or NOT_IN_THE_SCRIPT)
    probabilities = None
    if isinstance(answer, Mapping):
        probabilities = dict(answer)
        votes = (max(probabilities, key=lambda label: probabilities[label]),) * question.votes
    else:
        votes = (answer,) * question.votes if isinstance(answer, str) else tuple(answer)
    unknown = {*votes, *(probabilities or ())} - {*question.labels, None}
    if unknown:
        wanted = ", ".join(question.labels)
        return ChoiceAnswer(AnswerStatus.FAILED, reason=f"the script says {sorted(unknown)}, wanted one of: {wanted}")
    return ChoiceAnswer(AnswerStatus.ANSWERED, votes, probabilities)


def _generate_answer(answer: Any) -> GenerateAnswer:
    if isinstance(answer, GenerateAnswer):
        return answer
    if answer is None or isinstance(answer, _Failure):
        return GenerateAnswer(AnswerStatus.FAILED, reason=answer or NOT_IN_THE_SCRIPT)
    return GenerateAnswer(AnswerStatus.ANSWERED, value=answer)
