"""Several judges as one: each gives its label, the majority decides, and who said what is kept.

The first member leads. It decides ties, and it alone is put the generate questions: claims and other texts can not be
decided by a majority.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from threading import Lock

from metric_core import reasons
from metric_core.errors import ConfigError
from metric_core.judge_questions import ChoiceQuestion, GenerateQuestion, QuestionKind
from metric_core.records import AnswerStatus
from tasks.judges.protocol import (
    ChoiceAnswer,
    GenerateAnswer,
    Judge,
    JudgeIdentity,
    KeepChoice,
    KeepGenerate,
    PanelVote,
)
from tasks.runtime.usage import Usage

VERSION = 2
"""Raised whenever the same labels would be decided in another way."""

WRITTEN = frozenset(
    {
        QuestionKind.CLAIMS,
        QuestionKind.QUESTIONS,
        QuestionKind.RELEVANT_SENTENCES,
        QuestionKind.CRITERIA_NUMBER,
        QuestionKind.RUBRIC,
        QuestionKind.INSTANCE_RUBRIC,
        QuestionKind.EXPLANATION,
    }
)
"""The kinds that are always generate questions, so that only the lead determines their answers."""


class PanelJudge:
    """Puts choice questions to every member that can answer their kind, all at the same time.

    A member without a usable label leaves the decision to the others; the answer fails where no member has one.
    Probabilities are the mean over the members; one that gives none is as sure as its votes, and where none gives any
    there are none. A member that can not be used at all ends the panel.

    Args:
        members: at least two judges, the lead first.
    """

    def __init__(self, members: Sequence[Judge]) -> None:
        if len(members) < 2:
            raise ValueError(f"a panel needs at least two judges, got {len(members)}")
        self.members = tuple(members)
        self.names = _names([member.identity for member in members])
        """The members' names, each different."""

    @property
    def identity(self) -> JudgeIdentity:
        """Who answers."""
        identities = [member.identity for member in self.members]
        revisions = [[identity.backend, identity.model, identity.revision] for identity in identities]
        note = (
            f"The majority of {len(self.members)} judges ({', '.join(self.names)}) decides labels; {self.names[0]} "
            "decides ties, and alone finds claims and writes texts."
        )
        return JudgeIdentity(
            "panel",
            " + ".join(self.names),
            hashlib.sha256(json.dumps(revisions).encode()).hexdigest()[:16],
            note,
            language_model=any(identity.language_model for identity in identities),
        )

    def refuse_repeated(self) -> None:
        """Refuses a panel that has one judge twice: its votes would only repeat each other.

        Raises:
            ConfigError: it has.
        """
        prints = [member.fingerprint(QuestionKind.VERDICT) for member in self.members]
        twice = [name for name, own in zip(self.names, prints, strict=True) if prints.count(own) > 1]
        if twice:
            raise ConfigError(
                f"the panel has the same judge twice: {' and '.join(twice)}. Leave one out, or give it another model."
            )

    def can_answer(self, kind: QuestionKind) -> bool:
        """Whether the lead, or for a choice any member, can be asked questions of this kind at all."""
        return any(member.can_answer(kind) for member in self._asked(kind))

    def fingerprint(self, kind: QuestionKind) -> str:
        """Digest of all that determines an answer besides the question: who is asked, and who leads."""
        if kind in WRITTEN:
            return self.members[0].fingerprint(kind)
        asked = [member.fingerprint(kind) for member in self.members if member.can_answer(kind)]
        written = self.members[0].fingerprint(kind)
        return hashlib.sha256(json.dumps(["panel", VERSION, self.names, asked, written]).encode()).hexdigest()

    def choose(self, questions: Sequence[ChoiceQuestion], keep: KeepChoice | None = None) -> list[ChoiceAnswer]:
        """Answers to choice questions: the majority of the members' labels, vote by vote."""
        places = [
            [place for place, question in enumerate(questions) if member.can_answer(question.kind)]
            for member in self.members
        ]
        count = _Count(questions, places, self.names, keep)

        def ask(number: int) -> None:
            own, taken = places[number], count.taker(number)
            for place, answer in enumerate(self.members[number].choose([questions[i] for i in own], taken)):
                taken(place, answer)

        asked = [number for number, own in enumerate(places) if own]
        contexts = [copy_context() for _ in asked]  # they say which run the threads work for
        with ThreadPoolExecutor(max_workers=len(self.members), thread_name_prefix="panel") as pool:
            list(pool.map(lambda context, number: context.run(ask, number), contexts, asked))
        return [count.answers[place] for place in range(len(questions))]

    def generate(self, questions: Sequence[GenerateQuestion], keep: KeepGenerate | None = None) -> list[GenerateAnswer]:
        """The lead's answers to generate questions."""
        return self.members[0].generate(questions, keep)

    def _asked(self, kind: QuestionKind) -> Sequence[Judge]:
        return self.members[:1] if kind in WRITTEN else self.members


