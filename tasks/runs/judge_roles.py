"""Read from run.json which judge answered which questions of a run, and what they cost."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from metric_core.prompts.judge_questions import CustomKind
from metric_core.question_kinds import KindGroup, QuestionKind
from tasks.models.judges.protocol import NO_JUDGE
from tasks.runtime.usage import KindUsage

IDENTITY = ("backend", "model", "revision")
"""Fields of a judge that identify it to readers."""


def judge_roles(manifest: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the judges of a run, each with the kinds of questions that went to it.

    Args:
        manifest: Content of run.json; in those of earlier versions, one judge answered everything.

    >>> judge_roles({"judge": {"backend": "builtin", "model": "m"}, "judge_fingerprints": {"verdict": "12"}})
    [{'name': 'm', 'groups': ['verdicts'], 'kinds': ['verdict'], 'backend': 'builtin', 'model': 'm'}]
    """
    if (roles := manifest.get("judges")) is not None:
        return [dict(role) for role in roles]
    judge = manifest.get("judge") or {}
    if not judge or judge.get("backend") == NO_JUDGE.backend:
        return []
    kinds = list(manifest.get("judge_fingerprints") or {})
    return [{"name": judge.get("model"), "groups": groups_of(kinds), "kinds": kinds, **judge}]


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


def judge_of_kind(manifest: Mapping[str, Any], kinds: Collection[str]) -> Mapping[str, Any]:
    """Return the judge that questions of some kinds went to; the judge of the run if that was not one.

    Args:
        manifest: Content of run.json.
        kinds: Kinds of questions.
    """
    found = [role for role in judge_roles(manifest) if any(kind in role["kinds"] for kind in kinds)]
    return found[0] if len(found) == 1 else manifest.get("judge") or {}


def judges_by_kind(manifest: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return backend, model and revision of the judge that each kind of question went to.

    Args:
        manifest: Content of run.json.
    """
    return {
        kind: {name: role.get(name) for name in IDENTITY} for role in judge_roles(manifest) for kind in role["kinds"]
    }


def with_usage(roles: Sequence[Mapping[str, Any]], kinds: Mapping[str, KindUsage]) -> list[dict[str, Any]]:
    """Return the judges of a run with the cost of their questions.

    Args:
        roles: Judges of a run.
        kinds: Cost of the run by kind of question.
    """
    return [
        {**role, "usage": sum((kinds[kind] for kind in role["kinds"] if kind in kinds), KindUsage()).model_dump()}
        for role in roles
    ]
