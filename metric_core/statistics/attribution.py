"""Attribute the change of a score to the system, the judge, or both.

The observed change of a mean is the sum of two parts: the system answers differently, and the judge scores differently.
An anchor separates them. It is a set of rows whose texts never change, so a change of their scores is the judge's part
alone. The rest of the observed change is the system's part.

The judge's part is carried over from the anchor to the evaluated rows by a straight line through (score before, change)
of the anchor rows: a stricter judge lowers high scores and can only leave zeros alone, so its effect on the mean
depends on how many rows scored high. For scores of 0 and 1, the line is the standardization of two strata. `TRANSFER`
allows for an effect on other texts that is still not the same.

Three explanations are weighed by their marginal likelihoods (Bayes factors; Kass and Raftery, "Bayes Factors", 1995):
only the system changed, only the judge changed, or both did. A part that is not 0 has a normal prior whose scale is the
observed change, so neither its size nor its sign is assumed. Where both changed, a part is a cause only if it is at
least `LEAST_SHARE` of the observed change and has its sign: a judge that became milder while scores fell is not why
they fell. The cause is named if its posterior probability is at least `LEAST_PROBABILITY`, and is "unknown" otherwise.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from metric_core.statistics.resampling import Floats, Units

LEAST_ANCHOR_ROWS = 20
"""Minimum number of anchor rows with a score before and after, if the judge may have changed."""
LEAST_PROBABILITY = 0.8
"""Minimum posterior probability of a cause that is named."""
LEAST_SHARE = 0.2
"""Minimum share of the observed change that makes a part a cause of it."""
TRANSFER = 0.2
"""Standard deviation of the judge's effect on other texts than the anchor's, as a share of its effect on the anchor."""

_PRIOR_OF_ONE = 0.4
"""Prior probability that only the system changed, and that only the judge did."""
_NORMAL_95 = 1.959963984540054
_ROUNDING = 1e-12


class Cause(StrEnum):
    """Cause of a change of a score."""

    SYSTEM = "system"
    JUDGE = "judge"
    BOTH = "both"
    UNKNOWN = "unknown"


_SENTENCES = {
    Cause.SYSTEM: "The system changed",
    Cause.JUDGE: "The judge changed",
    Cause.BOTH: "System and judge changed",
    Cause.UNKNOWN: "It is not known whether the system or the judge changed",
}


@dataclass(frozen=True, slots=True)
class ScoreChanges:
    """Changes of the scores of rows from one run to another.

    Args:
        changes: Score after minus score before of each row; the sign may be turned so that an improvement is positive.
        before: Score before of each row, with the same sign convention; None if not known, and then the judge's effect
            is taken to be the same at all scores.
        groups: Name of the group of each row; None if rows are independent.
        name: Plural for the rows in a sentence.

    Raises:
        ValueError: The numbers of changes, scores and groups differ.
    """

    changes: Floats
    before: Floats | None = None
    groups: Sequence[str] | None = None
    name: str = "anchor rows"

    @classmethod
    def from_scores(cls, before: Mapping[str, float], after: Mapping[str, float], sign: float = 1.0) -> "ScoreChanges":
        """Pair the scores of the rows that both runs have.

        Args:
            before: Row -> score in the first run.
            after: Row -> score in the second run.
            sign: 1 if higher scores are better, -1 if lower ones are.

        >>> ScoreChanges.from_scores({"x": 1.0, "y": 0.5}, {"x": 0.0, "z": 1.0}).changes.tolist()
        [-1.0]
        """
        rows = sorted(before.keys() & after.keys())
        old, new = (np.array([scores[row] for row in rows], dtype=np.float64) for scores in (before, after))
        return cls(np.round(sign * (new - old), 12), sign * old)

    def __post_init__(self) -> None:
        for name, values in (("scores before", self.before), ("groups", self.groups)):
            if values is not None and len(values) != len(self.changes):
                raise ValueError(f"got {len(values)} {name} of {len(self.changes)} rows, wanted one per row")

    def __len__(self) -> int:
        return len(self.changes)


@dataclass(frozen=True, slots=True)
class ChangePart:
    """One part of an observed change, with its 95 % interval."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Attribution:
    """The cause of a change of a score.

    Args:
        reason: Sentence on why.
        probabilities: Posterior probability of each cause; empty if none was computed.
        system: The system's part of the change; None if it could not be estimated.
        judge: The judge's part of the change; None if it could not be estimated.
        anchor_rows: Number of anchor rows with a score before and after.
        anchor_changed: Number of these whose score changed.
    """

    cause: Cause
    reason: str
    probabilities: Mapping[Cause, float]
    system: ChangePart | None = None
    judge: ChangePart | None = None
    anchor_rows: int = 0
    anchor_changed: int = 0

    @property
    def sentence(self) -> str:
        """The cause and why, as a sentence without its full stop.

        >>> Attribution(Cause.SYSTEM, "the judge needs no server", {}).sentence
        'The system changed: the judge needs no server'
        """
        return f"{_SENTENCES[self.cause]}: {self.reason}"


