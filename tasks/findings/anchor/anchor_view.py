"""Describe the anchor of a run: its scores, their cost, and the judge's agreement with its labels."""

from pathlib import PurePosixPath
from typing import Any

from metric_core.calibration.calibrate import FIGURES
from tasks.documents.figures import format_fixed
from tasks.documents.run.summary_view import split_key
from tasks.findings.anchor.anchor_record import AnchorAgreement, AnchorRecord, AnchorUsage
from tasks.findings.repeats.judge_drift import find_changed_judges
from tasks.findings.repeats.repeat_record import AskedAgain
from tasks.runs.run_folder import REPORT

_SHOWN = ("kappa", "spearman", "mae")
"""Figures of agreement that a row shows: the first of them that the labels have."""


def anchor_view(anchor: AnchorRecord | None) -> dict[str, Any] | None:
    """Return the anchor for the page; None for a run without one."""
    if anchor is None:
        return None
    name = PurePosixPath(anchor.source).name
    if anchor.reason is not None:
        return {"source": name, "reason": anchor.reason}
    return {
        "source": name,
        "reason": None,
        "rows": f"{anchor.rows:,} row{'s' * (anchor.rows != 1)}",
        "cost": _cost(anchor.usage),
        "again": _describe_repeat(anchor.asked_again),
        "report": f"{anchor.folder}/{REPORT}",
        "labelled": tuple(anchor.agreement),
        "metrics": [
            {
                "key": key,
                "key_parts": split_key(key),
                "mean": "-" if found.mean is None else format_fixed(found.mean),
                "interval": _interval(found.low, found.high),
                "scored": f"{found.scored:,}",
                "agreement": _agreement(anchor.agreement.get(key)),
            }
            for key, found in anchor.metrics.items()
        ],
        "left_out": [f"{metric} (no {', '.join(columns)})" for metric, columns in anchor.left_out.items()],
    }


def anchor_line(anchor: AnchorRecord | None) -> str | None:
    """Return a line about the anchor for a terminal; None for a run without one."""
    view = anchor_view(anchor)
    if view is None:
        return None
    if view["reason"] is not None:
        return f"anchor: no scores of {view['source']}"
    labelled = [f"{each['key']}: {each['agreement']}" for each in view["metrics"] if each["key"] in view["labelled"]]
    agreement = f" Agreement with its labels: {'; '.join(labelled)}." if labelled else ""
    parts = (f"anchor: {view['rows']} of {view['source']}.", view["cost"], *view["again"])
    return f"{' '.join(filter(None, parts))}{agreement}"


def _cost(usage: AnchorUsage | None) -> str:
    """Return what the anchor cost.

    >>> _cost(AnchorUsage(questions=40, asked=0)), _cost(AnchorUsage(questions=0, asked=0))
    ('All 40 answers were cached.', '')
    >>> _cost(AnchorUsage(questions=40, asked=12))
    '12 of 40 questions were asked; the other answers were cached.'
    """
    if usage is None or not usage.questions:
        return ""
    if not usage.asked:
        return f"All {usage.questions:,} answers were cached."
    if usage.asked == usage.questions:
        return f"All {usage.questions:,} questions were asked: this judge had not seen the anchor."
    return f"{usage.asked:,} of {usage.questions:,} questions were asked; the other answers were cached."


def _describe_repeat(found: AskedAgain | None) -> list[str]:
    """Return sentences on the questions that were asked again.

    >>> from tasks.findings.repeats.repeat_record import JudgeRepeat
    >>> judge = JudgeRepeat(judge="llama", distances={"a": 0.0, "b": 0.1})
    >>> _describe_repeat(AskedAgain(rows=23, questions=70, judges=(judge,)))
    ['70 questions about 23 rows were asked again: llama gave none of 2 rows another verdict.']
    """
    if found is None:
        return []
    changes = [each.change for each in find_changed_judges(found) if each.change is not None]
    changed = [f"{each.sentence[:1].upper()}{each.sentence[1:]}." for each in changes]
    if found.reason is not None:
        return [f"Nothing could be asked again: {found.reason}.", *changed]
    counts = [
        f"{each.judge} gave {len(each.changed) or 'none'} of {len(each.distances):,} rows another verdict"
        for each in found.judges
    ]
    asked = f"{found.questions:,} questions about {found.rows:,} rows were asked again"
    return [f"{asked}: {', '.join(counts)}.", *changed]


def _interval(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f"{format_fixed(low)} to {format_fixed(high)}"


def _agreement(found: AnchorAgreement | None) -> str:
    if found is None:
        return "not labelled"
    if found.reason is not None:
        return found.reason
    name = next((name for name in _SHOWN if name in found.figures), None)
    if name is None:
        return f"not determined by {found.compared:,} rows"
    figure = found.figures[name]
    value = f"{FIGURES[name]} {format_fixed(figure.value)}"
    interval = "" if figure.interval is None else f" ({_interval(figure.interval.low, figure.interval.high)})"
    return f"{value}{interval}, {found.compared:,} rows"
