"""Describe the judge of a run for a page: its name, panel agreement, and agreement with people."""

from collections.abc import Iterator, Mapping
from typing import Any

from tasks.models.judges.protocol import CASCADE, NO_JUDGE, ROUTED, SENTENCES
from tasks.options.model_backends import find_backend
from tasks.plugins.load_object import Group
from tasks.reports.calibration.calibration_text import agreement_lines
from tasks.reports.calibration.cascade_text import cascade_lines
from tasks.reports.calibration.certificate_text import certificate_lines
from tasks.runs.judge_roles import judge_roles
from tasks.runtime.wording import format_percent

_TITLES = {
    NO_JUDGE.backend: "No judge",
    "panel": "Panel of judges",
    CASCADE: "Cascade of two judges",
    ROUTED: "Several judges",
}


def judge_view(manifest: Mapping[str, Any], summary: Mapping[str, Any]) -> dict[str, Any]:
    """Return the judge for the page.

    Args:
        manifest: Content of run.json; `calibration` describes the judge's agreement with people.
        summary: Content of summary.json; `agreement` is a mapping from stage to a mapping from kind or metric to
            numbers.
    """
    judge = manifest.get("judge") or {}
    panel = [] if manifest.get(CASCADE) else manifest.get("panel") or []
    facts = find_backend(Group.JUDGES, judge.get("backend"))
    return {
        **{name: judge.get(name) for name in ("backend", "model", "revision", "note")},
        "title": _TITLES["panel"] if panel else _TITLES.get(str(judge.get("backend")), facts.title),
        "line": judge_line(manifest),
        "panel": [{"model": member["model"], "note": member["note"]} for member in panel],
        "roles": _roles(manifest),
        "agreement": list(_agreement(summary.get("agreement") or {})),
        "cascade": cascade_lines(manifest, summary),
        "calibration": agreement_lines(manifest),
        "certificate": certificate_lines(manifest),
        "variance": variance_lines(manifest),
    }


def judge_line(manifest: Mapping[str, Any]) -> str | None:
    """Return which judge gave the verdicts of a run, and whether it is calibrated; None for a run without a judge.

    Args:
        manifest: Content of run.json.

    >>> judge_line({"judge": {"backend": "builtin", "model": "m"}})
    'a baseline without a language model, not calibrated'
    >>> judge_line({"judge": {"backend": "server", "model": "m"}, "calibration": {"metrics": {"faithfulness": {}}}})
    'm, calibrated for faithfulness'
    """
    if (name := judge_name(manifest)) is None:
        return None
    measured = ", ".join((manifest.get("calibration") or {}).get("metrics", ()))
    calibrated = f"calibrated for {measured}" if measured else "not calibrated"
    return f"{name}, {calibrated}"


def judge_name(manifest: Mapping[str, Any]) -> str | None:
    """Return the name by which people know the judge of a run; None for a run without a judge.

    Args:
        manifest: Content of run.json.

    >>> judge_name({"judge": {"backend": "server", "model": "m"}, "panel": [{}, {}, {}]})
    'panel of 3'
    """
    judge = manifest.get("judge") or {}
    if judge.get("backend") == NO_JUDGE.backend:
        return None
    panel = [] if manifest.get(CASCADE) else manifest.get("panel") or []
    name = find_backend(Group.JUDGES, judge.get("backend")).label or str(judge.get("model"))
    return f"panel of {len(panel)}" if panel else name


def judge_lines(manifest: Mapping[str, Any]) -> list[str]:
    """Return a line for each judge of a run with several: what it answers, and what it cost.

    Args:
        manifest: Content of run.json.

    >>> cost = {"questions": 8, "stored": 2, "requests": 6, "prompt_tokens": 900, "output_tokens": 6}
    >>> first = {"name": "verifier", "backend": "server", "groups": ["verdicts"], "kinds": ["verdict"], "usage": cost}
    >>> other = {"name": "sentences", "backend": "sentences", "groups": ["writing"], "kinds": ["claims"], "usage": {}}
    >>> for line in judge_lines({"judges": [first, other]}):
    ...     print(line)
    verifier answers verdict: 8 questions, 2 of them cached, 6 requests, 900 tokens in, 6 out
    sentences stands in for a judge that writes claims
    """
    roles = _roles(manifest)
    return [f"{role['name']} {role['what']}" + (f": {role['cost']}" if role["cost"] else "") for role in roles]


def variance_lines(manifest: Mapping[str, Any]) -> list[str]:
    """Return the judge's share of the variance of each mean, and whether more rows or more votes would help.

    Args:
        manifest: Content of run.json.

    >>> share = {"answers": None, "judge": 0.031, "run": 0.0, "judge_interval": {"low": 0.01, "high": 0.09}}
    >>> found = {"rows": 60, "of_anchor": False, "advice": "more rows help", "shares": share}
    >>> variance_lines({"judge_variance": {"faithfulness": found}})
    ["faithfulness: 3 % of the variance is the judge's (1 to 9 %; 60 rows judged again): more rows help"]
    """
    lines = []
    for metric, found in (manifest.get("judge_variance") or {}).items():
        shares, kind = found["shares"], "anchor rows" if found["of_anchor"] else "rows"
        ends = shares["judge_interval"]
        interval = "" if ends is None else f"{100 * ends['low']:.0f} to {100 * ends['high']:.0f} %; "
        judged = f"{interval}{found['rows']:,} {kind} judged again"
        others = ((shares["answers"], "the system's from answer to answer"), (shares["run"], "shared by a run"))
        more = "".join(f", {100 * share:.0f} % {name}" for share, name in others if share)
        lines.append(
            f"{metric}: {100 * shares['judge']:.0f} % of the variance is the judge's ({judged}){more}: "
            f"{found['advice']}"
        )
    return lines


def _roles(manifest: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the judges of a run with several; empty if there is one."""
    roles = judge_roles(manifest)
    return [_role(role) for role in roles] if len(roles) > 1 else []


def _role(role: Mapping[str, Any]) -> dict[str, Any]:
    kinds = ", ".join(str(kind).replace("_", " ") for kind in role["kinds"])
    stands_in = role["backend"] == SENTENCES
    return {
        **{name: role.get(name) for name in ("name", "model", "revision", "note")},
        "what": f"stands in for a judge that writes {kinds}" if stands_in else f"answers {kinds}",
        "cost": "" if stands_in else _cost(role.get("usage") or {}),
        "panel": [member["model"] for member in role.get("panel") or ()],
    }


def _cost(usage: Mapping[str, Any]) -> str:
    if not usage.get("questions"):
        return ""
    questions, stored, requests = (usage[name] for name in ("questions", "stored", "requests"))
    words = [f"{questions:,} question{'s' * (questions != 1)}"]
    words += [f"{stored:,} of them cached"] if stored else []
    if requests:
        words.append(f"{requests:,} request{'s' * (requests != 1)}")
        words.append(f"{usage['prompt_tokens']:,} tokens in, {usage['output_tokens']:,} out")
    return ", ".join(words)


def _agreement(stages: Mapping[str, Any]) -> Iterator[dict[str, str]]:
    for groups in stages.values():
        for name, numbers in groups.items():
            share, alpha = numbers["agreement"], numbers["alpha"]
            yield {
                "about": str(name).replace("_", " "),
                "share": "none compared" if share is None else f"{format_percent(share)} of pairs of labels equal",
                "alpha": "" if alpha is None else f"Krippendorff's alpha {alpha:.2f}",
                "items": f"{numbers['compared']:,} of {numbers['items']:,} items",
            }
