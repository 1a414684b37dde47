"""Find out what an outcome hangs on: a few rows, the rows of one topic or document, or one draw of the judge.

An outcome is robust if it stays the same without a few rows, without the rows of any one part, and if the judge is
asked again. The rows that are left out are those that count most for it. Whether it stays is decided by the procedure
that decided it, so that a comparison or a gate contradicts none of its own words. Only what could turn an outcome is
decided again: the strength of a difference says what cannot.

Source of the first question: Broderick, Giordano and Meager, "An Automatic Finite-Sample Robustness Metric: When Can
Dropping a Little Data Make a Big Difference?" (2020), who also take 1 % of the rows for a few.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from metric_core.statistics.comparison import Difference
from metric_core.statistics.judge_variance import JudgeVariance
from metric_core.statistics.resampling import LEVEL, Floats

_SHARE, _LEAST = 0.01, 3
"""Share of rows that counts as a few, and their least number."""
_MOST_PARTS = 3
"""Number of parts that are left out for a decision: those that move the mean most."""
_SLACK = 0.85
"""Strength, relative to that of the other outcome, from which on a decision is made."""
_LEAST_P = 1e-300

OutcomeWithout = Callable[[Collection[str]], str]
"""Function that returns the outcome without rows with these names."""


@dataclass(frozen=True, slots=True)
class Part:
    """Rows that have a topic, document or group in common.

    Args:
        name: Name in words, such as "topic travel".
    """

    name: str
    rows: frozenset[str]


@dataclass(frozen=True, slots=True)
class SecondOpinion:
    """The outcome with the verdicts of a second judge on a part of the rows.

    Args:
        judge: Name of that judge.
        rows: Number of rows with its verdicts.
        lost: Number of rows that it was asked about and has given no score.
        is_other: True if the outcome is another.
    """

    judge: str
    rows: int
    lost: int
    is_other: bool

    @property
    def words(self) -> str:
        """The judge and the number of rows, for a sentence.

        >>> SecondOpinion("qwen", 28, 1, is_other=False).words
        'with the verdicts of qwen on 28 rows (1 more has none)'
        """
        more = f" ({self.lost:,} more {'has' if self.lost == 1 else 'have'} none)" if self.lost else ""
        return f"with the verdicts of {self.judge} on {self.rows:,} row{'s' * (self.rows != 1)}{more}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Robustness:
    """Rows, parts and judge that an outcome hangs on.

    Args:
        outcome: The outcome in words.
        few: Number of rows that were left out.
        rows: The fewest of these rows without which the outcome is another; empty if it stays.
        parts: Names of the parts without each of which it is another, the most important one first.
        has_parts: True if there are parts.
        by_judge: True if it may be another if the judge is asked again; None if that is not known.
        second: Outcome with the verdicts of a second judge; None without any that count for it.
    """

    outcome: str
    few: int
    rows: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()
    has_parts: bool = False
    by_judge: bool | None = None
    second: SecondOpinion | None = None

    @property
    def is_robust(self) -> bool:
        """Whether it hangs on nothing that is known."""
        return not (self.rows or self.parts or self.by_judge or self._is_contradicted)

    @property
    def _is_contradicted(self) -> bool:
        return self.second is not None and self.second.is_other

    @property
    def sentence(self) -> str:
        """The same in words.

        >>> Robustness(outcome="worse", few=3, has_parts=True, by_judge=False).sentence
        'robust: the same without any one topic or document, without any 3 rows, and if the judge is asked again'
        >>> Robustness(outcome="worse", few=3, rows=("q7", "q9"), parts=("topic travel",), has_parts=True).sentence
        'hangs on 2 rows (q7, q9) and on topic travel: without one of these the outcome is another'
        >>> Robustness(outcome="worse", few=3, by_judge=True).sentence
        'hangs on the judge: asked again, it may give another outcome'
        >>> second = SecondOpinion("qwen", 28, 0, is_other=True)
        >>> Robustness(outcome="worse", few=3, second=second).sentence
        'hangs on the judge: with the verdicts of qwen on 28 rows the outcome is another'
        """
        return self._robust_sentence if self.is_robust else self._fragile_sentence

    @property
    def _robust_sentence(self) -> str:
        kept = ["without any one topic or document"] if self.has_parts else []
        kept.append(f"without any {self.few:,} rows")
        judged = [] if self.by_judge is None else ["if the judge is asked again"]
        judged += [] if self.second is None else [self.second.words]
        end = "; the judge was not asked again" if self.by_judge is None else ""
        if judged:
            return f"robust: the same {', '.join([*kept, *judged[:-1]])}, and {judged[-1]}{end}"
        return f"robust: the same {' and '.join(kept)}{end}"

    @property
    def _fragile_sentence(self) -> str:
        found, without = [], "it"
        if self.rows:
            names = ", ".join(self.rows[:_LEAST])
            more = f" and {len(self.rows) - _LEAST:,} more" if len(self.rows) > _LEAST else ""
            found.append(f"on {len(self.rows):,} row{'s' * (len(self.rows) != 1)} ({names}{more})")
            without = "it" if len(self.rows) == 1 else "them"
        if self.parts:
            others = f" or {len(self.parts) - 1} more" if len(self.parts) > 1 else ""
            found.append(f"on {self.parts[0]}{others}")
            without = "one of these" if self.rows or others else "it"
        reasons = [f"without {without} the outcome is another"] if found else []
        if self.by_judge:
            reasons.append("asked again, it may give another outcome")
        if self.second is not None:
            reasons.append(f"{self.second.words} the outcome is {'another' if self.second.is_other else 'the same'}")
        if self.by_judge or self._is_contradicted:
            found.append("on the judge")
        return f"hangs {' and '.join(found)}: {'; '.join(reasons)}"


def few_rows(rows: int) -> int:
    """Return how many of some rows are a few: 1 %, at least three.

    >>> few_rows(40), few_rows(300), few_rows(1_000)
    (3, 3, 10)
    """
    return max(_LEAST, round(_SHARE * rows))


def fewest_rows(order: Sequence[str], outcome: str, without: OutcomeWithout, first: int = 1) -> tuple[str, ...]:
    """Return the fewest rows of the beginning of an order without which an outcome is another; none if it stays.

    Args:
        order: A few rows, those that count most first.
        first: Number of rows that is tried first.

    >>> fewest_rows("abcd", "worse", lambda rows: "worse" if len(rows) < 3 else "unclear")
    ('a', 'b', 'c')
    """
    if not order or without(order) == outcome:
        return ()
    low, high, tried, step = 0, len(order), first, 1
    while high - low > 1:
        if not low < tried < high:  # the fewest are not near those that were tried first
            tried = (low + high) // 2
        if without(order[:tried]) != outcome:
            high, tried = tried, tried - step
        else:
            low, tried = tried, tried + step
        step *= 2
    return tuple(order[:high])


def turning_parts(parts: Iterable[tuple[float, Part]], outcome: str, without: OutcomeWithout) -> tuple[str, ...]:
    """Return the names of the parts without each of which an outcome is another.

    Args:
        parts: Parts that may turn it, each with how much it does so.
    """
    likely = sorted(parts, key=lambda each: -each[0])[:_MOST_PARTS]
    return tuple(part.name for _, part in likely if without(part.rows) != outcome)


@dataclass(frozen=True, slots=True)
class Strength:
    """Strength of a difference: from 1 on its outcome is an increase, up to -1 a decrease, else unclear.

    An approximation that holds exactly for the difference itself, so that it can be computed for many others: of the
    mean and the mean square of the differences of rows.

    Args:
        observed: Strength of the difference itself.
        of_test: Strength of the test, per mean over root mean square and square root of the number of rows.
        of_interval: Distance from the mean to the end of its interval towards 0, per standard deviation over the square
            root of the number of rows.
    """

    observed: float
    of_test: float
    of_interval: float

    @classmethod
    def from_difference(cls, values: Floats, difference: Difference) -> "Strength | None":
        """Return the strength of a difference; None if it is not tested, or if no row changed.

        Args:
            values: Differences of the rows.
        """
        test, interval, adjusted = difference.test, difference.interval, difference.p_adjusted
        square, root = float((values**2).mean()), np.sqrt(len(values))
        if test is None or interval is None or adjusted is None or not square:
            return None
        from scipy.special import ndtri  # noqa: PLC0415 scipy loads slowly

        mean, p = float(values.mean()), max(test.p, _LEAST_P)
        times = max(adjusted, _LEAST_P) / p  # Holm's correction
        needed = -float(ndtri((1 - LEVEL) / 2 / max(times, 1.0)))
        raw = abs(mean) / np.sqrt(square) * root
        tested = -float(ndtri(p / 2)) if p < 1 else 0.0
        scale = float(np.clip(tested / raw, 0.05, 1.5)) if raw else 1.0
        spread = float(np.sqrt(max(square - mean**2, 0.0))) / root
        width = mean - interval.low if mean > 0 else interval.high - mean
        found = cls(0.0, scale / needed, width / spread if spread else 0.0)
        one = np.ones(1)
        return replace(found, observed=float(found.compute(mean * one, square * one, len(values) * one)[0]))

    def compute(self, mean: Floats, square: Floats, count: Floats) -> Floats:
        """Return the strength of other differences.

        Args:
            mean: Mean of the differences, for each.
            square: Mean of their squares.
            count: Number of rows.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            tested = np.abs(mean) / np.sqrt(square) * np.sqrt(count) * self.of_test
            ends = self.of_interval * np.sqrt(np.maximum(square - mean**2, 0.0) / count)
            within = np.where(ends > 0, np.abs(mean) / ends, np.inf)
        strengths: Floats = np.sign(mean) * np.nan_to_num(np.minimum(tested, within), nan=0.0, posinf=np.inf)
        return strengths


