"""Split the variance of a metric's mean into the parts of the rows, the system's answers, the judge and the run.

A score is modelled as question + answer + judge + run. The first three differ between rows; the last is a shift that
all rows judged in a run share. Rows that were judged twice show the judge's part: without a shift, half the mean
squared difference of their two scores is its variance. Rows that were judged again in several runs show the shift, too:
the mean differences of the runs vary more than the differences of their rows explain. A shift that is not significant
counts as none, because its estimate would be mostly noise. The answers' part is the variance within the questions that
have several rows, less the judge's (one-way analysis of variance with unequal groups).

Source: Searle, Casella and McCulloch, "Variance Components" (1992), sections 3.6 and 5.3 (Henderson's method 1).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from metric_core.statistics.bounded_means import LEAST_UNITS, Bounds, estimate_interval
from metric_core.statistics.resampling import SEED, Floats, Interval, Units

MODEST_SHARE = 0.2
"""Share of the judge up to which any number of votes would narrow an interval by at most 11 %."""
_VOTES = 3
_LEAST_RUNS, _ERROR = 3, 0.01
"""Number of runs and error of the test that finds a shift."""
_NOISE_SPAN = 2.3
"""Standard deviations of the judge's noise by which it counts as moving a mean: two judgments of the same answers lie
that far on both sides of a bar in less than one of 200 cases, also if the noise is estimated from twenty rows."""


@dataclass(frozen=True, slots=True)
class JudgeVariance:
    """Variance of the scores that a judge gives to the same answers.

    Args:
        rows: Number of rows that were judged again.
        judge: Variance of a score within a run.
        interval: 95 % interval of this variance; None if the metric has no bounds.
        run: Variance of the shift that the scores of a run share; 0 if none was found.
        noise: The variance within a run with half a row at its bound added, for decisions: it is not 0.
    """

    rows: int
    judge: float
    interval: Interval | None
    run: float
    noise: float

    def span(self, rows: int, repeated: int = 0) -> float:
        """Return by how much the judge alone may have moved the mean of so many rows.

        Args:
            repeated: Number of these rows whose score is the mean of two judgments.

        >>> variance = JudgeVariance(60, 0.02, None, 0.0, 0.02)
        >>> round(variance.span(200), 3), round(variance.span(200, repeated=200), 3)
        (0.023, 0.016)
        """
        single = 1 - repeated / (2 * rows)
        return _NOISE_SPAN * float(np.sqrt(self.noise * single / rows + self.run))


@dataclass(frozen=True, slots=True)
class VarianceShares:
    """Shares of the variance of a mean, in total 1.

    Args:
        answers: Share of the system's answers to the same question; None if too few questions have several.
        judge_interval: 95 % interval of the judge's share; None if it is not known.
    """

    rows: float
    answers: float | None
    judge: float
    run: float
    judge_interval: Interval | None

    def advise(self) -> str:
        """Return whether more rows or more votes would make the mean more certain.

        >>> VarianceShares(0.97, None, 0.03, 0.0, Interval(0.01, 0.09)).advise()
        'more rows help, more votes do not'
        >>> VarianceShares(0.5, None, 0.5, 0.0, Interval(0.4, 0.7)).advise()
        'three votes a row would narrow the interval by 18 %, three times the rows by 42 %'
        """
        found = self.judge_interval or Interval(self.judge, self.judge)
        if found.high <= MODEST_SHARE:
            return "more rows help, more votes do not"
        if found.low <= MODEST_SHARE:
            return "too few rows were judged again to tell whether more votes would help"
        by_votes = 1 - np.sqrt(1 - self.judge * (1 - 1 / _VOTES))
        by_rows = 1 - np.sqrt(self.run + (1 - self.run) / _VOTES)
        return (
            f"three votes a row would narrow the interval by {100 * by_votes:.0f} %, three times the rows by "
            f"{100 * by_rows:.0f} %"
        )


def estimate_judge_variance(
    runs: Sequence[Mapping[str, Sequence[float]]], bounds: Bounds | None
) -> JudgeVariance | None:
    """Estimate how much the scores of the same answers vary; None for fewer than five rows.

    Args:
        runs: Row -> its first score and its new score, for each run that judged rows again.
        bounds: Bounds of the scores; None if there are none.

    >>> again = {f"row {i}": [1.0, 0.0 if i < 3 else 1.0] for i in range(60)}
    >>> found = estimate_judge_variance([again], Bounds(0.0, 1.0))
    >>> found.rows, found.judge, round(found.interval.low, 3), round(found.interval.high, 3)
    (60, 0.025, 0.007, 0.064)
    """
    names = [row for scores in runs for row in scores]
    if len(set(names)) < LEAST_UNITS:
        return None
    changes = [np.array([after - before for before, after in scores.values()]) for scores in runs if scores]
    degrees = len(names)
    if len(changes) > 1:
        degrees -= len(changes)
        shift = _find_shift([each for each in changes if len(each) > 1])
        changes = [each - each.mean() for each in changes]
    else:
        shift = 0.0
    halves = np.concatenate(changes) ** 2 / 2
    judge = float(halves.sum() / max(degrees, 1))
    units = Units.from_values(halves, names)
    if bounds is None:
        return JudgeVariance(len(units), judge, None, shift, judge)
    most = (bounds.high - bounds.low) ** 2 / 2
    interval = estimate_interval(units, Bounds(0.0, most), SEED, "judge")
    return JudgeVariance(len(units), judge, interval, shift, (judge * len(units) + most / 2) / (len(units) + 1))


def _find_shift(changes: Sequence[Floats]) -> float:
    """Return the variance of the shifts of runs; 0 for fewer than three runs, or if it is not significant.

    The first scores are the same in all runs, so that the mean differences vary by less than those of the rows tell.

    Args:
        changes: Differences of the rows of each run.
    """
    from scipy.special import chdtri  # noqa: PLC0415 scipy loads slowly

    means = np.array([each.mean() for each in changes])
    within = np.array([each.var(ddof=1) / len(each) for each in changes])
    if len(means) < _LEAST_RUNS or not within.all():
        return 0.0
    freedom = len(means) - 1
    center = float(np.average(means, weights=1 / within))
    is_found = float(((means - center) ** 2 / within).sum()) > chdtri(freedom, _ERROR)
    return max(float(means.var(ddof=1) - within.mean()), 0.0) if is_found else 0.0


def split_variance(
    scores: Floats, judge: JudgeVariance, questions: Sequence[str] | None = None
) -> VarianceShares | None:
    """Return the shares of the variance of a mean; None if it has none, or if there are no scores.

    Args:
        scores: Scores of all rows of a run.
        questions: Question of each row; None if it is not known.

    >>> judge = JudgeVariance(60, 0.025, Interval(0.007, 0.063), 0.0, 0.03)
    >>> found = split_variance(np.repeat([1.0, 0.0], [150, 50]), judge)
    >>> round(found.rows, 2), round(found.judge, 2), round(found.judge_interval.high, 2)
    (0.87, 0.13, 0.33)
    """
    rows = len(scores)
    if not rows:
        return None
    found = None if questions is None else _split_by_question(scores, questions)
    if found is None:
        total = float(scores.var(ddof=1)) / rows if rows > 1 else 0.0
        of_judge = min(judge.judge / rows, total)
        of_rows, of_answers = total - of_judge, 0.0
    else:
        of_rows, within = found
        of_judge = min(judge.judge / rows, within)
        of_answers = within - of_judge
    whole = of_rows + of_answers + of_judge + judge.run
    if whole <= 0:
        return None
    interval = None
    if judge.interval is not None:
        # The rows are usually many more than those that were judged again: their variance counts as known.
        low, high = (min(end / rows / whole, 1.0) for end in (judge.interval.low, judge.interval.high))
        interval = Interval(low, high)
    answers = None if found is None else of_answers / whole
    return VarianceShares(of_rows / whole, answers, of_judge / whole, judge.run / whole, interval)


def _split_by_question(scores: Floats, questions: Sequence[str]) -> tuple[float, float] | None:
    """Return the parts of the variance of a mean that are due to the questions, and to the rows of a question.

    None for fewer than five questions with several rows.
    """
    _, place = np.unique(np.asarray(questions, dtype=object).astype(str), return_inverse=True)
    counts, rows = np.bincount(place).astype(np.float64), len(scores)
    if (counts > 1).sum() < LEAST_UNITS:
        return None
    means = np.bincount(place, weights=scores) / counts
    within = float(((scores - means[place]) ** 2).sum()) / (rows - len(counts))
    between = float((counts * (means - scores.mean()) ** 2).sum()) / (len(counts) - 1)
    size = (rows - (counts**2).sum() / rows) / (len(counts) - 1)
    return max((between - within) / size, 0.0) * float((counts**2).sum()) / rows**2, within / rows
