"""Read the agreement of judges with people from the manifests of finished runs, for gates."""

from collections.abc import Mapping
from typing import Any

from metric_core.calibration.calibrate import FIGURES
from metric_core.errors import AssayError
from metric_core.gates.rules import JudgeAgreement
from metric_core.stages import any_judged
from tasks.calibration.calibration_files import parse_figure
from tasks.options.metric_settings import MetricSettings

_MEASURES = {"kappa": "Cohen's kappa", "spearman": FIGURES["spearman"]}
"""Figures that a gate checks: the first for yes and no, the second for grades."""


def read_agreements(manifest: Mapping[str, Any]) -> dict[str, JudgeAgreement | None]:
    """Return the agreement of a run's judge with people.

    Args:
        manifest: Content of run.json.

    Returns:
        A mapping from the key of each metric that asks a judge to the agreement; None if it was not measured, or was
        measured with the other kind of verdict.
    """
    verdict = (manifest.get("config") or {}).get("verdict")
    calibrated = (manifest.get("calibration") or {}).get("metrics") or {}
    known = {key: facts for key, facts in calibrated.items() if facts.get("verdict", verdict) == verdict}
    keys = (entry["key"] for entry in manifest.get("metrics", ()) if _uses_judge(entry))
    return {key: _agreement(known[key]) if key in known else None for key in keys}


def _uses_judge(entry: Mapping[str, Any]) -> bool:
    """Return whether a metric asks a judge; true for a metric that is not installed here."""
    name = entry.get("origin") or entry.get("name") or entry["key"]
    try:
        request = MetricSettings(name=name, parameters=entry.get("parameters") or {}, key=entry["key"]).request()
    except AssayError:
        return True
    return any_judged(request.products)


def _agreement(facts: Mapping[str, Any]) -> JudgeAgreement:
    figures = facts["figures"]
    name = next((name for name in _MEASURES if name in figures), "kappa")
    figure = parse_figure(figures[name]) if name in figures else None
    value, interval = (None, None) if figure is None else (figure.value, figure.interval)
    return JudgeAgreement(_MEASURES[name], value, interval, int(facts["compared"]))
