"""A judge for tests of the engine: its answers follow from the question alone, and files of a folder control it.

It is a plugin, so every engine opens it in whichever process asks.
"""

import json
import os
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

from metric_core.prompts.judge_questions import ChoiceQuestion, GenerateQuestion, JudgeQuestion, Kind, question_digest
from metric_core.records import AnswerStatus
from tasks.models.judges.protocol import (
    ChoiceAnswer,
    GenerateAnswer,
    JudgeIdentity,
    OnChoiceAnswer,
    OnGenerateAnswer,
    notify_all,
)
from tests.faults.stub_server import value_of
from tests.waiting import wait_until

NAME = f"{__name__}:HashJudge"
CUT_OFF = "the reply was cut off"
_LINE = 65
"""Bytes of a line of the log: a digest and the end of the line."""

Q = TypeVar("Q", bound=JudgeQuestion)


class Control:
    """The folder with which a test controls the judges of all processes, and reads what they were asked.

    Args:
        folder: Path of the folder, which exists.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._log, self._failing = folder / "asked", folder / "failing.json"
        self._hold, self._last = folder / "hold", folder / "last"

    def fail_on(self, *texts: str) -> None:
        """Have questions fail from now on whose texts contain one of these; none for a judge without faults."""
        self._failing.write_text(json.dumps(texts), encoding="utf-8")

    def fails(self, question: JudgeQuestion) -> bool:
        """Return whether a question fails."""
        failing = json.loads(self._failing.read_text(encoding="utf-8")) if self._failing.exists() else ()
        return any(text in given for given in question.texts.values() for text in failing)

    def kill_after(self, questions: int) -> None:
        """Have the process that logs this question, counted from the first, kill itself."""
        self._last.write_text(str(questions), encoding="utf-8")

    def hold(self) -> None:
        """Have questions wait for their answers until `release`."""
        self._hold.touch()

    def release(self) -> None:
        """Answer the questions that wait, and kill no process any more."""
        self._hold.unlink(missing_ok=True)
        self._last.unlink(missing_ok=True)

    @property
    def asked(self) -> list[str]:
        """Digests of the questions since the last `forget`, in order."""
        return self._log.read_text(encoding="ascii").split() if self._log.exists() else []

    def forget(self) -> None:
        """Empty the log."""
        self._log.unlink(missing_ok=True)

    def receive(self, questions: Sequence[JudgeQuestion]) -> None:
        """Log questions, and do what the files say: kill this process, or wait."""
        digests = "".join(f"{question_digest(question)}\n" for question in questions).encode("ascii")
        log = os.open(self._log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        try:
            os.write(log, digests)
            count = os.fstat(log).st_size // _LINE
        finally:
            os.close(log)
        if self._last.exists() and count >= int(self._last.read_text(encoding="utf-8")):
            os.kill(os.getpid(), signal.SIGKILL)
        wait_until(lambda: not self._hold.exists(), "the release of the judge")


class HashJudge:
    """A judge whose answers are digests of the questions.

    Args:
        folder: Folder of its `Control`; None for a judge that no test controls.
        fails: True if every question fails; used where there is no folder.
    """

    def __init__(self, folder: str | None = None, *, fails: bool = False) -> None:
        self.control = None if folder is None else Control(Path(folder))
        self._fails = fails

    @property
    def identity(self) -> JudgeIdentity:
        return JudgeIdentity("hash", "hash", "1", "Answers are digests, for tests.", language_model=True)

    def can_answer(self, kind: Kind) -> bool:
        del kind
        return True

    def fingerprint(self, kind: Kind) -> str:
        return f"hash {kind}"

    def choose(
        self, questions: Sequence[ChoiceQuestion], on_answer: OnChoiceAnswer | None = None
    ) -> list[ChoiceAnswer]:
        answers = [
            _choice(question) if ok else ChoiceAnswer(AnswerStatus.FAILED, reason=CUT_OFF)
            for question, ok in self._receive(questions)
        ]
        notify_all(answers, on_answer)
        return answers

    def generate(
        self, questions: Sequence[GenerateQuestion], on_answer: OnGenerateAnswer | None = None
    ) -> list[GenerateAnswer]:
        answers = [
            _text(question) if ok else GenerateAnswer(AnswerStatus.FAILED, reason=CUT_OFF)
            for question, ok in self._receive(questions)
        ]
        notify_all(answers, on_answer)
        return answers

    def _receive(self, questions: Sequence[Q]) -> list[tuple[Q, bool]]:
        """Return the questions, and whether each has an answer."""
        if self.control is None:
            return [(question, not self._fails) for question in questions]
        self.control.receive(questions)
        return [(question, not self.control.fails(question)) for question in questions]


def _choice(question: ChoiceQuestion) -> ChoiceAnswer:
    """Return the label with the largest weight, with sixteenths as probabilities of the first two labels."""
    number = int(question_digest(question)[:8], 16)
    first, second, *_ = question.labels
    share = number % 17 / 16
    votes = tuple(first if share >= 0.5 else second for _ in range(question.votes))
    return ChoiceAnswer(AnswerStatus.ANSWERED, votes, {first: share, second: 1 - share})


def _text(question: GenerateQuestion) -> GenerateAnswer:
    value: Any = value_of(dict(question.schema), question_digest(question))
    return GenerateAnswer(AnswerStatus.ANSWERED, value, reply=json.dumps(value))
