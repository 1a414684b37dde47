"""Ask the judge the questions of a stage: deduplicated, in batches, with usage counts."""

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from threading import Lock
from typing import TypeVar

from metric_core import reasons
from metric_core.calibration.sure_threshold import describe_verdicts
from metric_core.prompts.judge_questions import ChoiceQuestion, GenerateQuestion, JudgeQuestion, Kind, question_digest
from metric_core.records import AnswerStatus, VerdictKey
from tasks.models.judges.panel import PanelJudge
from tasks.models.judges.protocol import ChoiceAnswer, GenerateAnswer, Judge
from tasks.models.judges.routed_judge import judge_for
from tasks.runtime.usage import CutOff, KindUsage, StageUsage, Usage, add_usages

BATCH = 4096
"""Questions per call of the judge: enough to share work among them, few enough to render at once."""

Q = TypeVar("Q", bound=JudgeQuestion)
A = TypeVar("A", ChoiceAnswer, GenerateAnswer)


class JudgeBatcher:
    """A front end to a judge that asks equal questions once, in batches, and counts usage.

    Questions of a kind that the judge cannot answer are not asked; their answers are undefined.

    Args:
        progress: Called with the number of newly answered questions and the increase of their total.
    """

    def __init__(self, judge: Judge, progress: Callable[[int, int], None] = lambda _done, _total: None) -> None:
        self._judge = judge
        self._progress = progress
        self._questions = 0
        self._stored = 0
        self._usage = Usage()
        self._failed: Counter[str] = Counter()
        self._kinds: dict[str, KindUsage] = {}
        self._cut_off = CutOff()
        self._warnings: dict[str, None] = {}

    @property
    def usage(self) -> StageUsage:
        """The usage of all questions so far, without seconds, which the stage fills in."""
        return StageUsage(
            questions=self._questions,
            stored=self._stored,
            requests=self._usage.requests,
            prompt_tokens=self._usage.prompt_tokens,
            cached_tokens=self._usage.cached_tokens,
            output_tokens=self._usage.output_tokens,
            failed=dict(self._failed),
            cut_off=self._cut_off,
            warnings=tuple(self._warnings),
            kinds=dict(self._kinds),
            unreported_tokens=self._usage.unreported_tokens,
            splits=self._usage.splits,
        )

    def ask(
        self, questions: Sequence[JudgeQuestion], verdicts: Sequence[VerdictKey] = ()
    ) -> list[ChoiceAnswer | GenerateAnswer]:
        """Answer questions of both forms, in their order.

        Args:
            verdicts: Verdict that each question is asked for; empty if they are not asked for verdicts.
        """
        asked = self._with_subjects(questions, verdicts) if verdicts else questions
        choices = [question for question in asked if isinstance(question, ChoiceQuestion)]
        generations = [question for question in asked if isinstance(question, GenerateQuestion)]
        chosen, generated = iter(self.choose(choices)), iter(self.generate(generations))
        return [next(chosen) if isinstance(question, ChoiceQuestion) else next(generated) for question in asked]

    def _with_subjects(self, questions: Sequence[JudgeQuestion], verdicts: Sequence[VerdictKey]) -> list[JudgeQuestion]:
        """Return questions about verdicts; those to a cascade with the verdicts that each is one of."""
        kinds = {kind for kind in {question.kind for question in questions} if self._is_cascade(kind)}
        return [
            replace(question, about=describe_verdicts(*verdict))
            if question.kind in kinds and isinstance(question, ChoiceQuestion)
            else question
            for question, verdict in zip(questions, verdicts, strict=True)
        ]

    def _is_cascade(self, kind: Kind) -> bool:
        asked = judge_for(self._judge, kind)
        return isinstance(asked, PanelJudge) and asked.cascade is not None

    def choose(self, questions: Sequence[ChoiceQuestion]) -> list[ChoiceAnswer]:
        """Answer choice questions, in their order."""
        return self._ask(questions, self._judge.choose, _no_choice)

    def generate(self, questions: Sequence[GenerateQuestion]) -> list[GenerateAnswer]:
        """Answer generate questions, in their order."""
        return self._ask(questions, self._judge.generate, _no_generation)

    def _unable(self, kind: Kind) -> str:
        """Return the reason why the judge cannot answer questions of a kind."""
        asked = judge_for(self._judge, kind)
        return reasons.cannot_answer(kind) if asked.identity.language_model else reasons.NEEDS_LANGUAGE_MODEL

    def _ask(
        self,
        questions: Sequence[Q],
        ask: Callable[[Sequence[Q], Callable[[int, A], None]], list[A]],
        unanswered: Callable[[str], A],
    ) -> list[A]:
        digests = [_identity(question) for question in questions]
        distinct = dict(zip(digests, questions, strict=True))
        kinds = {question.kind for question in distinct.values()}
        unable = {kind: self._unable(kind) for kind in kinds if not self._judge.can_answer(kind)}
        answers = {digest: unanswered(unable[q.kind]) for digest, q in distinct.items() if q.kind in unable}
        pending = [digest for digest in distinct if digest not in answers]
        self._progress(0, len(pending))
        for start in range(0, len(pending), BATCH):
            batch = pending[start : start + BATCH]
            counter = _ProgressCounter(self._progress)
            batch_answers = ask([distinct[digest] for digest in batch], counter.count)
            for digest, answer in zip(batch, batch_answers, strict=True):
                answers[digest] = answer
                self._count(answer)
            self._count_kinds([str(distinct[digest].kind) for digest in batch], batch_answers)
            counter.complete(len(batch))
        return [answers[digest] for digest in digests]

    def _count_kinds(self, kinds: Sequence[str], answers: Sequence[ChoiceAnswer | GenerateAnswer]) -> None:
        """Count the cost of the answers of a batch by kind of question."""
        by_kind: dict[str, list[ChoiceAnswer | GenerateAnswer]] = {}
        for kind, answer in zip(kinds, answers, strict=True):
            by_kind.setdefault(kind, []).append(answer)
        for kind, answered in by_kind.items():
            cost = add_usages(answer.usage for answer in answered if not answer.stored)
            self._usage += cost
            self._kinds[kind] = self._kinds.get(kind, KindUsage()) + KindUsage(
                questions=len(answered),
                stored=sum(answer.stored for answer in answered),
                requests=cost.requests,
                prompt_tokens=cost.prompt_tokens,
                cached_tokens=cost.cached_tokens,
                output_tokens=cost.output_tokens,
                failed=sum(answer.status is AnswerStatus.FAILED for answer in answered),
            )

    def _count(self, answer: ChoiceAnswer | GenerateAnswer) -> None:
        self._questions += 1
        if answer.stored:
            self._stored += 1
            return
        if answer.warning is not None:
            self._warnings[answer.warning] = None
        if answer.cut_off is not None:
            self._cut_off += CutOff(replies=1, fewest=answer.cut_off, most=answer.cut_off)
        if answer.status is AnswerStatus.FAILED:
            self._failed[answer.reason or "no reason given"] += 1
        elif isinstance(answer, ChoiceAnswer) and None in answer.votes:
            self._failed[reasons.NO_USABLE_RATING] += 1


