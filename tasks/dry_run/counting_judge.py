"""A judge that asks nobody: it counts what a stage would ask, so that a plan can not differ from the run.

Stages run as they are, with this judge in place of theirs. What the store of answers knows is answered from it; the
rest is counted, and answered with a stand-in: for claims, the sentences of the text, so that the stage that judges
claims has something to count; for anything else, a failure.
"""

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from threading import Lock
from typing import TypeVar

from metric_core.errors import AssayError
from metric_core.judge_questions import (
    TEXT,
    ChoiceQuestion,
    GenerateQuestion,
    JudgeQuestion,
    QuestionKind,
    question_digest,
)
from metric_core.prompts.prompt_set import load_prompts
from metric_core.records import AnswerStatus
from tasks.cache.cached_judge import CachedJudge
from tasks.judges.openai.request_mode import sends_all_votes_at_once
from tasks.judges.openai.server_features import ServerFeatures
from tasks.judges.protocol import (
    ChoiceAnswer,
    GenerateAnswer,
    JudgeIdentity,
    OnChoiceAnswer,
    OnGenerateAnswer,
    notify_all,
)
from tasks.options.judge_options import JudgeSettings

NOT_ASKED = "not asked"
"""The reason of a stand-in that fails."""

BYTES_A_TOKEN = 4
"""Of English; a little more than the tokens of most other languages."""

OUTPUT_TOKENS = {QuestionKind.RELEVANT_SENTENCES: 16, QuestionKind.EXPLANATION: 60}
"""Tokens of a written reply, where they hardly depend on the question."""

_TOKENS_A_QUESTION = 30
_TOKENS_OF_FEEDBACK = 80
_SENTENCE_ENDS = re.compile(r"(?<=[.!?])\s+|\n+")

A = TypeVar("A", ChoiceAnswer, GenerateAnswer)


@dataclass(frozen=True, slots=True)
class Tally:
    """What a stage would ask.

    Args:
        questions: distinct questions of each part of the data.
        stored: of these, questions that are answered without asking.
        asked: the others.
        waiting: of the stored ones, those that another part of the run asks first.
        requests: requests to the judge's server for the asked ones; 0 for a judge without one.
        prompt_tokens: estimated tokens of these requests.
        estimate_output_tokens: estimated tokens of the replies.
    """

    questions: int = 0
    stored: int = 0
    asked: int = 0
    waiting: int = 0
    requests: int = 0
    prompt_tokens: int = 0
    output_tokens: int = 0

    def __add__(self, other: "Tally") -> "Tally":
        """The sum of both."""
        return Tally(
            self.questions + other.questions,
            self.stored + other.stored,
            self.asked + other.asked,
            self.waiting + other.waiting,
            self.requests + other.requests,
            self.prompt_tokens + other.prompt_tokens,
            self.output_tokens + other.output_tokens,
        )


@dataclass(slots=True)
class Ledger:
    """What the stages of one plan would ask, added up. May be used from several threads."""

    offline: bool = False
    """Set it where a judge is known to be out of reach: trying again would take as long again."""
    _tally: Tally = Tally()
    _noted: set[tuple[str, str]] = field(default_factory=set)
    _lock: Lock = field(default_factory=Lock)

    def add(self, tally: Tally) -> None:
        """Counts."""
        with self._lock:
            self._tally += tally

    def is_new(self, fingerprint: str, digest: str) -> bool:
        """Whether a question is noted for the first time: an answer that one shard waits for is there for the next."""
        with self._lock:
            note = (fingerprint, digest)
            is_new = note not in self._noted
            self._noted.add(note)
            return is_new

    def taken(self) -> Tally:
        """What was counted since this was called last."""
        with self._lock:
            tally, self._tally = self._tally, Tally()
            return tally


