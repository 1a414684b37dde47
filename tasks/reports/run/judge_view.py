"""Describe the judge of a run for a page: its name, panel agreement, and agreement with people."""

from collections.abc import Iterator, Mapping
from typing import Any

from tasks.judges.protocol import NO_JUDGE
from tasks.reports.calibration.calibration_text import agreement_lines

_TITLES = {
    NO_JUDGE.backend: "No judge",
    "builtin": "Baseline judge, no language model",
    "scripted": "Scripted judge, answers from a file",
    "panel": "Panel of judges",
}


def judge_view(manifest: Mapping[str, Any], agreement: Mapping[str, Any]) -> dict[str, Any]:
    """Return the judge for the page.

    Args:
        manifest: Content of run.json; `calibration` describes the judge's agreement with people.
        agreement: Panel agreement from summary.json: mapping from stage to a mapping from kind or metric to numbers.
    """
    judge = manifest.get("judge") or {}
    panel = manifest.get("panel") or []
    return {
        **{name: judge.get(name) for name in ("backend", "model", "revision", "note")},
        "title": _TITLES["panel"] if panel else _TITLES.get(str(judge.get("backend")), "Judge"),
        "panel": [{"model": member["model"], "note": member["note"]} for member in panel],
        "agreement": list(_agreement(agreement)),
        "calibration": agreement_lines(manifest),
    }


def _agreement(stages: Mapping[str, Any]) -> Iterator[dict[str, str]]:
    for groups in stages.values():
        for name, numbers in groups.items():
            share, alpha = numbers["agreement"], numbers["alpha"]
            yield {
                "about": str(name).replace("_", " "),
                "share": "none compared" if share is None else f"{share:.0%} of pairs of labels equal",
                "alpha": "" if alpha is None else f"Krippendorff's alpha {alpha:.2f}",
                "items": f"{numbers['compared']:,} of {numbers['items']:,} items",
            }
