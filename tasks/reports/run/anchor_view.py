"""Describe the anchor of a run for the report: its scores, their cost, and the judge's agreement with its labels."""

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

from metric_core.calibration.calibrate import FIGURES
from tasks.reports.figures import format_fixed
from tasks.reports.run.summary_view import split_key
from tasks.runs.judge_drift import find_changed_judges, read_findings
from tasks.runs.run_folder import REPORT

_SHOWN = ("kappa", "spearman", "mae")
"""Figures of agreement that a row shows: the first of them that the labels have."""


def anchor_view(manifest: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the anchor for the page; None for a run without one.

    Args:
        manifest: Content of run.json.
    """
    entry = manifest.get("anchor")
    if entry is None:
        return None
    name = PurePosixPath(str(entry["source"])).name
    if "reason" in entry:
        return {"source": name, "reason": entry["reason"]}
    agreement = entry.get("agreement") or {}
    return {
        "source": name,
        "reason": None,
        "rows": f"{entry['rows']:,} row{'s' * (entry['rows'] != 1)}",
        "cost": _cost(entry["usage"]),
        "again": _describe_findings(read_findings(manifest)),
        "report": f"{entry['folder']}/{REPORT}",
        "labelled": tuple(agreement),
        "metrics": [
            {
                "key": key,
                "key_parts": split_key(key),
                "mean": "-" if found["mean"] is None else format_fixed(found["mean"]),
                "interval": _interval(found),
                "scored": f"{found['scored']:,}",
                "agreement": _agreement(agreement.get(key)),
            }
            for key, found in entry["metrics"].items()
        ],
        "left_out": [f"{metric} (no {', '.join(columns)})" for metric, columns in entry["left_out"].items()],
    }


def anchor_line(manifest: Mapping[str, Any]) -> str | None:
    """Return a line about the anchor for a terminal; None for a run without one.

    Args:
        manifest: Content of run.json.
    """
    view = anchor_view(manifest)
    if view is None:
        return None
    if view["reason"] is not None:
        return f"anchor: no scores of {view['source']}"
    labelled = [f"{each['key']}: {each['agreement']}" for each in view["metrics"] if each["key"] in view["labelled"]]
    agreement = f" Agreement with its labels: {'; '.join(labelled)}." if labelled else ""
    parts = (f"anchor: {view['rows']} of {view['source']}.", view["cost"], *view["again"])
    return f"{' '.join(filter(None, parts))}{agreement}"


def _cost(usage: Mapping[str, Any]) -> str:
    """Return what the anchor cost.

    >>> _cost({"questions": 40, "asked": 0}), _cost({"questions": 40, "asked": 12}), _cost({"questions": 0, "asked": 0})
    ('All 40 answers were cached.', '12 of 40 questions were asked; the other answers were cached.', '')
    """
    questions, asked = usage["questions"], usage["asked"]
    if not questions:
        return ""
    if not asked:
        return f"All {questions:,} answers were cached."
    if asked == questions:
        return f"All {questions:,} questions were asked: this judge had not seen the anchor."
    return f"{asked:,} of {questions:,} questions were asked; the other answers were cached."


def _describe_findings(found: Mapping[str, Any]) -> list[str]:
    """Return sentences on the questions that were asked again.

    >>> nothing = {"judge": "llama", "told": None, "changed": []}
    >>> _describe_findings({"rows": 23, "questions": 70, "judges": [{**nothing, "distances": {"a": 0.0, "b": 0.1}}]})
    ['70 questions about 23 rows were asked again: llama gave none of 2 rows another verdict.']
    """
    if not found:
        return []
    changed = [
        f"{each['told']['sentence'][:1].upper()}{each['told']['sentence'][1:]}." for each in find_changed_judges(found)
    ]
    if "reason" in found:
        return [f"Nothing could be asked again: {found['reason']}.", *changed]
    counts = [
        f"{each['judge']} gave {len(each['changed']) or 'none'} of {len(each['distances']):,} rows another verdict"
        for each in found["judges"]
    ]
    asked = f"{found['questions']:,} questions about {found['rows']:,} rows were asked again"
    return [f"{asked}: {', '.join(counts)}.", *changed]


def _interval(found: Mapping[str, Any]) -> str:
    return "" if found["low"] is None else f"{format_fixed(found['low'])} to {format_fixed(found['high'])}"


def _agreement(found: Mapping[str, Any] | None) -> str:
    if found is None:
        return "not labelled"
    if "reason" in found:
        return str(found["reason"])
    name = next((name for name in _SHOWN if name in found["figures"]), None)
    if name is None:
        return f"not determined by {found['compared']:,} rows"
    figure = found["figures"][name]
    value = f"{FIGURES[name]} {format_fixed(figure['value'])}"
    interval = f" ({_interval(figure)})" if figure["low"] is not None else ""
    return f"{value}{interval}, {found['compared']:,} rows"