class CountingJudge:
    """Counts, in the place of a judge.

    Args:
        ledger: where it counts.
        settings: of the judge in whose place it is.
        open_judge: opens that judge, whose server is asked what it can do, and nothing else.
    """

    def __init__(self, ledger: Ledger, settings: JudgeSettings, open_judge: Callable[[], CachedJudge]) -> None:
        self._ledger = ledger
        self._name = settings.model_dump_json()
        self._server = settings.server
        self._prompts = load_prompts(settings.server.language if settings.server else "en")
        self._judge: CachedJudge | None = None
        if settings.launch is None and not ledger.offline:
            with suppress(AssayError):
                self._judge = open_judge()

    @property
    def identity(self) -> JudgeIdentity:
        """Who would answer."""
        if self._judge is not None:
            return self._judge.identity
        return JudgeIdentity("server", "unknown", "unknown", "The judge could not be reached.", language_model=True)

    def can_answer(self, kind: QuestionKind) -> bool:
        """Whether the judge can be asked questions of this kind; one that is out of reach is taken for able."""
        return self._judge is None or self._judge.can_answer(kind)

    def fingerprint(self, kind: QuestionKind) -> str:
        """As the judge's."""
        return f"{kind} {self._name}" if self._judge is None else self._judge.fingerprint(kind)

    def choose(
        self, questions: Sequence[ChoiceQuestion], on_answer: OnChoiceAnswer | None = None
    ) -> list[ChoiceAnswer]:
        """Answers that are there, and failures in the place of others."""
        known = self._judge.cached_choices(questions) if self._judge else [None] * len(questions)
        stand_in = ChoiceAnswer(AnswerStatus.FAILED, reason=NOT_ASKED)
        return self._counted(questions, known, lambda _question: stand_in, on_answer)

    def generate(
        self, questions: Sequence[GenerateQuestion], on_answer: OnGenerateAnswer | None = None
    ) -> list[GenerateAnswer]:
        """Answers that are there, and stand-ins in the place of others."""
        known = self._judge.cached_generations(questions) if self._judge else [None] * len(questions)
        return self._counted(questions, known, _stand_in_reply, on_answer)

    def _counted(
        self,
        questions: Sequence[JudgeQuestion],
        known: Sequence[A | None],
        stand_in: Callable[..., A],
        on_answer: Callable[[int, A], None] | None,
    ) -> list[A]:
        for question, answer in zip(questions, known, strict=True):
            self._ledger.add(self._missing(question) if answer is None else Tally(1, 1))
        answers = [
            stand_in(question) if answer is None else answer for question, answer in zip(questions, known, strict=True)
        ]
        notify_all(answers, on_answer)
        return answers

    def _missing(self, question: JudgeQuestion) -> Tally:
        is_new = self._ledger.is_new(self.fingerprint(question.kind), question_digest(question))
        if not is_new and not (self._judge and self._judge.refresh):
            return Tally(1, 1, waiting=1)
        if self.identity.backend != "server":
            return Tally(1, 0, 1)
        requests = self._requests(question)
        prompt = self._prompts.render(question)
        size = len(f"{prompt.system}{prompt.user}".encode("utf-8", "replace"))
        return Tally(1, 0, 1, 0, requests, requests * (size // BYTES_A_TOKEN), estimate_output_tokens(question))

    def _requests(self, question: JudgeQuestion) -> int:
        """One, or one a vote where the server gives one answer each."""
        if isinstance(question, GenerateQuestion):
            return 1
        features = self._judge.features if self._judge else None
        if isinstance(features, ServerFeatures) and self._server and sends_all_votes_at_once(features, self._server):
            return 1
        return question.votes


def estimate_output_tokens(question: JudgeQuestion) -> int:
    """How many tokens the reply to a question may have, without thoughts.

    >>> from metric_core.judge_questions import ask_claims, ask_verdict
    >>> estimate_output_tokens(ask_verdict("It rains.", "Rain."))
    1
    >>> estimate_output_tokens(ask_claims("It rains in Dublin.", None))
    12
    """
    if isinstance(question, ChoiceQuestion):
        return question.votes
    if question.kind is QuestionKind.CLAIMS:
        return 8 + len(question.texts[TEXT].encode("utf-8", "replace")) // BYTES_A_TOKEN
    if question.kind is QuestionKind.QUESTIONS:
        count: int = question.schema["properties"]["questions"]["maxItems"]
        return _TOKENS_A_QUESTION * count
    return OUTPUT_TOKENS.get(question.kind, _TOKENS_OF_FEEDBACK)


def _stand_in_reply(question: GenerateQuestion) -> GenerateAnswer:
    if question.kind is not QuestionKind.CLAIMS:
        return GenerateAnswer(AnswerStatus.FAILED, reason=NOT_ASKED)
    sentences = [part for part in _SENTENCE_ENDS.split(question.texts[TEXT].strip()) if part.strip()]
    return GenerateAnswer(AnswerStatus.ANSWERED, {"claims": list(dict.fromkeys(sentences))})