def attribute_change(
    rows: ScoreChanges,
    anchor: ScoreChanges | None,
    *,
    judge_differs: bool | str | None,
    runs_in_process: bool = False,
    width: float | None = 1.0,
) -> Attribution:
    """Determine whether the system, the judge or both changed the mean of the evaluated rows.

    Args:
        rows: Changes of the evaluated rows, at least one.
        anchor: Changes of the anchor rows between the same two runs; None if one of the runs has no anchor.
        judge_differs: True if the fingerprints of the judge (model, prompts, settings) differ between the two runs,
            False if they are equal, None if they are not known; a sentence that shows that the judge differs although
            they are equal.
        runs_in_process: True if equal fingerprints imply equal answers, as for a judge without a server. Without an
            anchor, the fingerprints then decide.
        width: Greatest value of the metric minus the least; None if it has no bounds.

    Raises:
        ValueError: There are no rows.

    >>> before = np.tile([1.0, 0.0], 50)
    >>> stricter = ScoreChanges(np.where(np.arange(100) % 10 == 0, -1.0, 0.0), before)
    >>> attribute_change(stricter, stricter, judge_differs=True).cause
    <Cause.JUDGE: 'judge'>
    >>> attribute_change(stricter, ScoreChanges(np.zeros(100), before), judge_differs=False).cause
    <Cause.SYSTEM: 'system'>
    >>> attribute_change(stricter, None, judge_differs=True).reason
    "the judge has another fingerprint, and there is no anchor to separate its part from the system's"
    """
    if not len(rows):
        raise ValueError("got no rows, wanted the changes of at least one row that both runs scored")
    if float(np.mean(rows.changes)) == 0:
        return _unknown("the mean score did not change", anchor)
    if judge_differs is False and runs_in_process and not _has_changed(anchor):
        return _system(rows, anchor, "the judge has the same model, prompts and settings, and needs no server")
    if anchor is None or not len(anchor):
        return _unknown(_describe_missing_anchor(judge_differs, anchor), anchor)
    if judge_differs is False and not _has_changed(anchor):
        same = f"the judge has the same fingerprint and gives all {len(anchor)} {anchor.name} the same scores"
        return _system(rows, anchor, same)
    if len(anchor) < LEAST_ANCHOR_ROWS:
        few = f"only {len(anchor)} {anchor.name} have a score in both runs; {LEAST_ANCHOR_ROWS} are needed"
        return _unknown(f"{_describe_judge(judge_differs)}, and {few}", anchor)
    return _weigh(rows, anchor, width, _describe_judge(judge_differs))


