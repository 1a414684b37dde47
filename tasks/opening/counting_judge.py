"""Count what a stage would ask a judge.

A dry run computes the stages of the run with this judge in place of theirs, so it asks the same questions. Answers come
from the cache. A question without a cached answer is counted and gets a stand-in, so that there is something to judge:
the sentences of a text in place of its claims, those of relevant passages in place of key points, and the highest grade
of a passage; a failure for any other question.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING, TypeVar

from metric_core.errors import AssayError
from metric_core.prompts.judge_questions import (
    CONTEXT,
    TEXT,
    ChoiceQuestion,
    GenerateQuestion,
    JudgeQuestion,
    Kind,
    question_digest,
)
from metric_core.prompts.prompt_set import load_prompts
from metric_core.prompts.reply_schemas import MOST_KEY_POINTS
from metric_core.question_kinds import ON_CLAIMS, QuestionKind
from metric_core.records import AnswerStatus, Importance
from tasks.cache.cached_judge import CachedJudge
from tasks.metering.accounts import Account, account_of
from tasks.metering.prefix_forecast import PrefixForecast
from tasks.models.judges.openai.server_features import ServerFeatures
from tasks.models.judges.protocol import (
    ChoiceAnswer,
    GenerateAnswer,
    JudgeIdentity,
    OnChoiceAnswer,
    OnGenerateAnswer,
    notify_all,
)
from tasks.models.recognizers.scripts import SENTENCE_ENDS
from tasks.opening.token_estimates import estimate_output_tokens, estimate_tokens
from tasks.opening.verifier_forecast import VerifierForecast
from tasks.options.judge_options import SingleJudgeSettings
from tasks.options.model_backends import find_backend
from tasks.plugins.load_object import Group
from tasks.runtime.usage import Numbers

if TYPE_CHECKING:
    from tasks.models.judges.verifiers.question_plan import SentenceSplitter

NOT_ASKED = "not asked"
"""Reason of a stand-in that fails."""

_SENTENCE_ENDS = re.compile(rf"(?<=[.!?])\s+|(?<=[{SENTENCE_ENDS}])\s*|\n+")

A = TypeVar("A", ChoiceAnswer, GenerateAnswer)


@dataclass(frozen=True, slots=True)
class Tally(Numbers):
    """The questions that a stage would ask.

    Args:
        questions: Number of distinct questions, shard by shard.
        stored: Number of these questions that are answered without asking.
        asked: Number of the other questions.
        waiting: Number of the stored questions that an earlier shard asks.
        requests: Requests to the judge's server for the asked questions; 0 for a judge without a server.
        prompt_tokens: Estimated tokens of these requests.
        output_tokens: Estimated tokens of the replies.
        cached_tokens: Estimated tokens of these requests that the server finds in its prefix cache.
    """

    questions: int = 0
    stored: int = 0
    asked: int = 0
    waiting: int = 0
    requests: int = 0
    prompt_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0


@dataclass(slots=True)
class Ledger:
    """The running total of the questions of one dry run. May be used from several threads."""

    offline: bool = False
    """Whether a judge is known to be unreachable."""
    unreachable: set[str] = field(default_factory=set)
    """Judges that could not be opened; another attempt would wait for the timeout again."""
    prefixes: PrefixForecast = field(default_factory=PrefixForecast)
    """The prompts of all questions to a server."""
    accounts: dict[Account | None, Tally] = field(default_factory=dict)
    """The questions charged to each judge with separate prices, and to the others under None."""
    judges: dict[str, Tally] = field(default_factory=dict)
    """The questions to each judge, by its settings as JSON."""
    spared: int = 0
    """Number of questions that the cheaper judge of a cascade is expected to answer alone."""
    _tallies: dict[str, Tally] = field(default_factory=dict)
    _noted: set[tuple[str, str]] = field(default_factory=set)
    _lock: Lock = field(default_factory=Lock)

    def add(self, kind: Kind, tally: Tally, account: Account | None = None, judge: str = "") -> None:
        """Add a tally to the sums of a kind of question, of an account and of a judge."""
        with self._lock:
            self.judges[judge] = self.judges.get(judge, Tally()) + tally
            self.accounts[account] = self.accounts.get(account, Tally()) + tally
            self._tallies[str(kind)] = self._tallies.get(str(kind), Tally()) + tally

    def is_new(self, fingerprint: str, digest: str) -> bool:
        """Note a question and return whether it is new; a later shard finds the cached answer of an earlier one."""
        with self._lock:
            note = (fingerprint, digest)
            is_new = note not in self._noted
            self._noted.add(note)
            return is_new

    def take(self) -> dict[str, Tally]:
        """Return the tallies since the last call by kind of question, and start again from zero."""
        with self._lock:
            tallies, self._tallies = self._tallies, {}
            return tallies


class CountingJudge:
    """A judge that counts the questions it would be asked.

    Args:
        open_judge: Function that opens that judge, which probes its server and asks nothing.
        open_splitter: For a verifier, the function that opens the splitter of its claims.
    """

    def __init__(
        self,
        ledger: Ledger,
        settings: SingleJudgeSettings,
        open_judge: Callable[[], CachedJudge],
        open_splitter: Callable[[], "SentenceSplitter"] | None = None,
    ) -> None:
        self._ledger = ledger
        self.name = settings.model_dump_json()
        """Its settings as JSON."""
        self._server = settings.server
        self._prompts = load_prompts(settings.server.prompt_source if settings.server else "en")
        named = settings.launch.name if settings.launch else settings.server.model if settings.server else None
        self._model = named or "unknown"
        self._judge: CachedJudge | None = None
        if settings.launch is None and self.name not in ledger.unreachable:
            try:
                self._judge = open_judge()
            except AssayError:
                ledger.unreachable.add(self.name)
        self._forecast: VerifierForecast | None = None
        if settings.profile is not None and settings.facts.is_served and open_splitter is not None:
            features = self._judge.features if self._judge is not None else None
            self._forecast = VerifierForecast.from_settings(settings, open_splitter(), features)

    @property
    def identity(self) -> JudgeIdentity:
        """The identity of the judge that would answer."""
        if self._judge is not None:
            return self._judge.identity
        return JudgeIdentity("server", self._model, "unknown", "The judge could not be reached.", language_model=True)

    def can_answer(self, kind: Kind) -> bool:
        """Return whether the judge can answer questions of this kind; an unreachable one is assumed to."""
        if self._judge is not None:
            return self._judge.can_answer(kind)
        return self._forecast is None or kind in ON_CLAIMS

    def fingerprint(self, kind: Kind) -> str:
        """Return the fingerprint of the judge, or a stand-in if it is unreachable."""
        return f"{kind} {self.name}" if self._judge is None else self._judge.fingerprint(kind)

    def choose(
        self, questions: Sequence[ChoiceQuestion], on_answer: OnChoiceAnswer | None = None
    ) -> list[ChoiceAnswer]:
        """Return cached answers, and failures in place of missing ones."""
        known = self._judge.cached_choices(questions) if self._judge else [None] * len(questions)
        return self._count(questions, known, _stand_in_label, on_answer)

    def generate(
        self, questions: Sequence[GenerateQuestion], on_answer: OnGenerateAnswer | None = None
    ) -> list[GenerateAnswer]:
        """Return cached answers, and stand-ins in place of missing ones."""
        known = self._judge.cached_generations(questions) if self._judge else [None] * len(questions)
        return self._count(questions, known, _stand_in_reply, on_answer)

    def _count(
        self,
        questions: Sequence[JudgeQuestion],
        known: Sequence[A | None],
        stand_in: Callable[..., A],
        on_answer: Callable[[int, A], None] | None,
    ) -> list[A]:
        account = account_of(self._server, self.identity.model)
        asked = []
        for question, answer in zip(questions, known, strict=True):
            tally = Tally(1, 1) if answer is not None else self._find_waiting(question)
            if tally is None and self._forecast is not None and isinstance(question, ChoiceQuestion):
                asked.append(question)
            else:
                self._ledger.add(question.kind, tally or self._count_missing(question), account, self.name)
        if asked and self._forecast is not None:
            self._ledger.add(asked[0].kind, self._count_verdicts(asked, self._forecast), account, self.name)
        answers = [
            stand_in(question) if answer is None else answer for question, answer in zip(questions, known, strict=True)
        ]
        notify_all(answers, on_answer)
        return answers

    def _find_waiting(self, question: JudgeQuestion) -> Tally | None:
        """Return the tally of a question that an earlier shard asks; None for any other."""
        is_new = self._ledger.is_new(self.fingerprint(question.kind), question_digest(question))
        return None if is_new or (self._judge and self._judge.refresh) else Tally(1, 1, waiting=1)

    def _count_missing(self, question: JudgeQuestion) -> Tally:
        if not find_backend(Group.JUDGES, self.identity.backend).is_served:
            return Tally(1, 0, 1)
        requests = self._requests(question)
        prompt = self._prompts.render(question)
        text = f"{prompt.system}{prompt.user}"
        tokens = estimate_tokens(text)
        first = self._count_cached(text)
        return Tally(
            questions=1,
            asked=1,
            requests=requests,
            prompt_tokens=requests * tokens,
            output_tokens=estimate_output_tokens(question),
            cached_tokens=first + (requests - 1) * tokens,
        )

    def _count_verdicts(self, questions: Sequence[ChoiceQuestion], forecast: VerifierForecast) -> Tally:
        expected = forecast.expect(questions)
        cached = map(self._count_cached, expected.prompts) if expected.reuses_prefixes else ()
        return Tally(
            questions=len(questions),
            asked=len(questions),
            requests=expected.requests,
            prompt_tokens=sum(map(estimate_tokens, expected.prompts)),
            output_tokens=expected.output_tokens,
            cached_tokens=sum(cached),
        )

    def _count_cached(self, text: str) -> int:
        """Return the estimated number of tokens of a prompt that the server has in its prefix cache."""
        return round(estimate_tokens(text) * self._ledger.prefixes.count_cached(text) / len(text))

    def _requests(self, question: JudgeQuestion) -> int:
        """Return the number of requests: one, or one per vote if the server gives one answer per request."""
        if isinstance(question, GenerateQuestion):
            return 1
        features = self._judge.features if self._judge else None
        if isinstance(features, ServerFeatures) and self._server and features.several:
            return 1
        return question.votes


def _stand_in_label(question: ChoiceQuestion) -> ChoiceAnswer:
    if question.kind is QuestionKind.PASSAGE_RELEVANCE:
        return ChoiceAnswer(AnswerStatus.ANSWERED, (question.labels[-1],) * question.votes)
    return ChoiceAnswer(AnswerStatus.FAILED, reason=NOT_ASKED)


def _stand_in_reply(question: GenerateQuestion) -> GenerateAnswer:
    if question.kind is QuestionKind.CLAIMS:
        return GenerateAnswer(AnswerStatus.ANSWERED, {"claims": _sentences(question.texts[TEXT])})
    if question.kind is QuestionKind.KEY_POINT_WRITING:
        written = _sentences(question.texts[CONTEXT])[:MOST_KEY_POINTS]
        points = [{"text": text, "importance": str(Importance.VITAL)} for text in written]
        return GenerateAnswer(AnswerStatus.ANSWERED, {"key_points": points})
    return GenerateAnswer(AnswerStatus.FAILED, reason=NOT_ASKED)


def _sentences(text: str) -> list[str]:
    return list(dict.fromkeys(part for part in _SENTENCE_ENDS.split(text.strip()) if part.strip()))