def _identity(question: JudgeQuestion) -> Hashable:
    """Return what two questions have in common if they are equal; for most questions without computing a digest."""
    if not isinstance(question, ChoiceQuestion):
        return question_digest(question)
    texts = tuple(question.texts.items())
    instructions = tuple(question.instructions.items()) if question.instructions else ()
    return question.kind, texts, tuple(question.labels), instructions, question.votes, question.about


def _no_choice(reason: str) -> ChoiceAnswer:
    return ChoiceAnswer(AnswerStatus.UNDEFINED, reason=reason)


def _no_generation(reason: str) -> GenerateAnswer:
    return GenerateAnswer(AnswerStatus.UNDEFINED, reason=reason)


class _ProgressCounter:
    """A thread-safe progress counter for one batch, for judges with and without per-answer callbacks.

    Args:
        progress: Called with the number of newly answered questions and the increase of their total.
    """

    def __init__(self, progress: Callable[[int, int], None]) -> None:
        self._progress = progress
        self._lock = Lock()
        self._reported: set[int] = set()

    def count(self, position: int, _answer: object) -> None:
        """Count an answer, once per position."""
        with self._lock:
            if position not in self._reported:
                self._reported.add(position)
                self._progress(1, 0)

    def complete(self, size: int) -> None:
        """Count the answers of the batch that were not reported one by one."""
        if size > len(self._reported):
            self._progress(size - len(self._reported), 0)
