"""Describe the judge of a run: its name, its members, what it answers, and what it cost."""

from collections.abc import Sequence
from typing import Any

from tasks.models.judges.protocol import CASCADE, NO_JUDGE, ROUTED, SENTENCES
from tasks.options.model_backends import find_backend
from tasks.plugins.load_object import Group
from tasks.record.run_record import AnsweringJudge, RunRecord
from tasks.runs.judge_roles import judge_name, panel_of
from tasks.runtime.usage import KindUsage

_TITLES = {
    NO_JUDGE.backend: "No judge",
    "panel": "Panel of judges",
    CASCADE: "Cascade of two judges",
    ROUTED: "Several judges",
}


def judge_view(record: RunRecord) -> dict[str, Any]:
    """Return the judge for the page."""
    judge, panel = record.judge, panel_of(record)
    facts = find_backend(Group.JUDGES, judge.backend)
    return {
        **{name: getattr(judge, name) for name in ("backend", "model", "revision", "note")},
        "title": _TITLES["panel"] if panel else _TITLES.get(judge.backend, facts.title),
        "line": judge_line(record),
        "panel": [{"model": member.model, "note": member.note} for member in panel],
        "roles": _roles(record),
    }


def judge_line(record: RunRecord) -> str | None:
    """Return which judge gave the verdicts of a run, and whether it is calibrated; None for a run without a judge."""
    if (name := judge_name(record)) is None:
        return None
    measured = ", ".join(record.calibration.metrics)
    calibrated = f"calibrated for {measured}" if measured else "not calibrated"
    return f"{name}, {calibrated}"


def judge_lines(judges: Sequence[AnsweringJudge]) -> list[str]:
    """Return a line for each judge of a run with several: what it answers, and what it cost.

    >>> cost = KindUsage(questions=8, stored=2, requests=6, prompt_tokens=900, output_tokens=6)
    >>> is_of = {"model": "m", "revision": "1", "note": "", "language_model": True}
    >>> first = AnsweringJudge(backend="server", name="verifier", kinds=("verdict",), usage=cost, **is_of)
    >>> other = AnsweringJudge(backend="sentences", name="sentences", kinds=("claims",), **is_of)
    >>> for line in judge_lines([first, other]):
    ...     print(line)
    verifier answers verdict: 8 questions, 2 of them cached, 6 requests, 900 tokens in, 6 out
    sentences stands in for a judge that writes claims
    """
    roles = [_role(judge) for judge in judges] if len(judges) > 1 else []
    return [f"{role['name']} {role['what']}" + (f": {role['cost']}" if role["cost"] else "") for role in roles]


def _roles(record: RunRecord) -> list[dict[str, Any]]:
    """Return the judges of a run with several; empty if there is one."""
    return [_role(judge) for judge in record.judges] if len(record.judges) > 1 else []


def _role(judge: AnsweringJudge) -> dict[str, Any]:
    kinds = ", ".join(kind.replace("_", " ") for kind in judge.kinds)
    stands_in = judge.backend == SENTENCES
    return {
        **{name: getattr(judge, name) for name in ("name", "model", "revision", "note")},
        "what": f"stands in for a judge that writes {kinds}" if stands_in else f"answers {kinds}",
        "cost": "" if stands_in or judge.usage is None else _cost(judge.usage),
        "panel": [member.model for member in judge.panel],
    }


def _cost(usage: KindUsage) -> str:
    if not usage.questions:
        return ""
    words = [f"{usage.questions:,} question{'s' * (usage.questions != 1)}"]
    words += [f"{usage.stored:,} of them cached"] if usage.stored else []
    if usage.requests:
        words.append(f"{usage.requests:,} request{'s' * (usage.requests != 1)}")
        words.append(f"{usage.prompt_tokens:,} tokens in, {usage.output_tokens:,} out")
    return ", ".join(words)
