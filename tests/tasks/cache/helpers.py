"""Shared helpers of the cache tests: keys, questions, and a counting judge."""

import hashlib
import os
import time
from collections.abc import Sequence
from pathlib import Path

from metric_core.errors import JudgeError
from metric_core.prompts.judge_questions import ChoiceQuestion, GenerateQuestion, Kind, ask_claims, ask_verdict
from metric_core.records import AnswerStatus
from tasks.models.judges.protocol import ChoiceAnswer, GenerateAnswer, JudgeIdentity, OnChoiceAnswer, OnGenerateAnswer
from tasks.runtime.usage import Usage


def key_of(text: str) -> bytes:
    """Return the key of a value."""
    return hashlib.sha256(text.encode()).digest()


def verdicts(*claims: str) -> list[ChoiceQuestion]:
    """Return a question about each claim."""
    return [ask_verdict(claim, "The premise.") for claim in claims]


def numbered_questions(first: int, last: int) -> list[ChoiceQuestion]:
    """Return questions about numbered claims."""
    return verdicts(*(f"claim {number}" for number in range(first, last)))


def decompositions(*texts: str) -> list[GenerateQuestion]:
    """Return a request to decompose each text."""
    return [ask_claims(text, None) for text in texts]


class CountingJudge:
    """A judge that says yes to everything, one by one, and logs each question to a file shared by processes.

    Args:
        log: Log file with one line per question.
        seconds: Seconds per question.
        fails: Claims that get no usable answer.
        breaks_at: Claim at which the judge starts to fail.
    """

    def __init__(
        self, log: Path, seconds: float = 0.0, fails: Sequence[str] = (), breaks_at: str | None = None
    ) -> None:
        self._log = log
        self._seconds = seconds
        self._fails = fails
        self._breaks_at = breaks_at
        self.revision = "1"

    @property
    def identity(self) -> JudgeIdentity:
        return JudgeIdentity("test", "counting", self.revision, "Counts.", language_model=True)

    @property
    def asked(self) -> list[str]:
        """Return the texts that any process has asked about."""
        return self._log.read_text(encoding="utf-8").splitlines() if self._log.exists() else []

    def can_answer(self, kind: Kind) -> bool:  # noqa: ARG002
        return True

    def fingerprint(self, kind: Kind) -> str:
        return f"{kind}/{self.revision}"

    def choose(
        self, questions: Sequence[ChoiceQuestion], on_answer: OnChoiceAnswer | None = None
    ) -> list[ChoiceAnswer]:
        answers = []
        for position, question in enumerate(questions):
            text = self._note(question.texts["claim"])
            usage = Usage(requests=1, prompt_tokens=7, output_tokens=1, seconds=0.5)
            if text in self._fails:
                answer = ChoiceAnswer(AnswerStatus.FAILED, reason="cut off", usage=usage)
            else:
                answer = ChoiceAnswer(
                    AnswerStatus.ANSWERED, ("yes",), {"yes": 0.9, "no": 0.1}, reply="yes", usage=usage
                )
            answers.append(answer)
            if on_answer is not None:
                on_answer(position, answer)
        return answers

    def generate(
        self, questions: Sequence[GenerateQuestion], on_answer: OnGenerateAnswer | None = None
    ) -> list[GenerateAnswer]:
        answers = []
        for position, question in enumerate(questions):
            text = self._note(question.texts["text"])
            answer = GenerateAnswer(AnswerStatus.ANSWERED, {"claims": [text, "né à 東京 \ud800"]})
            answers.append(answer)
            if on_answer is not None:
                on_answer(position, answer)
        return answers

    def _note(self, text: str) -> str:
        if text == self._breaks_at:
            raise JudgeError("the judge is lost")
        time.sleep(self._seconds)
        line = os.open(self._log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(line, f"{text}\n".encode("utf-8", "replace"))
        os.close(line)
        return text
