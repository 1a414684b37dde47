"""Find in the record of a run which judge answered which questions of a run, and what they cost."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from metric_core.prompts.judge_questions import CustomKind
from metric_core.question_kinds import KindGroup, QuestionKind
from tasks.models.judges.protocol import NO_JUDGE, JudgeIdentity
from tasks.options.model_backends import find_backend
from tasks.plugins.load_object import Group
from tasks.record.run_record import AnsweringJudge, RunRecord
from tasks.record.stored_figures import JudgeName
from tasks.runtime.usage import KindUsage


def groups_of(kinds: Collection[str]) -> list[str]:
    """Return the groups of kinds of questions; a kind of a plugin is a rating.

    >>> groups_of(["claims", "verdict", "house.polite"])
    ['verdicts', 'writing', 'ratings']
    """
    named = {str(kind): kind.group for kind in QuestionKind}
    found = {named.get(kind, CustomKind.group) for kind in kinds}
    return [str(group) for group in KindGroup if group in found]


def name_questions(kinds: Sequence[str]) -> str:
    """Return kinds of questions in words.

    >>> name_questions(["verdict"]), name_questions(["claims", "questions", "verdict"])
    ("question 'verdict'", "questions 'claims', 'questions' and 'verdict'")
    """
    *others, last = map(repr, kinds)
    return f"questions {', '.join(others)} and {last}" if others else f"question {last}"


def judge_of_kind(record: RunRecord, kinds: Collection[str]) -> JudgeIdentity:
    """Return the judge that questions of some kinds went to; the judge of the run if that was not one."""
    found = [role for role in record.judges if any(kind in role.kinds for kind in kinds)]
    return found[0] if len(found) == 1 else record.judge


def judges_by_kind(record: RunRecord) -> dict[str, JudgeName]:
    """Return the name of the judge that each kind of question went to."""
    return {kind: JudgeName(role.backend, role.model, role.revision) for role in record.judges for kind in role.kinds}


def with_usage(judges: Iterable[AnsweringJudge], kinds: Mapping[str, KindUsage]) -> tuple[AnsweringJudge, ...]:
    """Return the judges of a run with the cost of their questions.

    Args:
        kinds: Cost of the run by kind of question.
    """
    return tuple(
        replace(each, usage=sum((kinds[kind] for kind in each.kinds if kind in kinds), KindUsage())) for each in judges
    )


def judge_name(record: RunRecord) -> str | None:
    """Return the name by which people know the judge of a run; None for a run without a judge."""
    if record.judge.backend == NO_JUDGE.backend:
        return None
    if panel := panel_of(record):
        return f"panel of {len(panel)}"
    return find_backend(Group.JUDGES, record.judge.backend).label or record.judge.model


def panel_of(record: RunRecord) -> tuple[JudgeIdentity, ...]:
    """Return the members of the panel of a run; empty without one."""
    return () if record.cascade is not None else record.panel
