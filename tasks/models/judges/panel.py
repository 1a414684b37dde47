"""A panel of judges: each gives its label, the majority decides, and every vote is recorded.

The first member leads. It breaks ties and answers all generate questions alone, because claims and other texts cannot
be decided by a majority. In a cascade the other member is asked first, and the lead only where that one is not sure.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import replace
from threading import Lock

from metric_core import reasons
from metric_core.calibration.sure_threshold import SureThreshold
from metric_core.errors import ConfigError
from metric_core.prompts.judge_questions import ChoiceQuestion, GenerateQuestion, Kind
from metric_core.question_kinds import KindGroup, QuestionKind
from metric_core.records import AnswerStatus
from tasks.models.judges.protocol import (
    CASCADE,
    ChoiceAnswer,
    GenerateAnswer,
    Judge,
    JudgeIdentity,
    OnChoiceAnswer,
    OnGenerateAnswer,
    PanelVote,
)
from tasks.options.model_backends import find_backend
from tasks.plugins.load_object import Group
from tasks.runtime.usage import Usage

VERSION = 2
"""Increase it whenever the same labels would lead to another decision."""

GENERATE_KINDS = frozenset(
    {
        QuestionKind.FOLLOW_UP,
        QuestionKind.CLAIMS,
        QuestionKind.QUESTIONS,
        QuestionKind.RELEVANT_SENTENCES,
        QuestionKind.CRITERIA_NUMBER,
        QuestionKind.RUBRIC,
        QuestionKind.INSTANCE_RUBRIC,
        QuestionKind.EXPLANATION,
        QuestionKind.RATING_EXPLANATION,
        QuestionKind.KEY_POINT_WRITING,
        QuestionKind.INDEX_QUESTION,
    }
)
"""The kinds that are always generate questions; only the lead determines their answers."""


class CascadeRule:
    """The questions that the cheaper judge of a cascade answers alone.

    Args:
        cheaper: Judge that is asked first.
        thresholds: Least sureness by judge and verdicts; those of other judges have no effect.
        writer: Fingerprint of the judge that writes the claims.
    """

    def __init__(self, cheaper: Judge, thresholds: Sequence[SureThreshold] = (), writer: str = "") -> None:
        kinds = [kind for kind in QuestionKind if kind.group is KindGroup.VERDICTS and cheaper.can_answer(kind)]
        content = json.dumps([cheaper.fingerprint(kind) for kind in kinds])
        self.judge = hashlib.sha256(content.encode()).hexdigest()[:32]
        """Digest of the cheaper judge's fingerprints."""
        self.writer = writer
        known = [each for each in thresholds if (each.judge, each.writer) == (self.judge, writer)]
        self.thresholds = {each.about: each for each in known}
        """Verdicts -> how sure the cheaper judge must be of them."""

    def is_sure(self, question: ChoiceQuestion, answer: ChoiceAnswer) -> bool:
        """Return whether an answer of the cheaper judge is accepted."""
        threshold, label = self.thresholds.get(question.about), answer.label
        if threshold is None or label is None or answer.probabilities is None:
            return False
        return answer.probabilities.get(label, 0.0) >= threshold.least


