"""Apply gate rules about the judge, which must agree with people before its scores are trusted."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from metric_core.calibration.figure_intervals import TOO_FEW
from metric_core.calibration.label_needs import rows_to_reach
from metric_core.gates.rules import Check, JudgeAgreement, JudgeRule, Outcome, RuleKind

Agreements: TypeAlias = Mapping[str, Sequence[JudgeAgreement | None]]
"""Key of a metric -> agreement with people of the run's judge, and of the baseline's judge if it is a different one.

An agreement is None if it was never measured. Metrics that ask no judge are missing."""


def check_judge(rule: JudgeRule, metrics: Sequence[str], agreements: Agreements) -> Iterator[Check]:
    """Yield a check of the agreement with people for every judge of these metrics.

    >>> from metric_core.gates.rules import Threshold
    >>> from metric_core.statistics.resampling import Interval
    >>> agreement = JudgeAgreement("Cohen's kappa", 0.7, Interval(0.5, 0.85), 200)
    >>> rule = JudgeRule(None, Threshold(0.6), 100)
    >>> [check] = check_judge(rule, ["faithfulness", "string_presence"], {"faithfulness": [agreement]})
    >>> check.outcome.value, check.metric, check.observed
    ('inconclusive', 'faithfulness', 0.7)
    """
    for metric in metrics:
        for whose, agreement in zip(("the judge", "the baseline's judge"), agreements.get(metric, ()), strict=False):
            yield _check(rule, metric, whose, agreement)


def distrust(check: Check) -> Check:
    """Return the check as inconclusive, because the judge that made its numbers is not trusted."""
    if check.outcome is Outcome.INCONCLUSIVE:
        return check
    return replace(check, outcome=Outcome.INCONCLUSIVE, reason=f"{check.reason}, but the judge is not trusted")


def _check(rule: JudgeRule, metric: str, whose: str, agreement: JudgeAgreement | None) -> Check:
    problem = _problem(rule, agreement)
    reason = "" if agreement is None else f"{agreement.measure} {_format_value(agreement)}"
    if problem is not None:
        reason = f"the agreement of {whose} with people {problem}; {_advice(rule, metric, agreement)}"
    return Check(
        kind=RuleKind.JUDGE,
        metric=metric,
        rule=f"agreement of {whose} with people {rule.threshold}",
        outcome=Outcome.PASSED if problem is None else Outcome.INCONCLUSIVE,
        observed=None if agreement is None else agreement.value,
        interval=None if agreement is None else agreement.interval,
        p=None,
        rows=0 if agreement is None else agreement.rows,
        reason=reason,
    )


def _problem(rule: JudgeRule, agreement: JudgeAgreement | None) -> str | None:
    if agreement is None:
        return f"was never measured, wanted {rule.threshold} over at least {rule.min_rows} labelled rows"
    if agreement.rows < rule.min_rows:
        value = "" if agreement.value is None else f" ({agreement.measure} {_format_value(agreement)})"
        return f"was measured on {agreement.rows} labelled rows only{value}, wanted at least {rule.min_rows}"
    if agreement.interval is None:
        return f"has no interval on {agreement.rows} labelled rows ({TOO_FEW}), wanted {rule.threshold}"
    if not rule.threshold.is_met_by(agreement.interval.low):
        return (
            f"is {agreement.measure} {_format_value(agreement)}, over {agreement.rows} labelled rows, "
            f"wanted {rule.threshold} at the lower end of the interval"
        )
    return None


def _advice(rule: JudgeRule, metric: str, agreement: JudgeAgreement | None) -> str:
    if agreement is None or agreement.value is None or agreement.rows < rule.min_rows:
        step = "label rows"
    elif rule.threshold.is_met_by(agreement.value):
        low = agreement.value if agreement.interval is None else agreement.interval.low
        rows = rows_to_reach(agreement.value, low, rule.threshold.value, agreement.rows)
        number = "" if rows is None or rows <= agreement.rows else f" (about {rows:,} in all if it stays the same)"
        step = f"label more rows{number}, for a narrower interval"
    else:
        step = "choose a judge that agrees better"
    command = f"`assay calibrate LABELS --label COLUMN --metric {shlex.quote(metric)}`"
    return f"{step}, measure it with {command}, and evaluate again; cached answers of the same judge are reused"


def _format_value(agreement: JudgeAgreement) -> str:
    interval = agreement.interval
    value = "unknown" if agreement.value is None else f"{agreement.value:.3f}"
    return value if interval is None else f"{value}, 95 % interval {interval.low:.3f} to {interval.high:.3f}"
