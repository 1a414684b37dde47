"""Ask a judge again what it was asked about rows, past the cache, and compare its answers with the kept ones.

The stages of the rows are computed three times: with the kept answers, to note which questions are about which row;
then, with the answers of a judge that was asked again, to see what becomes of the scores. Texts that a judge writes are
not asked for again: the verdicts on them would be about something else.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from metric_core.prompts.judge_questions import ChoiceQuestion, GenerateQuestion, Kind, question_digest
from metric_core.records import AnswerStatus
from tasks.cache.cached_judge import CachedJudge
from tasks.findings.repeats.judge_drift import RowAnswers
from tasks.models.judges.panel import name_judges
from tasks.models.judges.protocol import (
    IN_PROCESS,
    ChoiceAnswer,
    GenerateAnswer,
    Judge,
    JudgeIdentity,
    OnChoiceAnswer,
    OnGenerateAnswer,
    notify_all,
)
from tasks.opening.run_models import RunModels
from tasks.options.judge_options import SingleJudgeSettings
from tasks.options.judged_settings import JudgedSettings
from tasks.options.narrow import narrow
from tasks.runtime.usage import Usage, add_usages

_NOT_KEPT = "the answer is not cached"


@dataclass(frozen=True, slots=True)
class AskedJudge:
    """A judge that is asked again.

    Args:
        urls: Addresses of its servers.
        kept: Digest of a question -> kept answer.
        questions: Digest -> question.
        rows: Row -> digests of the questions about it.
        answers: Digest -> new answer.
    """

    judge: CachedJudge
    urls: tuple[str, ...] = ()
    kept: dict[str, ChoiceAnswer] = field(default_factory=dict)
    questions: dict[str, ChoiceQuestion] = field(default_factory=dict)
    rows: dict[str, dict[str, None]] = field(default_factory=lambda: defaultdict(dict))
    answers: dict[str, ChoiceAnswer] = field(default_factory=dict)

    def by_row(self) -> dict[str, RowAnswers]:
        """Return what became of the answers about each row; a row without usable answers is left out."""
        usable = {digest for digest, answer in self.answers.items() if answer.status is AnswerStatus.ANSWERED}
        found = {}
        for row, digests in self.rows.items():
            compared = [(self.kept[digest], self.answers[digest]) for digest in digests if digest in usable]
            if compared:
                distance = sum(measure_distance(*each) for each in compared) / len(compared)
                found[row] = RowAnswers(distance, any(kept.votes != new.votes for kept, new in compared))
        return found

    def uniform_answers(self) -> "UniformAnswers | None":
        """Return the new answers to a kind of question, if they are all the same and the kept ones were not."""
        kept: dict[Kind, list[tuple[str | None, ...]]] = defaultdict(list)
        new: dict[Kind, set[tuple[str | None, ...]]] = defaultdict(set)
        for digest, answer in self.answers.items():
            if answer.status is AnswerStatus.ANSWERED:
                kind = self.questions[digest].kind
                kept[kind].append(self.kept[digest].votes)
                new[kind].add(answer.votes)
        for kind, votes in new.items():
            other = sum(each not in votes for each in kept[kind])
            if len(votes) == 1 and other:
                (label,) = votes
                return UniformAnswers(" ".join(filter(None, dict.fromkeys(label))), len(kept[kind]), other)
        return None


@dataclass(frozen=True, slots=True)
class UniformAnswers:
    """The same answer to many questions.

    Args:
        label: The answer.
        count: Number of questions.
        other: Number of questions with another kept answer.
    """

    label: str
    count: int
    other: int

    @property
    def sentence(self) -> str:
        """The answers in words.

        >>> UniformAnswers("yes", 60, 6).sentence
        "all 60 answers about the anchor are 'yes', where 6 were not"
        """
        return f"all {self.count} answers about the anchor are {self.label!r}, where {self.other} were not"


def measure_distance(kept: ChoiceAnswer, new: ChoiceAnswer) -> float:
    """Return how much two answers to a question differ, from 0 to 1.

    It is the total variation distance of the probabilities, where both have them, and of the shares of the votes; the
    larger one counts.

    >>> first = ChoiceAnswer(AnswerStatus.ANSWERED, ("yes",), {"yes": 0.9, "no": 0.1})
    >>> second = ChoiceAnswer(AnswerStatus.ANSWERED, ("yes",), {"yes": 0.7, "no": 0.3})
    >>> round(measure_distance(first, second), 2)
    0.2
    >>> measure_distance(first, ChoiceAnswer(AnswerStatus.ANSWERED, ("no",), {"yes": 0.45, "no": 0.55}))
    1.0
    """
    by_votes = _total_variation(_shares(kept), _shares(new))
    if kept.probabilities is None or new.probabilities is None:
        return by_votes
    return max(by_votes, _total_variation(kept.probabilities, new.probabilities))


class RepeatedQuestions:
    """The questions about some rows that are asked again.

    Args:
        models: Models of the run.
        kinds: Kinds of questions to ask; None for all.
    """

    def __init__(self, models: RunModels, kinds: Collection[Kind] | None = None) -> None:
        self.kinds = kinds
        self.row = ""
        """The row whose questions are noted."""
        self._models = models
        self._judges: dict[SingleJudgeSettings, AskedJudge] = {}

    def models(self, *, note: bool) -> RunModels:
        """Return models whose judges answer from the cache.

        Args:
            note: True to note the questions, False to answer them with the new answers.
        """
        return _RepeatingModels(self, self._models, note=note)

    def open(self, settings: SingleJudgeSettings, judged: JudgedSettings) -> AskedJudge:
        """Return a judge of the run."""
        alone = narrow(settings, SingleJudgeSettings)
        if alone not in self._judges:
            urls = () if alone.server is None else tuple(alone.server.urls)
            self._judges[alone] = AskedJudge(self._models.open_cached_judge(settings, judged), urls)
        return self._judges[alone]

    def ask(self) -> tuple[int, Usage]:
        """Ask the noted questions again, except for those that were asked by an earlier call.

        Returns:
            The number of all questions that were asked, and their cost.

        Raises:
            AssayError: A judge cannot be asked.
        """
        for each in self._judges.values():
            digests = [digest for digest in each.questions if digest not in each.answers]
            answers = each.judge.uncached.choose([each.questions[digest] for digest in digests]) if digests else []
            each.answers.update(zip(digests, answers, strict=True))
        asked = [answer for each in self._judges.values() for answer in each.answers.values()]
        return len(asked), add_usages(answer.usage for answer in asked)

    @property
    def judges(self) -> Mapping[str, AskedJudge]:
        """The judges that were asked, by names that are unique among them."""
        asked = [each for each in self._judges.values() if each.questions]
        return dict(zip(name_judges([each.judge.identity for each in asked]), asked, strict=True)) if asked else {}


class _RepeatingModels(RunModels):
    """The models of a run, whose judges answer from the cache.

    Args:
        questions: Questions to note or to answer.
        note: True to note questions.
    """

    def __init__(self, questions: RepeatedQuestions, models: RunModels, *, note: bool) -> None:
        super().__init__()
        self._questions = questions
        self._run = models
        self._note = note

    def open_judge(self, judge: SingleJudgeSettings, settings: JudgedSettings) -> Judge:
        """Return a judge that answers from the cache."""
        return _RepeatingJudge(self._questions, self._questions.open(judge, settings), note=self._note)


class _RepeatingJudge:
    """A judge that answers from the cache, and notes the questions that can be asked again.

    Args:
        asked: Judge that it replaces.
        note: True to note questions, False to answer them with the new answers.
    """

    def __init__(self, questions: RepeatedQuestions, asked: AskedJudge, *, note: bool) -> None:
        self._questions = questions
        self._asked = asked
        self._note = note

    @property
    def identity(self) -> JudgeIdentity:
        """The identity of the judge that it replaces."""
        return self._asked.judge.identity

    def can_answer(self, kind: Kind) -> bool:
        """Return whether the judge can answer questions of this kind."""
        return self._asked.judge.can_answer(kind)

    def fingerprint(self, kind: Kind) -> str:
        """Return the fingerprint of the judge."""
        return self._asked.judge.fingerprint(kind)

    def choose(
        self, questions: Sequence[ChoiceQuestion], on_answer: OnChoiceAnswer | None = None
    ) -> list[ChoiceAnswer]:
        """Return kept answers, or new ones once the questions have been asked again."""
        known = self._asked.judge.cached_choices(questions)
        kinds = self._questions.kinds
        if self._note and self.identity.backend not in IN_PROCESS:
            for question, answer in zip(questions, known, strict=True):
                if kinds is not None and question.kind not in kinds:
                    continue
                if answer is not None and answer.status is AnswerStatus.ANSWERED:
                    digest = question_digest(question)
                    self._asked.questions[digest], self._asked.kept[digest] = question, answer
                    self._asked.rows[self._questions.row][digest] = None
        missing = ChoiceAnswer(AnswerStatus.FAILED, reason=_NOT_KEPT)
        answers = [
            (None if self._note else self._asked.answers.get(question_digest(question))) or answer or missing
            for question, answer in zip(questions, known, strict=True)
        ]
        notify_all(answers, on_answer)
        return answers

    def generate(
        self, questions: Sequence[GenerateQuestion], on_answer: OnGenerateAnswer | None = None
    ) -> list[GenerateAnswer]:
        """Return kept answers."""
        known = self._asked.judge.cached_generations(questions)
        missing = GenerateAnswer(AnswerStatus.FAILED, reason=_NOT_KEPT)
        answers = [answer or missing for answer in known]
        notify_all(answers, on_answer)
        return answers


def _shares(answer: ChoiceAnswer) -> dict[str, float]:
    given = [vote for vote in answer.votes if vote is not None]
    return {label: given.count(label) / len(given) for label in given}


def _total_variation(first: Mapping[str, float], second: Mapping[str, float]) -> float:
    return sum(abs(first.get(label, 0.0) - second.get(label, 0.0)) for label in first.keys() | second.keys()) / 2