@dataclass(frozen=True, slots=True)
class JudgeNoise:
    """Noise of the judges of two runs.

    Args:
        variances: Variance of the judge's scores in each run, as far as it is known.
        changed: Number of rows with another text: for the others both runs have the same answers of the judge.
    """

    variances: tuple[JudgeVariance, ...]
    changed: int

    def span(self, rows: int) -> float:
        """Return by how much it may have moved the mean of so many rows."""
        if not self.changed:
            return 0.0
        as_many = round(rows**2 / self.changed)  # so many rows would have as much noise
        return float(np.sqrt(sum(each.span(as_many) ** 2 for each in self.variances)))


@dataclass(frozen=True, slots=True, kw_only=True)
class DecidedDifference:
    """A difference whose outcome is known.

    Args:
        rows: Names of the rows.
        values: Differences of the rows.
        without: Function that decides without some of the rows.
    """

    rows: Sequence[str]
    values: Floats
    difference: Difference
    outcome: str
    without: OutcomeWithout

    def may_turn(self) -> bool:
        """Return whether the outcome may be another if some changes of rows are none, such as all decreases."""
        strength = Strength.from_difference(self.values, self.difference)
        if strength is None or abs(strength.observed) >= 1:
            return strength is not None
        ways = [np.maximum(self.values, 0.0), np.minimum(self.values, 0.0)]
        means, squares = (np.array([float((way**power).mean()) for way in ways]) for power in (1, 2))
        return bool((np.abs(strength.compute(means, squares, np.full(2, float(len(self.values))))) >= _SLACK).any())

    def find_robustness(self, parts: Sequence[Part], noise: JudgeNoise | None = None) -> Robustness | None:
        """Return what the outcome hangs on; None if the difference was not tested.

        Args:
            parts: Rows by topic, document or group.
            noise: Noise of the judge; None if it is not known.
        """
        strength = Strength.from_difference(self.values, self.difference)
        if strength is None:
            return None
        places = {row: place for place, row in enumerate(self.rows)}
        found = [(part, np.array([places[row] for row in part.rows if row in places], dtype=int)) for part in parts]
        kept = [(part, out) for part, out in found if 1 < len(out) <= len(self.rows) / 2]
        sums, squares = (
            np.array([values[out].sum() for _, out in kept], dtype=np.float64)
            for values in (self.values, self.values**2)
        )
        turns = self._turns(strength, sums, squares, np.array([float(len(out)) for _, out in kept]))
        likely = [(float(turn), part) for turn, (part, _) in zip(turns, kept, strict=True) if turn]
        few = min(few_rows(len(self.rows)), len(self.rows) - 1)
        return Robustness(
            outcome=self.outcome,
            few=few,
            rows=self._turning_rows(strength, few),
            parts=turning_parts(likely, self.outcome, self.without),
            has_parts=bool(kept),
            by_judge=None if noise is None else self._turns_by(strength, noise.span(len(self.rows))),
        )

    def _turning_rows(self, strength: Strength, few: int) -> tuple[str, ...]:
        """Return the fewest rows without which the outcome is another; none if it stays."""
        is_clear = abs(strength.observed) >= 1
        sign = 1.0 if strength.observed >= 0 else -1.0
        found: tuple[str, ...] = ()
        for way in (-sign,) if is_clear else (sign, -sign):
            order = np.argsort(way * self.values, kind="stable")[:few]
            taken = self.values[order]
            turns = self._turns(strength, taken.cumsum(), (taken**2).cumsum(), np.arange(1.0, few + 1))
            if turns.any():
                first = int(np.flatnonzero(turns)[0]) + 1
                turned = fewest_rows([self.rows[place] for place in order], self.outcome, self.without, first)
                found = min((each for each in (found, turned) if each), key=len, default=())
        return found

    def _turns(self, strength: Strength, sums: Floats, squares: Floats, left_out: Floats) -> Floats:
        """Return how much differences without some rows may turn the outcome; 0 for those that cannot.

        Args:
            sums: Sum of the values that are left out, for each difference.
            squares: Sum of their squares.
            left_out: Number of them.
        """
        kept = len(self.values) - left_out
        rest = np.maximum(float((self.values**2).sum()) - squares, 0.0)
        after = strength.compute((float(self.values.sum()) - sums) / kept, rest / kept, kept)
        if abs(strength.observed) < 1:
            return np.where(np.abs(after) >= _SLACK, np.abs(after), 0.0)
        towards = after if strength.observed > 0 else -after
        return np.where(towards <= 1 / _SLACK, 2 - towards, 0.0)

    def _turns_by(self, strength: Strength, span: float) -> bool:
        """Return whether a shift of the mean by so much, up or down, gives another outcome."""
        mean, square = float(self.values.mean()), float((self.values**2).mean())
        count = np.full(2, float(len(self.values)))
        after = strength.compute(np.array([mean - span, mean + span]), np.full(2, square), count)
        if abs(strength.observed) < 1:
            return bool((np.abs(after) >= 1).any())
        return bool((after * np.sign(strength.observed) < 1).any())


def noise_of(metric: str, runs: Sequence[Mapping[str, JudgeVariance]], changed: int) -> JudgeNoise | None:
    """Return the noise of the judges of two runs about a metric; None if it is not known of either."""
    variances = [run[metric] for run in runs if metric in run]
    if not variances:
        return None
    return JudgeNoise(tuple(variances if len(variances) == len(runs) else variances * len(runs)), changed)
