"""Gate rules about the judge, which must agree with people before its scores are trusted."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from metric_core.gates.rules import Check, JudgeAgreement, JudgeRule, Outcome, RuleKind
from metric_core.statistics.resampling import Interval

Agreements: TypeAlias = Mapping[str, Sequence[JudgeAgreement | None]]
"""Key of a metric -> agreement with people of the run's judge, and of the baseline's judge if it is a different one.

An agreement is None if it was never measured. Metrics that ask no judge are missing."""


def check_judge(rule: JudgeRule, metrics: Sequence[str], agreements: Agreements) -> Iterator[Check]:
    """Yield a check for every judge of these metrics: whether it agrees with people as far as the rule requires.

    Args:
        rule: Required agreement.
        metrics: Keys of the metrics.
        agreements: Measured agreement.

    >>> from metric_core.gates.rules import Threshold
    >>> found = JudgeAgreement("Cohen's kappa", 0.7, Interval(0.5, 0.85), 200)
    >>> rule = JudgeRule(None, Threshold(0.6), 100)
    >>> [check] = check_judge(rule, ["faithfulness", "string_presence"], {"faithfulness": [found]})
    >>> check.outcome.value, check.metric, check.observed
    ('inconclusive', 'faithfulness', 0.7)
    """
    for metric in metrics:
        for whose, found in zip(("the judge", "the baseline's judge"), agreements.get(metric, ()), strict=False):
            yield _check(rule, metric, whose, found)


def distrust(check: Check) -> Check:
    """Return the check as inconclusive, because the judge that made its numbers is not trusted."""
    if check.outcome is Outcome.INCONCLUSIVE:
        return check
    return replace(check, outcome=Outcome.INCONCLUSIVE, reason=f"{check.reason}, but the judge is not trusted")


def _check(rule: JudgeRule, metric: str, whose: str, found: JudgeAgreement | None) -> Check:
    problem = _problem(rule, found)
    reason = "" if found is None else f"{found.measure} {_format_value(found)}"
    if problem is not None:
        reason = f"the agreement of {whose} with people {problem}; {_advice(rule, metric, found)}"
    return Check(
        kind=RuleKind.JUDGE,
        metric=metric,
        rule=f"agreement of {whose} with people {rule.threshold}",
        outcome=Outcome.PASSED if problem is None else Outcome.INCONCLUSIVE,
        observed=None if found is None else found.value,
        interval=None if found is None else found.interval,
        p=None,
        rows=0 if found is None else found.rows,
        reason=reason,
    )


def _problem(rule: JudgeRule, found: JudgeAgreement | None) -> str | None:
    if found is None:
        return f"was never measured, wanted {rule.threshold} over at least {rule.min_rows} labelled rows"
    if found.rows < rule.min_rows:
        what = "" if found.value is None else f" ({found.measure} {_format_value(found)})"
        return f"was measured on {found.rows} labelled rows only{what}, wanted at least {rule.min_rows}"
    if found.interval is None:
        return f"was measured on {found.rows} labelled rows, too similar for an interval, wanted {rule.threshold}"
    if not rule.threshold.is_met_by(found.interval.low):
        return (
            f"is {found.measure} {_format_value(found)}, over {found.rows} labelled rows, "
            f"wanted {rule.threshold} at the lower end of the interval"
        )
    return None


def _advice(rule: JudgeRule, metric: str, found: JudgeAgreement | None) -> str:
    if found is None or found.value is None or found.rows < rule.min_rows:
        first = "label rows"
    elif rule.threshold.is_met_by(found.value):
        first = "label more rows, for a narrower interval"
    else:
        first = "choose a judge that agrees better"
    command = f"`assay calibrate LABELS --label COLUMN --metric {shlex.quote(metric)}`"
    return f"{first}, measure it with {command}, and evaluate again; cached answers of the same judge are reused"


def _format_value(found: JudgeAgreement) -> str:
    interval = found.interval
    value = "unknown" if found.value is None else f"{found.value:.3f}"
    return value if interval is None else f"{value}, 95 % interval {_ends(interval)}"


def _ends(interval: Interval) -> str:
    return f"{interval.low:.3f} to {interval.high:.3f}"