class PanelJudge:
    """A judge that asks choice questions of all members that can answer them, concurrently.

    A member without a usable label abstains; the answer fails if no member has a usable label. Probabilities are the
    mean over the members. A member without probabilities counts with the shares of its votes; if no member gives
    probabilities, there are none. A member that cannot be used at all makes the panel raise its error.

    In a cascade there are two members. The second is asked what its thresholds may be about, and the lead all that the
    second is not sure of, and all other questions.

    Args:
        members: At least two judges, the lead first.
        cascade: Rule of a cascade; None if the majority decides.
    """

    def __init__(self, members: Sequence[Judge], cascade: CascadeRule | None = None) -> None:
        if len(members) < 2:
            raise ValueError(f"a panel needs at least two judges, got {len(members)}")
        self.members = tuple(members)
        self.cascade = cascade
        self.names = name_judges([member.identity for member in members])
        """The unique names of the members."""

    @property
    def identity(self) -> JudgeIdentity:
        """The identity of the panel."""
        identities = [member.identity for member in self.members]
        revisions = [[identity.backend, identity.model, identity.revision, identity.served] for identity in identities]
        note = (
            f"The majority of {len(self.members)} judges ({', '.join(self.names)}) decides labels; {self.names[0]} "
            "decides ties, and alone finds claims and writes texts."
        )
        if self.cascade is not None:
            note = (
                f"{self.names[1]} gives the verdicts of which it is sure enough; {self.names[0]} gives the others, and "
                "alone finds claims, writes texts and rates."
            )
        return JudgeIdentity(
            "panel" if self.cascade is None else CASCADE,
            " + ".join(self.names) if self.cascade is None else f"{self.names[1]}, then {self.names[0]}",
            hashlib.sha256(json.dumps(revisions).encode()).hexdigest()[:16],
            note,
            language_model=any(identity.language_model for identity in identities),
        )

    def reject_duplicates(self) -> None:
        """Raise an error if two members are the same judge, whose votes would only repeat each other.

        Raises:
            ConfigError: Two members have the same fingerprint.
        """
        fingerprints = [member.fingerprint(QuestionKind.VERDICT) for member in self.members]
        repeated = [
            name
            for name, fingerprint in zip(self.names, fingerprints, strict=True)
            if fingerprints.count(fingerprint) > 1
        ]
        if repeated:
            raise ConfigError(
                f"the panel or cascade has the same judge twice: {' and '.join(repeated)}. Leave one out, or give it "
                "another model."
            )

    def can_answer(self, kind: Kind) -> bool:
        """Return whether the lead, or for a choice any member of a panel, can answer questions of this kind."""
        members = self.members_for(kind) if self.cascade is None else self.members[:1]
        return any(member.can_answer(kind) for member in members)

    def fingerprint(self, kind: Kind) -> str:
        """Return a digest of the members that answer questions of this kind, and of the lead."""
        members = self.members_for(kind)
        if len(members) == 1:
            return self.members[0].fingerprint(kind)
        able = [member.fingerprint(kind) for member in self.members if member.can_answer(kind)]
        lead = self.members[0].fingerprint(kind)
        if self.cascade is not None:
            thresholds = sorted((about, each.least) for about, each in self.cascade.thresholds.items())
            content = [CASCADE, VERSION, self.names, able, lead, thresholds]
            return hashlib.sha256(json.dumps(content).encode()).hexdigest()
        return hashlib.sha256(json.dumps(["panel", VERSION, self.names, able, lead]).encode()).hexdigest()

    def choose(
        self, questions: Sequence[ChoiceQuestion], on_answer: OnChoiceAnswer | None = None
    ) -> list[ChoiceAnswer]:
        """Answer choice questions with the majority of the members' labels, vote by vote; in a cascade in turn."""
        if self.cascade is not None:
            return self._choose_in_turn(self.cascade, questions, on_answer)
        positions = [
            [position for position, question in enumerate(questions) if member.can_answer(question.kind)]
            for member in self.members
        ]
        collector = _VoteCollector(questions, positions, self.names, on_answer)

        def ask(member: int) -> None:
            callback = collector.callback_for(member)
            answers = self.members[member].choose([questions[i] for i in positions[member]], callback)
            for index, answer in enumerate(answers):
                callback(index, answer)

        assigned_members = [member for member, assigned in enumerate(positions) if assigned]
        contexts = [copy_context() for _ in assigned_members]  # they carry the run that the threads work for
        with ThreadPoolExecutor(max_workers=len(self.members), thread_name_prefix="panel") as pool:
            list(pool.map(lambda context, member: context.run(ask, member), contexts, assigned_members))
        return [collector.answers[position] for position in range(len(questions))]

    def generate(
        self, questions: Sequence[GenerateQuestion], on_answer: OnGenerateAnswer | None = None
    ) -> list[GenerateAnswer]:
        """Answer generate questions with the lead alone; those that it cannot answer are undefined."""
        lead = self.members[0]
        able = [position for position, question in enumerate(questions) if lead.can_answer(question.kind)]
        answers = [GenerateAnswer(AnswerStatus.UNDEFINED, reason=reasons.NEEDS_LANGUAGE_MODEL) for _ in questions]

        def report(index: int, answer: GenerateAnswer) -> None:
            if on_answer is not None:
                on_answer(able[index], answer)

        for position, answer in zip(able, lead.generate([questions[i] for i in able], report), strict=True):
            answers[position] = answer
        return answers

    def _choose_in_turn(
        self, rule: CascadeRule, questions: Sequence[ChoiceQuestion], on_answer: OnChoiceAnswer | None
    ) -> list[ChoiceAnswer]:
        lead, cheaper = self.members
        asked = [i for i, question in enumerate(questions) if question.about and cheaper.can_answer(question.kind)]
        first = dict(zip(asked, cheaper.choose([questions[i] for i in asked]), strict=True))
        answers = {
            i: replace(answer, panel=(_vote(self.names[1], answer, 0),))
            for i, answer in first.items()
            if rule.is_sure(questions[i], answer)
        }
        if on_answer is not None:
            for position, answer in answers.items():
                on_answer(position, answer)
        rest = [i for i in range(len(questions)) if i not in answers]

        def report(index: int, answer: ChoiceAnswer) -> None:
            if on_answer is not None:
                on_answer(rest[index], answer)

        for i, answer in zip(rest, lead.choose([questions[i] for i in rest], report), strict=True):
            answers[i] = self._after(first[i], answer) if i in first else answer
        return [answers[i] for i in range(len(questions))]

    def _after(self, first: ChoiceAnswer, answer: ChoiceAnswer) -> ChoiceAnswer:
        """Return the answer of the lead to a question that the cheaper judge has passed on."""
        return replace(
            answer,
            usage=_usage([each.usage for each in (first, answer) if not each.stored]),
            stored=first.stored and answer.stored,
            panel=(_vote(self.names[1], first, 0), _vote(self.names[0], answer, 0)),
            warning=answer.warning or first.warning,
        )

    def members_for(self, kind: Kind) -> Sequence[Judge]:
        """Return the members that questions of this kind go to, the lead first."""
        is_of_lead = self.cascade is not None and kind.group is not KindGroup.VERDICTS
        return self.members[:1] if is_of_lead or kind in GENERATE_KINDS else self.members


