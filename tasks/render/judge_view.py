"""The judge of a run as a page shows it: who it was, how far a panel agreed, and how far it agrees with people."""

from collections.abc import Iterator, Mapping
from typing import Any

_TITLES = {
    "builtin": "Baseline judge, no language model",
    "scripted": "Scripted judge, answers from a file",
    "panel": "Panel of judges",
}


def judge_view(manifest: Mapping[str, Any], agreement: Mapping[str, Any]) -> dict[str, Any]:
    """The judge for the page.

    Args:
        manifest: the run's manifest. `calibration` is what is known about the judge's agreement with people on labelled
            data: a mapping of names to numbers, texts or further mappings. A run that knows nothing has none.
        agreement: how far the judges of a panel agreed, as summary.json has it: stage -> kind or metric -> numbers.
    """
    judge = manifest.get("judge") or {}
    panel = manifest.get("panel") or []
    calibration = manifest.get("calibration") or {}
    return {
        **{name: judge.get(name) for name in ("backend", "model", "revision", "note")},
        "title": _TITLES["panel"] if panel else _TITLES.get(str(judge.get("backend")), "Judge"),
        "panel": [{"model": member["model"], "note": member["note"]} for member in panel],
        "agreement": list(_agreement(agreement)),
        "calibration": list(_facts(calibration)),
        "agreement_known": bool(calibration) or judge.get("backend") == "builtin",
    }


def _agreement(stages: Mapping[str, Any]) -> Iterator[dict[str, str]]:
    for groups in stages.values():
        for name, found in groups.items():
            share, alpha = found["agreement"], found["alpha"]
            yield {
                "about": str(name).replace("_", " "),
                "share": "none compared" if share is None else f"{share:.0%} of pairs of labels equal",
                "alpha": "" if alpha is None else f"Krippendorff's alpha {alpha:.2f}",
                "items": f"{found['compared']:,} of {found['items']:,} items",
            }


def _facts(facts: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, str]]:
    for name, value in facts.items():
        title = f"{path} {name}".strip().replace("_", " ")
        if isinstance(value, Mapping):
            yield from _facts(value, title)
        elif isinstance(value, float):
            yield title, f"{value:.3g}"
        elif isinstance(value, (str, int)):
            yield title, str(value)
