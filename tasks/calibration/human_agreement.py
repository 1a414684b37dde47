"""Read the agreement of judges with people from the manifests of finished runs, for gates."""

from metric_core.calibration.calibrate import FIGURES
from metric_core.errors import AssayError
from metric_core.gates.rules import JudgeAgreement
from metric_core.stages import any_judged
from tasks.options.metric_settings import MetricSettings
from tasks.record.judge_quality import CalibratedMetric
from tasks.record.run_record import MetricRecord, RunRecord

_MEASURES = {"kappa": "Cohen's kappa", "spearman": FIGURES["spearman"]}
"""Figures that a gate checks: the first for yes and no, the second for grades."""


def read_agreements(record: RunRecord) -> dict[str, JudgeAgreement | None]:
    """Return the agreement of a run's judge with people.

    Returns:
        A mapping from the key of each metric that asks a judge to the agreement; None if it was not measured, or was
        measured with the other kind of verdict.
    """
    known = {key: facts for key, facts in record.calibration.metrics.items() if facts.verdict == record.config.verdict}
    keys = (metric.key for metric in record.metrics if _uses_judge(metric))
    return {key: _agreement(known[key]) if key in known else None for key in keys}


def _uses_judge(metric: MetricRecord) -> bool:
    """Return whether a metric asks a judge; true for a metric that is not installed here."""
    try:
        request = MetricSettings(name=metric.installed, parameters=metric.parameters, key=metric.key).request()
    except AssayError:
        return True
    return any_judged(request.products)


def _agreement(facts: CalibratedMetric) -> JudgeAgreement:
    name = next((name for name in _MEASURES if name in facts.figures), "kappa")
    figure = facts.figures.get(name)
    value, interval = (None, None) if figure is None else (figure.value, figure.interval)
    return JudgeAgreement(_MEASURES[name], value, interval, facts.compared)
