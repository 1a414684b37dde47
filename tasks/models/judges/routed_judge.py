"""Several judges as one: each group of questions goes to the judge that is named for it."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, replace
from typing import TypeVar

from metric_core.prompts.judge_questions import ChoiceQuestion, GenerateQuestion, Kind
from metric_core.question_kinds import KindGroup, QuestionKind
from tasks.models.judges.panel import PanelJudge, name_judges
from tasks.models.judges.protocol import (
    ROUTED,
    ChoiceAnswer,
    GenerateAnswer,
    Judge,
    JudgeIdentity,
    OnChoiceAnswer,
    OnGenerateAnswer,
)
from tasks.options.judge_options import JudgeOptions, SingleJudgeSettings

Q = TypeVar("Q", ChoiceQuestion, GenerateQuestion)
A = TypeVar("A", ChoiceAnswer, GenerateAnswer)


@dataclass(frozen=True, slots=True)
class JudgeRole:
    """A judge of a run, and the questions that it answers.

    Args:
        name: Short name, unique in the run.
        judge: The judge, which may be a panel.
        kinds: Kinds of questions that go to it, in their order.
    """

    name: str
    judge: Judge
    kinds: tuple[Kind, ...]

    @property
    def groups(self) -> tuple[KindGroup, ...]:
        """The groups of these kinds."""
        found = {kind.group for kind in self.kinds}
        return tuple(group for group in KindGroup if group in found)


class RoutedJudge:
    """A judge that passes each question to the judge of its group.

    A question that this judge cannot answer goes to the default judge, and a question for claims that neither of them
    can answer to the judge of sentences, where there is one. Therefore the fingerprint of a kind is that of one judge,
    and another judge of one group changes no cached answer of the others.

    Args:
        default: Judge of all groups that have none of their own.
        by_group: Judges of groups.
        sentences: Judge that takes sentences as claims, if neither the writing nor the default judge finds claims.
    """

    def __init__(self, default: Judge, by_group: Mapping[KindGroup, Judge], sentences: Judge | None = None) -> None:
        self.default = default
        self.by_group = dict(by_group)
        self._sentences = sentences
        self._judges = _distinct([default, *self.by_group.values(), *([] if sentences is None else [sentences])])

    @property
    def identity(self) -> JudgeIdentity:
        """The identity of the judge if one answers all groups, else one that names all judges and their groups."""
        primary = {group: judge for group in KindGroup if (judge := self._primary(group)) is not None}
        judges = _distinct(list(primary.values())) or [self.default]
        stated = "" if self._sentences is None else f" {self._sentences.identity.note}"
        if len(judges) == 1:
            alone = judges[0].identity
            return replace(alone, note=f"{alone.note}{stated}".strip())
        identities = [judge.identity for judge in judges]
        groups = {
            name: [group for group, answering in primary.items() if answering is judge]
            for name, judge in zip(name_judges(identities), judges, strict=True)
        }
        content = [
            [group, judge.identity.backend, judge.identity.model, judge.identity.revision, judge.identity.served]
            for group, judge in primary.items()
        ]
        said = "; ".join(f"{name} answers {' and '.join(of)}" for name, of in groups.items())
        return JudgeIdentity(
            ROUTED,
            " + ".join(f"{name} ({', '.join(of)})" for name, of in groups.items()),
            hashlib.sha256(json.dumps(content).encode()).hexdigest()[:16],
            f"Groups of questions have judges of their own: {said}.{stated}",
            language_model=any(identity.language_model for identity in identities),
            languages=_common_languages(identities),
        )

    def _primary(self, group: KindGroup) -> Judge | None:
        """Return the judge of a group: the first that answers any of its questions; None if none does."""
        kinds = [kind for kind in QuestionKind if kind.group is group]
        candidates = (self.by_group.get(group, self.default), self.default)
        return next((judge for judge in candidates if any(map(judge.can_answer, kinds))), None)

    def judge_for(self, kind: Kind) -> Judge:
        """Return the judge that questions of a kind go to; one that cannot answer them if no judge can."""
        first = self.by_group.get(kind.group, self.default)
        if first.can_answer(kind):
            return first
        if first is not self.default and self.default.can_answer(kind):
            return self.default
        if self._sentences is not None and self._sentences.can_answer(kind):
            return self._sentences
        return first

    def roles(self, kinds: Sequence[Kind]) -> tuple[JudgeRole, ...]:
        """Return the judges that questions of some kinds go to, the default judge first.

        Args:
            kinds: Kinds of the questions of a run.
        """
        asked = {id(judge): [kind for kind in kinds if self.judge_for(kind) is judge] for judge in self._judges}
        judges = [judge for judge in self._judges if asked[id(judge)]]
        names = name_judges([judge.identity for judge in judges])
        return tuple(JudgeRole(name, judge, tuple(asked[id(judge)])) for name, judge in zip(names, judges, strict=True))

    def can_answer(self, kind: Kind) -> bool:
        """Return whether any judge answers questions of this kind."""
        return self.judge_for(kind).can_answer(kind)

    def fingerprint(self, kind: Kind) -> str:
        """Return the fingerprint of the judge that questions of this kind go to."""
        return self.judge_for(kind).fingerprint(kind)

    def choose(
        self, questions: Sequence[ChoiceQuestion], on_answer: OnChoiceAnswer | None = None
    ) -> list[ChoiceAnswer]:
        """Answer choice questions, each by its judge; the judges work at the same time."""
        return self._ask(questions, lambda judge, asked, on: judge.choose(asked, on), on_answer)

    def generate(
        self, questions: Sequence[GenerateQuestion], on_answer: OnGenerateAnswer | None = None
    ) -> list[GenerateAnswer]:
        """Answer generate questions, each by its judge; the judges work at the same time."""
        return self._ask(questions, lambda judge, asked, on: judge.generate(asked, on), on_answer)

    def _ask(
        self,
        questions: Sequence[Q],
        ask: Callable[[Judge, Sequence[Q], Callable[[int, A], None]], list[A]],
        on_answer: Callable[[int, A], None] | None,
    ) -> list[A]:
        by_kind = {kind: self.judge_for(kind) for kind in {question.kind for question in questions}}
        judges = _distinct(list(by_kind.values()))
        answers: dict[int, A] = {}

        def ask_one(judge: Judge) -> None:
            positions = [i for i, question in enumerate(questions) if by_kind[question.kind] is judge]

            def report(index: int, answer: A) -> None:
                if on_answer is not None:
                    on_answer(positions[index], answer)

            given = ask(judge, [questions[i] for i in positions], report)
            answers.update(zip(positions, given, strict=True))

        if len(judges) == 1:
            ask_one(judges[0])
        elif judges:
            contexts = [copy_context() for _ in judges]  # they carry the run that the threads work for
            with ThreadPoolExecutor(max_workers=len(judges), thread_name_prefix="judges") as pool:
                list(pool.map(lambda context, judge: context.run(ask_one, judge), contexts, judges))
        return [answers[i] for i in range(len(questions))]


def judge_for(judge: Judge, kind: Kind) -> Judge:
    """Return the judge that questions of a kind go to, where a judge may stand for several."""
    return judge.judge_for(kind) if isinstance(judge, RoutedJudge) else judge


def roles_of(judge: Judge, kinds: Sequence[Kind]) -> tuple[JudgeRole, ...]:
    """Return the judges of a run with the kinds of questions that go to each; one entry for a judge that is not routed.

    Args:
        kinds: Kinds of questions that the run may ask.
    """
    if isinstance(judge, RoutedJudge):
        return judge.roles(kinds)
    return (JudgeRole(name_judges([judge.identity])[0], judge, tuple(kinds)),)


def members_of_role(role: JudgeRole) -> tuple[JudgeRole, ...]:
    """Return the judges of a panel or cascade with the questions that go to each; any other judge as it is."""
    panel = role.judge
    if not isinstance(panel, PanelJudge):
        return (role,)
    return tuple(
        JudgeRole(name, member, tuple(k for k in role.kinds if member in panel.members_for(k) and member.can_answer(k)))
        for name, member in zip(panel.names, panel.members, strict=True)
    )


def members_of(judge: Judge) -> tuple[Judge, ...]:
    """Return the judges that a judge consists of, without the stand-in for claims: groups, then members of panels."""
    judges = [judge]
    if isinstance(judge, RoutedJudge):
        judges = _distinct([judge.default, *judge.by_group.values()])
    return tuple(_distinct([m for each in judges for m in (each.members if isinstance(each, PanelJudge) else [each])]))


def cascade_of(judge: Judge) -> PanelJudge | None:
    """Return the cascade among the judges of a run; None without one."""
    default = judge.default if isinstance(judge, RoutedJudge) else judge
    return default if isinstance(default, PanelJudge) and default.cascade is not None else None


def settings_for(options: JudgeOptions, judge: Judge, kind: Kind) -> tuple[SingleJudgeSettings, ...]:
    """Return the settings of the judges that questions of a kind go to; several for a panel or a cascade.

    Args:
        judge: Judge that was opened for the options.
    """
    named = options.judge.by_group.get(kind.group)
    if named is not None and isinstance(judge, RoutedJudge) and judge.judge_for(kind) is judge.by_group[kind.group]:
        return (named, *named.panel)
    others = options.others if kind.group is KindGroup.VERDICTS else options.panel
    return (options.judge, *others)


def needs_sentences(default: Judge, by_group: Mapping[KindGroup, Judge]) -> bool:
    """Return whether no judge finds claims, so that sentences are claims.

    Args:
        default: Judge of all groups that have none of their own.
    """
    kind = QuestionKind.CLAIMS
    return not any(judge.can_answer(kind) for judge in (by_group.get(kind.group, default), default))


def _distinct(judges: Sequence[Judge]) -> list[Judge]:
    return list({id(judge): judge for judge in judges}.values())


def _common_languages(identities: Sequence[JudgeIdentity]) -> tuple[str, ...]:
    """Return the languages on which every judge was measured whose languages are known."""
    known = [identity.languages for identity in identities if identity.languages]
    return tuple(code for code in known[0] if all(code in other for other in known)) if known else ()
