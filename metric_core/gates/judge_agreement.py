"""Apply gate rules about the judge: its agreement with people, and whether its verdicts stand where they must."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from metric_core.calibration.figure_intervals import TOO_FEW
from metric_core.calibration.label_needs import rows_to_reach
from metric_core.gates.rules import Check, JudgeAgreement, JudgeFlips, JudgeRule, Outcome, RuleKind, Threshold
from metric_core.statistics.bounded_means import LEAST_UNITS

Agreements: TypeAlias = Mapping[str, Sequence[JudgeAgreement | None]]
"""Key of a metric -> agreement with people of the run's judge, and of the baseline's judge if it is a different one.

An agreement is None if it was never measured. Metrics that ask no judge are missing."""


Flips: TypeAlias = Mapping[str, Sequence[JudgeFlips | None]]
"""Key of a metric -> what the certificates say of the run's judge, and of the baseline's if it is a different one.

It is None for a judge without a certificate. Metrics that are not computed from verdicts on claims are missing."""

_JUDGES = ("the judge", "the baseline's judge")


def check_judge(rule: JudgeRule, metrics: Sequence[str], agreements: Agreements, flips: Flips) -> Iterator[Check]:
    """Yield the checks of every judge of these metrics.

    >>> from metric_core.gates.rules import Threshold
    >>> from metric_core.statistics.resampling import Interval
    >>> agreement = JudgeAgreement("Cohen's kappa", 0.7, Interval(0.5, 0.85), 200)
    >>> rule = JudgeRule(None, Threshold(0.6), 100)
    >>> [check] = check_judge(rule, ["faithfulness", "string_presence"], {"faithfulness": [agreement]}, {})
    >>> check.outcome.value, check.metric, check.observed
    ('inconclusive', 'faithfulness', 0.7)
    """
    for metric in metrics:
        if rule.threshold is not None:
            for whose, agreement in zip(_JUDGES, agreements.get(metric, ()), strict=False):
                yield _check(rule.threshold, rule.min_rows, metric, whose, agreement)
        if rule.max_flip is not None:
            for whose, found in zip(_JUDGES, flips.get(metric, ()), strict=False):
                yield _check_flips(rule.max_flip, metric, whose, found)


def distrust(check: Check) -> Check:
    """Return the check as inconclusive, because the judge that made its numbers is not trusted."""
    if check.outcome is Outcome.INCONCLUSIVE:
        return check
    return replace(check, outcome=Outcome.INCONCLUSIVE, reason=f"{check.reason}, but the judge is not trusted")


def _check_flips(limit: Threshold, metric: str, whose: str, flips: JudgeFlips | None) -> Check:
    problem = _problem_of_flips(limit, flips)
    return Check(
        kind=RuleKind.JUDGE,
        metric=metric,
        rule=f"flip rate of {whose} {limit}",
        outcome=Outcome.PASSED if problem is None else Outcome.INCONCLUSIVE,
        observed=None if flips is None else flips.share,
        interval=None if flips is None else flips.interval,
        p=None,
        rows=0 if flips is None else flips.asked,
        reason=str(flips) if problem is None else f"{whose} {problem}",
    )


def _problem_of_flips(limit: Threshold, flips: JudgeFlips | None) -> str | None:
    if flips is None:
        return "has no certificate: make one with `assay judge check RUN`, and evaluate again"
    if flips.faults:
        return f"has faults in its certificate ({', '.join(flips.faults)}): choose another judge, or other prompts"
    if flips.interval is None or flips.must_move < LEAST_UNITS:
        return (
            "was checked on too few rows, or too few supported claims: check it on a run with more, with `assay judge "
            "check RUN`"
        )
    if limit.is_met_by(flips.interval.high):
        return None
    more = "; ask more questions: `assay judge check RUN --questions N`" if limit.is_met_by(flips.share) else ""
    return f"has the {flips}, wanted {limit} at the upper end of the interval{more}"


def _check(threshold: Threshold, min_rows: int, metric: str, whose: str, agreement: JudgeAgreement | None) -> Check:
    problem = _problem(threshold, min_rows, agreement)
    reason = "" if agreement is None else f"{agreement.measure} {_format_value(agreement)}"
    if problem is not None:
        reason = f"the agreement of {whose} with people {problem}; {_advice(threshold, min_rows, metric, agreement)}"
    return Check(
        kind=RuleKind.JUDGE,
        metric=metric,
        rule=f"agreement of {whose} with people {threshold}",
        outcome=Outcome.PASSED if problem is None else Outcome.INCONCLUSIVE,
        observed=None if agreement is None else agreement.value,
        interval=None if agreement is None else agreement.interval,
        p=None,
        rows=0 if agreement is None else agreement.rows,
        reason=reason,
    )


def _problem(threshold: Threshold, min_rows: int, agreement: JudgeAgreement | None) -> str | None:
    if agreement is None:
        return f"was never measured, wanted {threshold} over at least {min_rows} labelled rows"
    if agreement.rows < min_rows:
        value = "" if agreement.value is None else f" ({agreement.measure} {_format_value(agreement)})"
        return f"was measured on {agreement.rows} labelled rows only{value}, wanted at least {min_rows}"
    if agreement.interval is None:
        return f"has no interval on {agreement.rows} labelled rows ({TOO_FEW}), wanted {threshold}"
    if not threshold.is_met_by(agreement.interval.low):
        return (
            f"is {agreement.measure} {_format_value(agreement)}, over {agreement.rows} labelled rows, "
            f"wanted {threshold} at the lower end of the interval"
        )
    return None


def _advice(threshold: Threshold, min_rows: int, metric: str, agreement: JudgeAgreement | None) -> str:
    if agreement is None or agreement.value is None or agreement.rows < min_rows:
        step = "label rows"
    elif threshold.is_met_by(agreement.value):
        low = agreement.value if agreement.interval is None else agreement.interval.low
        rows = rows_to_reach(agreement.value, low, threshold.value, agreement.rows)
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
