"""Alarms about scores that became worse, which may be looked at every night.

Every night and every metric is another chance of a false alarm. Here the probability of any false alarm in a calendar
year is bounded, over all its nights, all metrics and all slices together, however the nights depend on each other.

Each night and stream (a metric, over all rows or a slice) has an e-value, of which the expected value is at most 1
unless the rows became worse than in the baseline (`metric_core.statistics.betting`). The e-values of a stream are added
over the nights with weights whose sum over a year is at most 1, so the sum has an expected value of at most 1, too, and
reaches 1 / error with a probability of at most `error` (Markov): at the last night of the year, and since the sum only
grows, at any night before. Streams have shares of the error, and are tested as a closed family, so the bound also holds
for the streams that did not change when others did. Nights may be left out of the sum for any reason, which makes it
smaller: those before the last twelve, and those before a drop was over.

This is a bet per night against a fixed baseline, not a bet that goes on from night to night: the money of such a test
martingale (Ville 1939) multiplies the noise of the baseline, which all nights share, as if it were new every night.

Sources: Vovk and Wang, "E-values: Calibration, combination and applications" (Annals of Statistics, 2021), for sums of
dependent e-values and closed testing; Waudby-Smith and Ramdas, "Estimating means of bounded random variables by
betting" (Journal of the Royal Statistical Society B, 2024), for e-values and, by inversion, the confidence sequence.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from metric_core.errors import ConfigError
from metric_core.statistics.betting import average_over_all_sets, largest_drop, smallest_drop
from metric_core.statistics.resampling import Floats, Interval
from metric_core.statistics.run_panel import LONGEST_WINDOW, Panel, Stream

ERROR = 0.05
"""Share of calendar years with any false alarm, at most."""
NIGHTS_OF_YEAR = 366
"""Number of runs per year for which most of the error is reserved."""
NIGHTS_ADDED = 12
"""Number of nights whose e-values are added, the last ones."""
NIGHTS_READ = NIGHTS_ADDED + LONGEST_WINDOW - 1
"""Number of nights that a panel should have, if there are as many since the baseline."""
NIGHTS_REGAINED = 2
"""Number of nights in a row that have to regain more than half of a drop for an alarm to be over."""

SHARE_OF_FURTHER = 0.05
"""Share of the error for further drops of metrics that have an alarm; see `metric_core.statistics.further_drops`."""

_SHARE_OF_YEAR, _SHARE_OF_LATER = 0.9, 0.05
"""Shares of the error for the first `NIGHTS_OF_YEAR` runs of a year, and for any number of runs after them."""
_SHARE_OF_ALL_ROWS = 0.8
"""Share of the error for metrics over all rows, if there are slices."""
_LARGEST_LOG = 600.0
"""Largest logarithm of an e-value; larger ones could overflow, and make no difference."""


@dataclass(frozen=True, slots=True)
class AlarmSettings:
    """Settings of alarms.

    Args:
        error: Share of calendar years with any false alarm, at most; greater than 0 and less than 1.
        nights: Number of runs per year that most of the error is reserved for, at least 1. More runs do not break the
            bound, but then each takes a larger e-value.

    Raises:
        ConfigError: A value is out of range.
    """

    error: float = ERROR
    nights: int = NIGHTS_OF_YEAR

    def __post_init__(self) -> None:
        if not 0 < self.error < 1:
            raise ConfigError(f"the error of alarms must be greater than 0 and less than 1, got {self.error}")
        if self.nights < 1:
            raise ConfigError(f"alarms need at least 1 night per year, got {self.nights}")

    def weights(self, numbers: Sequence[int]) -> Floats:
        """Return the weights of the runs with these numbers in their year; over any year they sum to at most 0.95.

        Args:
            numbers: Number of each run in its calendar year, from 1; 0 or less for a run of an earlier year, whose
                weight is 0.

        >>> AlarmSettings(nights=9).weights([0, 1, 9, 10, 11]).round(4).tolist()
        [0.0, 0.1, 0.1, 0.005, 0.0041]
        """
        number = np.asarray(numbers, dtype=np.float64)
        later = _SHARE_OF_LATER * self.nights / np.maximum(number * (number - 1), 1)
        weights: Floats = np.where(number <= self.nights, _SHARE_OF_YEAR / self.nights, later)
        return np.where(number >= 1, weights, 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Alarm:
    """A metric that is worse than in the baseline.

    Args:
        since: Start of the first run that is worse, as far as the last nights show it.
        told: Start of the run that raised the alarm.
        drop: Difference of the mean since then to the baseline; positive, whichever direction is better.
        interval: Limits of the drop. The alarm was raised because the lower limit is above 0. All lower limits of a
            year hold together, except in as many years as may have a false alarm; the upper limits likewise, if the
            drop has been the same since `since`.
        rows: Number of rows that the last night has in common with the baseline.
        nights: Number of nights since `since` among those that were looked at.
        lower_is_better: True if a lower value of the metric is better.
        is_new: True if the last night raised the alarm.
        baseline_rows: Number of rows that the baseline has; 0 if that is not known.
        is_regained: True if the last night has regained more than half of the drop: another such night ends the alarm.
        further: Number of alarms about the same metric and slice that stand and that it goes beyond; 0 for a drop from
            the baseline.
        base: Drop from the baseline when the alarm before it was raised; 0 for a drop from the baseline.
    """

    stream: Stream
    since: datetime
    told: datetime
    drop: float
    interval: Interval
    rows: int
    nights: int
    lower_is_better: bool = False
    is_new: bool = True
    baseline_rows: int = 0
    is_regained: bool = False
    further: int = 0
    base: float = 0.0


def update_alarms(
    panel: Panel, number: int, settings: AlarmSettings | None = None, previous: Sequence[Alarm] = ()
) -> list[Alarm]:
    """Return the alarms that stand after the last night of a panel, new ones and those of earlier nights.

    An alarm stands until two nights in a row have regained more than half of its drop.

    Args:
        panel: The last `NIGHTS_READ` nights since the accepted baseline, or as many as there are.
        number: Number of the last night's run among the runs of its calendar year, from 1.
        settings: Settings; None means the defaults.
        previous: Alarms that stood after the night before, about the same baseline; those about something that is not
            watched any more, and about further drops, are left out.

    Raises:
        ConfigError: The panel has no night, or the number is less than 1.

    >>> night = {"faithfulness": {f"row {i}": -1.0 if i < 40 else 0.0 for i in range(200)}}
    >>> [alarm] = update_alarms(Panel.from_rows({datetime(2025, 11, 18): night}), number=317)
    >>> alarm.stream.metric, alarm.drop, f"{alarm.since:%d %B}", alarm.is_new
    ('faithfulness', 0.2, '18 November', True)
    >>> round(alarm.interval.low, 3), round(alarm.interval.high, 3)
    (0.096, 0.354)
    """
    if not panel.nights:
        raise ConfigError("there is no night to watch: a panel needs at least one run since the baseline")
    if number < 1:
        raise ConfigError(f"the runs of a year are numbered from 1, got {number}")
    if not panel.metrics:
        return []
    settings = settings or AlarmSettings()
    shares = dict(zip(panel.streams, shares_of(panel.streams), strict=True))
    evidence = PanelEvidence(panel.recent(NIGHTS_READ), number, settings, settings.error, shares)
    standing = {alarm.stream: alarm for alarm in previous if alarm.stream in shares and not alarm.further}
    raised = evidence.find_raised()
    found = [
        stream
        for stream in panel.streams
        if (not evidence.is_over(standing[stream]) if stream in standing else stream in raised)
    ]
    return evidence.describe(found, standing) if found else []


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


def find_raised(
    log_e_values: Floats, means: Floats, weights: Floats, shares: Floats, error: float
) -> NDArray[np.bool_]:
    """Return which streams have an alarm.

    Args:
        log_e_values: Logarithms of e-values, as nights x streams.
        means: Mean improvements, as nights x streams; NaN without rows.
        weights: Weights of the nights.
        shares: Share of the error of each stream.
        error: Share of years with any false alarm, at most.
    """
    e_values = add_e_values(log_e_values, weights[:, None] * ~_before_recovery(means))
    if e_values.max(initial=0.0) < 1 / error:  # An average is no larger than what it is of.
        return np.zeros(len(shares), dtype=bool)
    return average_over_all_sets(e_values, shares) >= 1 / error


def add_e_values(log_e_values: Floats, weights: Floats) -> Floats:
    """Return the weighted sum of e-values over nights, per stream.

    Args:
        log_e_values: Logarithms of e-values, as nights x streams.
        weights: Weights, as nights x streams.
    """
    total: Floats = (weights * np.exp(np.minimum(log_e_values, _LARGEST_LOG))).sum(axis=0)
    return total


def _before_recovery(means: Floats) -> NDArray[np.bool_]:
    """Return which nights are not later than the last two in a row that regained more than half of the largest drop."""
    levels = np.where(np.isnan(means), 0.0, means)
    longest = min(len(levels), LONGEST_WINDOW)
    worst = np.lib.stride_tricks.sliding_window_view(levels, longest, axis=0).mean(axis=-1).min(axis=0)
    has_regained = levels > worst / 2
    pairs = np.zeros_like(has_regained)
    pairs[1:] = has_regained[1:] & has_regained[:-1]
    later_pairs: NDArray[np.bool_] = np.logical_or.accumulate(pairs[::-1], axis=0)[::-1]
    return later_pairs


def find_step(means: Floats) -> int:
    """Return the index of the first night after the step that explains nightly means best; the baseline has mean 0.

    The step is the one that leaves the least squared deviation from the mean before and the mean after it, the baseline
    being one of the nights before it.

    Args:
        means: Mean improvement of each night, oldest first; NaN for a night without rows.

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
    """Evidence about the last nights of a panel.

    Args:
        number: Number of the last night's run among the runs of its calendar year, from 1.
        settings: Weights of the nights.
        error: Share of years with any false alarm, at most.
        shares: Share of this error of each stream.
    """

    def __init__(
        self, panel: Panel, number: int, settings: AlarmSettings, error: float, shares: Mapping[Stream, float]
    ) -> None:
        self._panel = panel
        self._error = error
        # Nights before these are there for the means of three nights.
        self._first = max(0, len(panel.nights) - NIGHTS_ADDED)
        self._last = len(panel.nights) - 1
        self._nights = range(self._first, len(panel.nights))
        self._weights = settings.weights([number - self._last + night for night in self._nights])
        self._shares = shares
        self._means = dict(zip(panel.streams, panel.means().T, strict=True))

    def find_raised(self) -> set[Stream]:
        """Return the streams that have an alarm, all of them tested together."""
        streams = self._panel.streams
        raised = find_raised(
            np.stack([self._panel.log_e_values(night) for night in self._nights]),
            self._counted_means(streams),
            self._weights,
            np.array([self._shares[stream] for stream in streams]),
            self._error,
        )
        return {stream for stream, is_raised in zip(streams, raised, strict=True) if is_raised}

    def after_last(self) -> Floats:
        """Return the evidence of each stream after the last night, all of them tested together."""
        streams = self._panel.streams
        log_e_values = np.stack([self._panel.log_e_values(night) for night in self._nights])
        weights = self._weights[:, None] * ~_before_recovery(self._counted_means(streams))
        shares = np.array([self._shares[stream] for stream in streams])
        return average_over_all_sets(add_e_values(log_e_values, weights), shares)

    def is_raised(self, stream: Stream) -> bool:
        """Return whether a stream has an alarm, tested by itself at its share of the error."""
        place = self._panel.streams.index(stream)
        found = np.stack([self._panel.log_e_values(night) for night in self._nights])[:, [place]]
        error = self._error * self._shares[stream]
        return bool(find_raised(found, self._counted_means([stream]), self._weights, np.ones(1), error)[0])

    def _counted_means(self, streams: Sequence[Stream]) -> Floats:
        return np.stack([self._means[stream][self._first :] for stream in streams], axis=1)

    def is_over(self, alarm: Alarm) -> bool:
        """Return whether the last nights have regained more than half of an alarm's drop."""
        means = self._means[alarm.stream]
        last = means[~np.isnan(means)][-NIGHTS_REGAINED:]
        return len(last) == NIGHTS_REGAINED and self._has_regained(alarm, last)

    def _has_regained(self, alarm: Alarm, means: Floats) -> bool:
        drops = -means * self._panel.ranges[alarm.stream.metric] - alarm.base
        return bool((drops < alarm.drop / 2).all())

    def carry_over(self, alarm: Alarm) -> Alarm:
        """Return an alarm of an earlier night as it stands after the last one."""
        is_regained = self._has_regained(alarm, self._means[alarm.stream][-1:])
        return replace(alarm, is_new=False, is_regained=is_regained)

    def describe(self, found: Sequence[Stream], standing: Mapping[Stream, Alarm]) -> list[Alarm]:
        """Return the alarms about streams, with their days and sizes.

        Args:
            standing: Alarms of earlier nights.
        """
        # Limits take many tests: only of the metrics and slices that need them.
        panel = self._panel.only(found)
        shares = np.array([self._shares[stream] for stream in panel.streams])
        before = _before_recovery(self._counted_means(panel.streams))
        firsts = np.array(
            [
                self._since(standing[stream])
                if stream in standing
                else self._step(stream, self._first + int(before[:, place].sum()))
                for place, stream in enumerate(panel.streams)
            ]
        )

        threshold = 1 / (self._error * shares)

        def is_more(drops: Floats) -> NDArray[np.bool_]:
            found = np.stack([panel.log_e_values(night, drops) for night in self._nights])
            return np.greater_equal(add_e_values(found, self._weights[:, None] * ~before), threshold)

        def is_less(drops: Floats) -> NDArray[np.bool_]:
            found = np.stack([panel.log_e_values_above(night, firsts, drops) for night in self._nights])
            return np.greater_equal(add_e_values(found, self._weights[:, None]), threshold)

        low, high = largest_drop(is_more, len(shares)), smallest_drop(is_less, len(shares))
        limits = {
            stream: (int(first), Interval(float(least), float(most)))
            for stream, first, least, most in zip(panel.streams, firsts, low, high, strict=True)
        }
        return [self._alarm(stream, *limits[stream], standing.get(stream)) for stream in found]

    def _since(self, alarm: Alarm) -> int:
        return next((night for night, start in enumerate(self._panel.nights) if start >= alarm.since), self._last)

    def _step(self, stream: Stream, first: int) -> int:
        """Return the index of the first night that is worse, among those since an index."""
        first = min(first, self._last)
        return first + find_step(self._means[stream][first:])

    def _alarm(self, stream: Stream, first: int, limits: Interval, earlier: Alarm | None) -> Alarm:
        panel = self._panel
        size = panel.ranges[stream.metric]
        means = self._means[stream][first:]
        alarm = Alarm(
            stream=stream,
            since=panel.nights[first],
            told=panel.nights[-1],
            drop=0.0 if np.isnan(means).all() else -float(np.nanmean(means)) * size,
            interval=Interval(limits.low * size, limits.high * size),
            rows=panel.count_rows(self._last, stream),
            baseline_rows=panel.size_of(stream),
            nights=len(panel.nights) - first,
            lower_is_better=stream.metric in panel.lower_is_better,
        )
        if earlier is None:
            return alarm
        continued = replace(self.carry_over(earlier), rows=alarm.rows, baseline_rows=alarm.baseline_rows)
        if limits.low > 0:
            return replace(continued, drop=alarm.drop, interval=alarm.interval, nights=alarm.nights)
        return replace(continued, nights=alarm.nights)