class _VoteCollector:
    """A thread-safe collector of the members' answers that decides a question once all of them are available.

    Args:
        positions: For each member, the positions of the questions that it is asked.
        on_answer: Called with each decision.
    """

    def __init__(
        self,
        questions: Sequence[ChoiceQuestion],
        positions: Sequence[Sequence[int]],
        names: Sequence[str],
        on_answer: OnChoiceAnswer | None,
    ) -> None:
        self._questions = questions
        self._positions = positions
        self._names = names
        self._on_answer = on_answer
        self._lock = Lock()
        self._missing = Counter(position for assigned in positions for position in assigned)
        self._received: list[dict[int, ChoiceAnswer]] = [{} for _ in questions]
        self.answers: dict[int, ChoiceAnswer] = {}
        for position in range(len(questions)):
            if not self._missing[position]:
                self._decide(position)

    def callback_for(self, member: int) -> Callable[[int, ChoiceAnswer], None]:
        """Return the callback for a member's answers, by their index among its questions; repeats have no effect."""

        def receive(index: int, answer: ChoiceAnswer) -> None:
            position = self._positions[member][index]
            with self._lock:
                is_new = member not in self._received[position]
                self._received[position][member] = answer
                self._missing[position] -= is_new
                is_last = is_new and not self._missing[position]
            if is_last:
                self._decide(position)

        return receive

    def _decide(self, position: int) -> None:
        received = self._received[position]
        by_name = {self._names[member]: received[member] for member in sorted(received)}
        self.answers[position] = combine_answers(by_name, self._questions[position].votes)
        if self._on_answer is not None:
            self._on_answer(position, self.answers[position])


def combine_answers(given: dict[str, ChoiceAnswer], votes: int) -> ChoiceAnswer:
    """Combine the answers of the members into the answer of the panel.

    Args:
        given: The answers by member name, the lead's first; members that were not asked are missing.
        votes: Number of votes that each member was asked for.

    >>> yes = ChoiceAnswer(AnswerStatus.ANSWERED, ("yes",), {"yes": 0.9, "no": 0.1})
    >>> no = ChoiceAnswer(AnswerStatus.ANSWERED, ("no",))
    >>> combine_answers({"lead": no, "second": yes, "third": yes}, 1).label
    'yes'
    >>> combine_answers({"lead": no, "second": yes}, 1).label
    'no'
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
        warning=next((answer.warning for answer in answers.values() if answer.warning is not None), None),
        cut_off=next((answer.cut_off for answer in answers.values() if answer.cut_off is not None), None),
    )


def _vote(name: str, answer: ChoiceAnswer, number: int) -> PanelVote:
    label = answer.votes[number] if number < len(answer.votes) else None
    return PanelVote(name, label, None if label is None else (answer.probabilities or {}).get(label), number)


def _majority(labels: Sequence[str | None]) -> str | None:
    """Return the most frequent label; on a tie the earliest, which is the lead's wherever it voted for one of them."""
    ranked = Counter(label for label in labels if label is not None).most_common(1)
    return ranked[0][0] if ranked else None


def _mean_probabilities(answers: Sequence[ChoiceAnswer]) -> dict[str, float] | None:
    """Return the members' mean, with vote shares for a member without probabilities; None if no member has any."""
    if not any(answer.probabilities for answer in answers):
        return None
    by_member = [by_label for answer in answers if (by_label := answer.probabilities or _shares(answer.votes))]
    labels = dict.fromkeys(label for by_label in by_member for label in by_label)
    return {label: sum(by_label.get(label, 0.0) for by_label in by_member) / len(by_member) for label in labels}


def _shares(votes: Sequence[str | None]) -> Mapping[str, float]:
    usable = [label for label in votes if label is not None]
    return {label: count / len(usable) for label, count in Counter(usable).items()}


def _usage(parts: Sequence[Usage]) -> Usage:
    """Return the summed usage of the members, with the seconds of the slowest."""
    return replace(sum(parts, Usage()), seconds=max((usage.seconds for usage in parts), default=0.0))


def name_judges(identities: Sequence[JudgeIdentity]) -> tuple[str, ...]:
    """Return a short name per judge, numbered where several would be equal."""
    short = [_short_name(identity) for identity in identities]
    return tuple(
        name if short.count(name) == 1 else f"{name} ({short[: position + 1].count(name)})"
        for position, name in enumerate(short)
    )


def _short_name(identity: JudgeIdentity) -> str:
    facts = find_backend(Group.JUDGES, identity.backend)
    if facts.takes_profile and not facts.is_served:  # its model may be a folder
        return identity.model.rstrip("/").rpartition("/")[2]
    return identity.model if identity.language_model or facts.is_served else identity.backend