class _Count:
    """Counts the members' answers as they come, and decides each question when all are there.

    Args:
        questions: what is asked.
        places: which of the questions each member is asked.
        names: of the members.
        keep: hears of each decision.
    """

    def __init__(
        self,
        questions: Sequence[ChoiceQuestion],
        places: Sequence[Sequence[int]],
        names: Sequence[str],
        keep: KeepChoice | None,
    ) -> None:
        self._questions = questions
        self._places = places
        self._names = names
        self._keep = keep
        self._lock = Lock()
        self._missing = Counter(place for own in places for place in own)
        self._given: list[dict[int, ChoiceAnswer]] = [{} for _ in questions]
        self.answers: dict[int, ChoiceAnswer] = {}
        for place in range(len(questions)):
            if not self._missing[place]:
                self._decide(place)

    def taker(self, number: int) -> Callable[[int, ChoiceAnswer], None]:
        """Takes a member's answers by their places among those that it was asked; a second time changes nothing."""

        def take(own_place: int, answer: ChoiceAnswer) -> None:
            place = self._places[number][own_place]
            with self._lock:
                is_new = number not in self._given[place]
                self._given[place][number] = answer
                self._missing[place] -= is_new
                is_last = is_new and not self._missing[place]
            if is_last:
                self._decide(place)

        return take

    def _decide(self, place: int) -> None:
        given = {self._names[number]: self._given[place][number] for number in sorted(self._given[place])}
        self.answers[place] = is_settled(given, self._questions[place].votes)
        if self._keep is not None:
            self._keep(place, self.answers[place])


def is_settled(given: dict[str, ChoiceAnswer], votes: int) -> ChoiceAnswer:
    """What a panel answers.

    Args:
        given: the members' answers by their names, the lead's first; those of members that were not asked are missing.
        votes: how many votes each was asked for.

    >>> yes = ChoiceAnswer(AnswerStatus.ANSWERED, ("yes",), {"yes": 0.9, "no": 0.1})
    >>> no = ChoiceAnswer(AnswerStatus.ANSWERED, ("no",))
    >>> is_settled({"lead": no, "second": yes, "third": yes}, 1).label, is_settled({"lead": no, "second": yes}, 1).label
    ('yes', 'no')
    """
    answers = {name: answer for name, answer in given.items() if answer.status is not AnswerStatus.UNDEFINED}
    if not answers:
        reason = next((answer.reason for answer in given.values()), reasons.NEEDS_LANGUAGE_MODEL)
        return ChoiceAnswer(AnswerStatus.UNDEFINED, reason=reason)
    ballots = [[_vote(name, answer, number) for name, answer in answers.items()] for number in range(votes)]
    labels = tuple(_majority([vote.label for vote in ballot]) for ballot in ballots)
    is_decided = any(label is not None for label in labels)
    reason = next((answer.reason for answer in answers.values() if answer.reason), reasons.NO_USABLE_REPLY)
    return ChoiceAnswer(
        AnswerStatus.ANSWERED if is_decided else AnswerStatus.FAILED,
        labels if is_decided else (),
        _mean_probabilities(list(answers.values())) if is_decided else None,
        reason=None if is_decided else reason,
        usage=_usage([answer.usage for answer in answers.values() if not answer.stored]),
        stored=all(answer.stored for answer in answers.values()),
        panel=tuple(vote for ballot in ballots for vote in ballot),
    )


def _vote(name: str, answer: ChoiceAnswer, number: int) -> PanelVote:
    label = answer.votes[number] if number < len(answer.votes) else None
    return PanelVote(name, label, None if label is None else (answer.probabilities or {}).get(label), number)


def _majority(labels: Sequence[str | None]) -> str | None:
    """The label of most; of several, the one that comes first, so that the lead decides wherever it can."""
    ranked = Counter(label for label in labels if label is not None).most_common(1)
    return ranked[0][0] if ranked else None


def _mean_probabilities(answers: Sequence[ChoiceAnswer]) -> dict[str, float] | None:
    """The mean over members; one that has no probabilities is as sure as its votes. None where no member has any."""
    if not any(answer.probabilities for answer in answers):
        return None
    given = [found for answer in answers if (found := answer.probabilities or _shares(answer.votes))]
    labels = dict.fromkeys(label for one in given for label in one)
    return {label: sum(one.get(label, 0.0) for one in given) / len(given) for label in labels}


def _shares(votes: Sequence[str | None]) -> Mapping[str, float]:
    usable = [label for label in votes if label is not None]
    return {label: count / len(usable) for label, count in Counter(usable).items()}


def _usage(parts: Sequence[Usage]) -> Usage:
    """What all members cost together, in the time of the slowest."""
    return Usage(
        requests=sum(usage.requests for usage in parts),
        prompt_tokens=sum(usage.prompt_tokens for usage in parts),
        cached_tokens=sum(usage.cached_tokens for usage in parts),
        output_tokens=sum(usage.output_tokens for usage in parts),
        seconds=max((usage.seconds for usage in parts), default=0.0),
    )


def _names(identities: Sequence[JudgeIdentity]) -> tuple[str, ...]:
    """A short name for each, numbered where several would have the same."""
    plain = [identity.model if identity.language_model else identity.backend for identity in identities]
    return tuple(
        name if plain.count(name) == 1 else f"{name} ({plain[: place + 1].count(name)})"
        for place, name in enumerate(plain)
    )
