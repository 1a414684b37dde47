"""Raise alarms about scores that became worse, with an error rate that holds for all runs of a year together.

`docs/design/alarms.md` says what is computed and why it holds: e-values of runs and streams
(`metric_core.statistics.betting`), added over runs with weights, and tested as a closed family (Vovk and Wang,
"E-values: Calibration, combination and applications", 2021). Runs may be left out of the sum for any reason: it is then
smaller.

This is a bet per run against a fixed baseline, not a bet that continues from run to run: the money of such a test
martingale (Ville 1939) multiplies the noise of the baseline, which all runs share, as if it were new in every run.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from metric_core.errors import ConfigError
from metric_core.statistics.betting import average_over_all_sets, largest_drop, smallest_drop
from metric_core.statistics.resampling import Floats, Interval
from metric_core.statistics.run_evidence import LONGEST_WINDOW, exceeds_noise, log_e_values, log_e_values_above
from metric_core.statistics.run_panel import Panel, Stream
from metric_core.statistics.shared_noise import limit_deviations

ERROR = 0.05
"""Share of calendar years with any false alarm, at most."""
RUNS_OF_YEAR = 366
"""Number of runs per year for which most of the error is reserved."""
RUNS_ADDED = 12
"""Number of runs whose e-values are added, the last ones."""
RUNS_READ = RUNS_ADDED + LONGEST_WINDOW - 1
"""Number of runs that a panel should have, if there are as many since the baseline."""
RUNS_REGAINED = 2
"""Number of runs in a row that have to regain more than half of a drop for an alarm to be over."""

_SHARE_OF_YEAR, _SHARE_OF_LATER = 0.9, 0.05
"""Shares of the error for the first `RUNS_OF_YEAR` runs of a year, and for any number of runs after them."""
_SHARE_OF_ALL_ROWS = 0.8
"""Share of the error for metrics over all rows, if there are slices."""
_LARGEST_LOG = 600.0
"""Largest logarithm of an e-value; larger ones could overflow, and make no difference."""


@dataclass(frozen=True, slots=True)
class AlarmSettings:
    """Settings of alarms.

    Args:
        error: Share of calendar years with any false alarm, at most; greater than 0 and less than 1.
        runs: Number of runs per year that most of the error is reserved for, at least 1. More runs do not break the
            bound, but then each takes a larger e-value.

    Raises:
        ConfigError: A value is out of range.
    """

    error: float = ERROR
    runs: int = RUNS_OF_YEAR

    def __post_init__(self) -> None:
        if not 0 < self.error < 1:
            raise ConfigError(f"the error of alarms must be greater than 0 and less than 1, got {self.error}")
        if self.runs < 1:
            raise ConfigError(f"alarms need at least 1 run per year, got {self.runs}")

    def weights(self, numbers: Sequence[int]) -> Floats:
        """Return the weights of the runs with these numbers in their year; over any year they sum to at most 0.95.

        Args:
            numbers: Number of each run in its calendar year, from 1; 0 or less for a run of an earlier year, whose
                weight is 0.

        >>> AlarmSettings(runs=9).weights([0, 1, 9, 10, 11]).round(4).tolist()
        [0.0, 0.1, 0.1, 0.005, 0.0041]
        """
        number = np.asarray(numbers, dtype=np.float64)
        later = _SHARE_OF_LATER * self.runs / np.maximum(number * (number - 1), 1)
        weights: Floats = np.where(number <= self.runs, _SHARE_OF_YEAR / self.runs, later)
        return np.where(number >= 1, weights, 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Alarm:
    """A metric that is worse than in the baseline.

    Args:
        since: Start of the first run that is worse, as far as the last runs show it.
        raised: Start of the run that raised the alarm.
        drop: Difference of the mean since then to the baseline; positive, whichever direction is better. With groups,
            a mean over the means of groups; the limits are about it, too.
        interval: Limits of the drop. The alarm was raised because the lower limit is above 0. All lower limits of a
            year hold together, except in as many years as may have a false alarm; the upper limits likewise, if the
            drop has been the same since `since`.
        rows: Number of rows that the last run has in common with the baseline.
        runs: Number of runs since `since`, among those that were read.
        lower_is_better: True if a lower value of the metric is better.
        is_ratio: True if the drop and its limits are decimal logarithms of a ratio to the baseline.
        is_new: True if the last run raised the alarm.
        baseline_rows: Number of rows that the baseline has; 0 if that is not known.
        is_regained: True if the last run has regained more than half of the drop: another such run ends the alarm.
        groups: Number of groups, each counted once; 0 if rows are independent.
    """

    stream: Stream
    since: datetime
    raised: datetime
    drop: float
    interval: Interval
    rows: int
    runs: int
    lower_is_better: bool = False
    is_ratio: bool = False
    is_new: bool = True
    baseline_rows: int = 0
    is_regained: bool = False
    groups: int = 0


def update_alarms(
    panel: Panel, number: int, settings: AlarmSettings | None = None, previous: Sequence[Alarm] = ()
) -> list[Alarm]:
    """Return the alarms that are open after the last run of a panel, new ones and those of earlier runs.

    An alarm is open until two runs in a row have regained more than half of its drop.

    Args:
        panel: The last `RUNS_READ` runs since the accepted baseline, or as many as there are.
        number: Number of the last run among the runs of its calendar year, from 1.
        settings: Settings; None means the defaults.
        previous: Alarms that were open after the previous run, about the same baseline; those about a stream that the
            panel lacks are left out.

    Raises:
        ConfigError: The panel has no run, or the number is less than 1.

    >>> improvements = np.where(np.arange(200) < 40, -1.0, 0.0).reshape(1, 200, 1)
    >>> panel = Panel(("faithfulness",), {"faithfulness": 1.0}, (datetime(2025, 11, 18),), improvements)
    >>> [alarm] = update_alarms(panel, number=317)
    >>> alarm.stream.metric, alarm.drop, f"{alarm.since:%d %B}", alarm.is_new
    ('faithfulness', 0.2, '18 November', True)
    >>> round(alarm.interval.low, 3), round(alarm.interval.high, 3)
    (0.097, 0.355)
    """
    if not panel.runs:
        raise ConfigError("there is no run to test: a panel needs at least one run since the baseline")
    if number < 1:
        raise ConfigError(f"the runs of a year are numbered from 1, got {number}")
    if not panel.metrics:
        return []
    settings = settings or AlarmSettings()
    shares = dict(zip(panel.streams, shares_of(panel.streams), strict=True))
    evidence = PanelEvidence(panel.recent(RUNS_READ), number, settings, settings.error, shares)
    earlier_alarms = {alarm.stream: alarm for alarm in previous if alarm.stream in shares}
    raised = evidence.find_raised()
    found = [
        stream
        for stream in panel.streams
        if (not evidence.is_over(earlier_alarms[stream]) if stream in earlier_alarms else stream in raised)
    ]
    return evidence.describe(found, earlier_alarms) if found else []


def shares_of(streams: Sequence[Stream]) -> Floats:
    """Return the share of the error of each stream, in total 1: four fifths for all rows, the rest for slices.

    >>> from metric_core.statistics.slices import Slice
    >>> slices = [Slice("language", "de"), Slice("language", "en")]
    >>> shares_of([Stream("a"), *(Stream("a", part) for part in slices)]).round(3).tolist()
    [0.8, 0.1, 0.1]
    """
    is_slice = np.array([stream.slice is not None for stream in streams])
    of_slices = 1 - _SHARE_OF_ALL_ROWS if is_slice.any() else 0.0
    shares: Floats = np.where(is_slice, of_slices / max(is_slice.sum(), 1), (1 - of_slices) / (~is_slice).sum())
    return shares


def sum_evidence(log_e: Floats, beyond: NDArray[np.bool_], means: Floats, weights: Floats) -> Floats:
    """Return the evidence of each stream: the weighted sum of its e-values, 0 if noise explains all runs that count.

    Args:
        log_e: Logarithms of e-values, as runs x streams.
        beyond: True for drops that exceed the noise that all rows share, as runs x streams.
        means: Mean improvements, as runs x streams; NaN without rows.
        weights: Weights of the runs.
    """
    counted = ~_before_recovery(means)
    evidence = add_e_values(log_e, weights[:, None] * counted)
    return np.where((beyond & counted).any(axis=0), evidence, 0.0)


def find_raised(evidence: Floats, shares: Floats, error: float) -> NDArray[np.bool_]:
    """Return which streams have an alarm.

    Args:
        evidence: Evidence of each stream.
        shares: Share of the error of each stream.
        error: Share of years with any false alarm, at most.
    """
    if evidence.max(initial=0.0) < 1 / error:  # An average is at most its largest value.
        return np.zeros(len(shares), dtype=bool)
    return average_over_all_sets(evidence, shares) >= 1 / error


def add_e_values(log_e_values: Floats, weights: Floats) -> Floats:
    """Return the weighted sum of e-values over runs, per stream.

    Args:
        log_e_values: Logarithms of e-values, as runs x streams.
        weights: Weights, as runs x streams.
    """
    total: Floats = (weights * np.exp(np.minimum(log_e_values, _LARGEST_LOG))).sum(axis=0)
    return total


def _before_recovery(means: Floats) -> NDArray[np.bool_]:
    """Return which runs are not later than the last two in a row that regained more than half of the largest drop."""
    levels = np.where(np.isnan(means), 0.0, means)
    longest = min(len(levels), LONGEST_WINDOW)
    worst = np.lib.stride_tricks.sliding_window_view(levels, longest, axis=0).mean(axis=-1).min(axis=0)
    has_regained = levels > worst / 2
    pairs = np.zeros_like(has_regained)
    pairs[1:] = has_regained[1:] & has_regained[:-1]
    later_pairs: NDArray[np.bool_] = np.logical_or.accumulate(pairs[::-1], axis=0)[::-1]
    return later_pairs


def find_step(means: Floats) -> int:
    """Return the index of the first run after the step that explains the means of runs best; the baseline has mean 0.

    The step is the one that leaves the least squared deviation from the mean before and the mean after it, the baseline
    being one of the runs before it.

    Args:
        means: Mean improvement of each run, oldest first; NaN for a run without rows.

    >>> find_step(np.array([0.01, -0.01, -0.06, -0.05])), find_step(np.array([-0.05, -0.05]))
    (2, 0)
    """
    has_value = np.flatnonzero(~np.isnan(means))
    if not len(has_value):
        return len(means) - 1
    levels = np.concatenate([[0.0], means[has_value]])
    total, count = levels.sum(), len(levels)
    before = np.arange(1, count)
    sums = levels.cumsum()[:-1]
    fall = sums / before - (total - sums) / (count - before)
    explained = np.where(fall > 0, before * (count - before) * fall**2, -1.0)
    return int(has_value[int(np.argmax(explained))])


class PanelEvidence:
    """Evidence about the last runs of a panel.

    Args:
        number: Number of the last run among the runs of its calendar year, from 1.
        settings: Weights of the runs.
        error: Share of years with any false alarm, at most.
        shares: Share of this error of each stream.
    """

    def __init__(
        self, panel: Panel, number: int, settings: AlarmSettings, error: float, shares: Mapping[Stream, float]
    ) -> None:
        self._panel = panel
        self._error = error
        # Earlier runs serve the means of three runs.
        self._first = max(0, len(panel.runs) - RUNS_ADDED)
        self._last = len(panel.runs) - 1
        self._runs = range(self._first, len(panel.runs))
        self._deviations = limit_deviations(settings.error, settings.runs)
        self._weights = settings.weights([number - self._last + run for run in self._runs])
        self._shares, self._shares_of_streams = shares, np.array([shares[stream] for stream in panel.streams])
        self._means = dict(zip(panel.streams, panel.means().T, strict=True))

    def find_raised(self) -> set[Stream]:
        """Return the streams that have an alarm, all of them tested together."""
        raised = find_raised(self._evidence(), self._shares_of_streams, self._error)
        return {stream for stream, is_raised in zip(self._panel.streams, raised, strict=True) if is_raised}

    def after_last(self) -> Floats:
        """Return the evidence of each stream after the last run, all of them tested together."""
        return average_over_all_sets(self._evidence(), self._shares_of_streams)

    def _evidence(self) -> Floats:
        panel = self._panel
        found, beyond = log_e_values(panel, self._runs), exceeds_noise(panel, self._runs, self._deviations)
        return sum_evidence(found, beyond, self._counted_means(panel.streams), self._weights)

    def _counted_means(self, streams: Sequence[Stream]) -> Floats:
        return np.stack([self._means[stream][self._first :] for stream in streams], axis=1)

    def is_over(self, alarm: Alarm) -> bool:
        """Return whether the last runs have regained more than half of an alarm's drop."""
        means = self._means[alarm.stream]
        last = means[~np.isnan(means)][-RUNS_REGAINED:]
        return len(last) == RUNS_REGAINED and self._has_regained(alarm, last)

    def _has_regained(self, alarm: Alarm, means: Floats) -> bool:
        drops = -means * self._panel.ranges[alarm.stream.metric]
        return bool((drops < alarm.drop / 2).all())

    def carry_over(self, alarm: Alarm) -> Alarm:
        """Return an alarm of an earlier run as it is after the last one."""
        is_regained = self._has_regained(alarm, self._means[alarm.stream][-1:])
        return replace(alarm, is_new=False, is_regained=is_regained)

    def describe(self, found: Sequence[Stream], earlier_alarms: Mapping[Stream, Alarm]) -> list[Alarm]:
        """Return the alarms about streams, with their days and sizes.

        Args:
            earlier_alarms: Alarms of earlier runs.
        """
        # Limits take many tests: only of the metrics and slices that need them.
        panel = self._panel.only(found)
        shares = np.array([self._shares[stream] for stream in panel.streams])
        counted_means = self._counted_means(panel.streams)
        before = _before_recovery(counted_means)
        firsts = np.array(
            [
                self._since(earlier_alarms[stream])
                if stream in earlier_alarms
                else self._step(stream, self._first + int(before[:, place].sum()))
                for place, stream in enumerate(panel.streams)
            ]
        )
        threshold = 1 / (self._error * shares)

        def is_more(drops: Floats) -> NDArray[np.bool_]:
            found, beyond = (
                log_e_values(panel, self._runs, drops),
                exceeds_noise(panel, self._runs, self._deviations, drops),
            )
            return sum_evidence(found, beyond, counted_means, self._weights) >= threshold

        def is_less(drops: Floats) -> NDArray[np.bool_]:
            found = add_e_values(log_e_values_above(panel, self._runs, firsts, drops), self._weights[:, None])
            beyond = exceeds_noise(panel, self._runs, self._deviations, drops, above=True) & (
                np.array(self._runs)[:, None] >= firsts
            )
            return np.greater_equal(np.where(beyond.any(axis=0), found, 0.0), threshold)

        low, high = largest_drop(is_more, len(shares)), smallest_drop(is_less, len(shares))
        limits = {
            stream: (int(first), Interval(float(least), float(most)))
            for stream, first, least, most in zip(panel.streams, firsts, low, high, strict=True)
        }
        return [self._alarm(stream, *limits[stream], earlier_alarms.get(stream)) for stream in found]

    def _since(self, alarm: Alarm) -> int:
        return next((run for run, start in enumerate(self._panel.runs) if start >= alarm.since), self._last)

    def _step(self, stream: Stream, first: int) -> int:
        """Return the index of the first run that is worse, among those since an index."""
        first = min(first, self._last)
        return first + find_step(self._means[stream][first:])

    def _alarm(self, stream: Stream, first: int, limits: Interval, earlier: Alarm | None) -> Alarm:
        panel = self._panel
        size = panel.ranges[stream.metric]
        means = self._means[stream][first:]
        alarm = Alarm(
            stream=stream,
            since=panel.runs[first],
            raised=panel.runs[-1],
            drop=0.0 if np.isnan(means).all() else -float(np.nanmean(means)) * size,
            interval=Interval(min(limits.low, limits.high) * size, limits.high * size),
            rows=panel.count_rows(self._last, stream),
            baseline_rows=panel.size_of(stream),
            groups=panel.count_groups(stream),
            runs=len(panel.runs) - first,
            lower_is_better=stream.metric in panel.lower_is_better,
            is_ratio=stream.metric in panel.ratios,
        )
        if earlier is None:
            return alarm
        continued = replace(
            self.carry_over(earlier), rows=alarm.rows, baseline_rows=alarm.baseline_rows, groups=alarm.groups
        )
        if 0 < limits.low <= limits.high and not continued.is_regained:
            return replace(continued, drop=alarm.drop, interval=alarm.interval, runs=alarm.runs)
        return replace(continued, runs=alarm.runs)