def _weigh(rows: ScoreChanges, anchor: ScoreChanges, width: float | None, judge: str) -> Attribution:
    parts = _split(rows, anchor, width)
    probabilities = _weigh_causes(parts)
    cause = max(probabilities, key=lambda each: probabilities[each])
    found = f"{judge}, and {_describe_parts(parts, anchor)}"
    if probabilities[cause] < LEAST_PROBABILITY:
        cause, found = Cause.UNKNOWN, f"{found}, which does not decide"
    return Attribution(
        cause,
        found,
        probabilities,
        _part(parts.system, parts.system_error),
        _part(parts.judge, parts.judge_error),
        len(anchor),
        _count_changed(anchor),
    )


@dataclass(frozen=True, slots=True)
class _Parts:
    """The observed change and the judge's part of it, with standard errors.

    Args:
        observed: Mean change of the evaluated rows.
        observed_error: Its standard error, given the judge's part.
        judge: Judge's part, carried over from the anchor.
        judge_error: Its standard error, without the uncertainty of the transfer to other texts.
    """

    observed: float
    observed_error: float
    judge: float
    judge_error: float

    @property
    def system(self) -> float:
        """The system's part."""
        return self.observed - self.judge

    @property
    def transfer_error(self) -> float:
        """Standard error of the transfer of the judge's part to other texts."""
        return TRANSFER * abs(self.judge)

    @property
    def system_error(self) -> float:
        """Standard error of the system's part."""
        return math.hypot(self.observed_error, self.judge_error, self.transfer_error)


def _split(rows: ScoreChanges, anchor: ScoreChanges, width: float | None) -> _Parts:
    """Estimate the judge's part of the change of the evaluated rows from the anchor."""
    reach = width if width is not None else float(max(np.abs(anchor.changes).max(), np.abs(rows.changes).max()))
    size, count = len(anchor), len(rows)
    weights, slope = np.full(size, 1 / size), 0.0
    residuals, adjusted = anchor.changes - anchor.changes.mean(), rows.changes
    if rows.before is not None and anchor.before is not None and np.ptp(anchor.before) > _ROUNDING:
        deviations = anchor.before - anchor.before.mean()
        slopes = deviations / (deviations**2).sum()
        # A line is not extended beyond the scores that the anchor has.
        target = float(np.clip(rows.before.mean(), anchor.before.min(), anchor.before.max()))
        weights = weights + (target - anchor.before.mean()) * slopes
        slope = float(slopes @ anchor.changes)
        residuals, adjusted = residuals - slope * deviations, rows.changes - slope * rows.before
    judge_variance = _variance_of_sum(weights * residuals, anchor.groups) * size / (size - 2)
    row_variance = _variance_of_sum((adjusted - adjusted.mean()) / count, rows.groups) * count / max(1, count - 1)
    # Half a pseudo-row at each end of the range: rows that are all unchanged do not prove that no row would change.
    judge_variance += size * float((weights**2).sum()) * (reach / (size + 1)) ** 2
    row_variance += (reach / (count + 1)) ** 2
    return _Parts(
        float(rows.changes.mean()), math.sqrt(row_variance), float(weights @ anchor.changes), math.sqrt(judge_variance)
    )


def _variance_of_sum(terms: Floats, groups: Sequence[str] | None) -> float:
    """Return the variance of a sum of centered terms, whose groups are independent."""
    sums = Units.from_values(terms, groups).sums
    return float((sums**2).sum())


