"""A judge that answers from a script: for tests of pipelines and metrics, where answers must be known beforehand."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from threading import Lock
from typing import Any, TypeAlias

from metric_core.errors import ConfigError
from metric_core.judge_questions import ChoiceQuestion, GenerateQuestion, JudgeQuestion, QuestionKind
from metric_core.records import AnswerStatus
from tasks.judges.protocol import ChoiceAnswer, GenerateAnswer, JudgeIdentity, KeepChoice, KeepGenerate, notify_all

ScriptKey: TypeAlias = str | tuple[str, ...]
"""A kind of question, alone or followed by texts that the question must carry."""
Script: TypeAlias = Mapping[ScriptKey, Any] | Callable[[JudgeQuestion], Any]

NOT_IN_THE_SCRIPT = "not in the script"


class ScriptedJudge:
    """Answers what its script says; a question that the script does not know fails with "not in the script".

    The script is a table or a function. A key of the table is a kind of question, or a tuple of the kind and texts
    that must be among the question's texts, word for word, in any role and order; the key with most texts wins.
    A function gets the question and returns the answer, None for a question that it does not know.

    An answer is, for a choice question, a label, a list of labels (one a vote) or the probability of each label; for a
    generate question, the reply's value; for both, a whole ChoiceAnswer or GenerateAnswer, to play a failure.

    Args:
        script: the table or function.
        name: the model name in the identity.

    >>> from metric_core.judge_questions import ask_claims, ask_verdict
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
        """Every question it was asked, in order."""
        if callable(script):
            self._find = script
            self._revision = f"{script.__module__}:{getattr(script, '__qualname__', type(script).__qualname__)}"
        else:
            table = [(_validate_script(key), answer) for key, answer in script.items()]
            # Stable: of keys with as many texts, the first one written wins.
            self._table = sorted(table, key=lambda entry: len(entry[0]), reverse=True)
            self._find = self._look_up
            self._revision = hashlib.sha256(json.dumps(table, default=repr).encode()).hexdigest()[:16]

    @classmethod
    def from_file(cls, path: str | Path) -> "ScriptedJudge":
        """A judge whose script is a JSON file: a list of objects with `kind`, `texts` (may be missing) and `answer`.

        In place of `answer`, `failed` holds the reason why the answer is a failure.

        Raises:
            ConfigError: the file can not be read or is no such list.
        """
        try:
            entries = json.loads(Path(path).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise ConfigError(f"the script {path} can not be read: {error}. Give a JSON file.") from error
        if not isinstance(entries, list):
            raise ConfigError(f"the script {path} must be a JSON list of answers, got {type(entries).__name__}")
        return cls(dict(_entry(entry, path) for entry in entries), name=Path(path).name)

    @property
    def identity(self) -> JudgeIdentity:
        """Who answers."""
        note = "Answers come from a script, for tests; the scores say nothing about the data."
        return JudgeIdentity("scripted", self._name, self._revision, note, language_model=True)

    def can_answer(self, kind: QuestionKind) -> bool:  # noqa: ARG002
        """Whether questions of this kind can be asked at all: all can."""
        return True

    def fingerprint(self, kind: QuestionKind) -> str:
        """Digest of the script."""
        return hashlib.sha256(f"{kind}\n{self._name}\n{self._revision}".encode()).hexdigest()

    def choose(self, questions: Sequence[ChoiceQuestion], keep: KeepChoice | None = None) -> list[ChoiceAnswer]:
        """Answers to choice questions."""
        answers = [_choice(question, self._answer(question)) for question in questions]
        notify_all(answers, keep)
        return answers

    def generate(self, questions: Sequence[GenerateQuestion], keep: KeepGenerate | None = None) -> list[GenerateAnswer]:
        """Answers to generate questions."""
        answers = [_generated(self._answer(question)) for question in questions]
        notify_all(answers, keep)
        return answers

    def _answer(self, question: JudgeQuestion) -> Any:
        with self._lock:
            self.asked.append(question)
        return self._find(question)

    def _look_up(self, question: JudgeQuestion) -> Any:
        texts = set(question.texts.values())
        for (kind, *wanted), answer in self._table:
            if kind == question.kind and texts.issuperset(wanted):
                return answer
        return None


def _validate_script(key: ScriptKey) -> tuple[str, ...]:
    parts = (key,) if isinstance(key, str) else tuple(key)
    kinds = [kind.value for kind in QuestionKind]
    if not parts or parts[0] not in kinds:
        raise ConfigError(f"the script has an answer to {key!r}; a key starts with one of: {', '.join(kinds)}")
    return parts


def _entry(entry: Any, path: str | Path) -> tuple[ScriptKey, Any]:
    if not isinstance(entry, Mapping) or "kind" not in entry or not entry.keys() & {"answer", "failed"}:
        raise ConfigError(f"the script {path} has the entry {entry!r}; wanted an object with kind, texts and answer")
    texts = entry.get("texts", [])
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise ConfigError(f"the script {path} has the texts {texts!r}; wanted a list of texts")
    key = (str(entry["kind"]), *texts)
    return key, _Failure(entry["failed"]) if "failed" in entry else entry["answer"]


class _Failure(str):
    """The reason of a scripted failure."""

    __slots__ = ()


def _choice(question: ChoiceQuestion, answer: Any) -> ChoiceAnswer:
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
    strange = {*votes, *(probabilities or ())} - {*question.labels, None}
    if strange:
        wanted = ", ".join(question.labels)
        return ChoiceAnswer(AnswerStatus.FAILED, reason=f"the script says {sorted(strange)}, wanted one of: {wanted}")
    return ChoiceAnswer(AnswerStatus.ANSWERED, votes, probabilities)


def _generated(answer: Any) -> GenerateAnswer:
    if isinstance(answer, GenerateAnswer):
        return answer
    if answer is None or isinstance(answer, _Failure):
        return GenerateAnswer(AnswerStatus.FAILED, reason=answer or NOT_IN_THE_SCRIPT)
    return GenerateAnswer(AnswerStatus.ANSWERED, value=answer)