def _weigh_causes(parts: _Parts) -> dict[Cause, float]:
    """Return the posterior probability of each cause."""
    prior = max(abs(parts.observed), abs(parts.judge), 2 * parts.observed_error) ** 2
    noise = np.diag([parts.judge_error**2, parts.observed_error**2])
    of_judge, of_system = prior * np.ones((2, 2)), prior * np.diag([0.0, 1.0])
    transfer = np.diag([0.0, parts.transfer_error**2])
    if_both = noise + transfer + of_judge + of_system
    logs = np.array(
        [
            math.log(_PRIOR_OF_ONE) + _log_density(parts, noise + of_system),
            math.log(_PRIOR_OF_ONE) + _log_density(parts, noise + transfer + of_judge),
            math.log(1 - 2 * _PRIOR_OF_ONE) + _log_density(parts, if_both),
        ]
    )
    weights = np.exp(logs - logs.max())
    system, judge, both = weights / weights.sum()
    # If both changed: the distribution of the judge's share of the observed change.
    seen = np.array([parts.judge, parts.observed])
    gain = prior * np.ones(2) @ np.linalg.inv(if_both)
    share = float(gain @ seen) / parts.observed
    spread = math.sqrt(max(prior - prior * float(gain.sum()), _ROUNDING)) / abs(parts.observed)
    only_system = _normal_below((LEAST_SHARE - share) / spread)
    only_judge = 1 - _normal_below((1 - LEAST_SHARE - share) / spread)
    return {
        Cause.SYSTEM: float(system + both * only_system),
        Cause.JUDGE: float(judge + both * only_judge),
        Cause.BOTH: float(both * (1 - only_system - only_judge)),
    }


def _log_density(parts: _Parts, covariance: Floats) -> float:
    """Return the normal log-density of the judge's part and the observed change, up to a common constant."""
    seen = np.array([parts.judge, parts.observed])
    return -(float(seen @ np.linalg.solve(covariance, seen)) + math.log(float(np.linalg.det(covariance)))) / 2


def _normal_below(value: float) -> float:
    return math.erfc(-value / math.sqrt(2)) / 2


def _part(mean: float, error: float) -> ChangePart:
    return ChangePart(mean, mean - _NORMAL_95 * error, mean + _NORMAL_95 * error)


def _has_changed(anchor: ScoreChanges | None) -> bool:
    return anchor is not None and _count_changed(anchor) > 0


def _count_changed(anchor: ScoreChanges) -> int:
    return int(np.count_nonzero(np.abs(anchor.changes) > _ROUNDING))


def _system(rows: ScoreChanges, anchor: ScoreChanges | None, same: str) -> Attribution:
    mean, count = float(np.mean(rows.changes)), len(rows)
    influence = (rows.changes - mean) / count
    error = math.sqrt(_variance_of_sum(influence, rows.groups) * count / max(1, count - 1))
    reason = f"{same}, so the change is the system's"
    return Attribution(Cause.SYSTEM, reason, {}, _part(mean, error), ChangePart(0.0, 0.0, 0.0), _size(anchor))


def _unknown(reason: str, anchor: ScoreChanges | None) -> Attribution:
    changed = 0 if anchor is None else _count_changed(anchor)
    return Attribution(Cause.UNKNOWN, reason, {}, None, None, _size(anchor), changed)


def _size(anchor: ScoreChanges | None) -> int:
    return 0 if anchor is None else len(anchor)


def _describe_judge(judge_differs: bool | str | None) -> str:
    if isinstance(judge_differs, str):
        return judge_differs
    if judge_differs is None:
        return "whether the judge has the same fingerprint is not known"
    return f"the judge has {'another' if judge_differs else 'the same'} fingerprint"


def _describe_missing_anchor(judge_differs: bool | str | None, anchor: ScoreChanges | None) -> str:
    lacks = "there is no anchor" if anchor is None else "no anchor row has a score in both runs"
    if judge_differs is False:
        return f"the judge has the same fingerprint, but {lacks} to show that its server still answers the same"
    return f"{_describe_judge(judge_differs)}, and {lacks} to separate its part from the system's"


def _describe_parts(parts: _Parts, anchor: ScoreChanges) -> str:
    system, judge = _part(parts.system, parts.system_error), _part(parts.judge, parts.judge_error)
    changed = f"{_count_changed(anchor)} of {len(anchor)} {anchor.name} have another score"
    return (
        f"{changed}. Of the change of {parts.observed:+.3f}, {_describe_part(judge)} is the judge's and "
        f"{_describe_part(system)} the system's"
    )


def _describe_part(part: ChangePart) -> str:
    return f"{part.mean:+.3f} ({part.low:+.3f} to {part.high:+.3f})"
