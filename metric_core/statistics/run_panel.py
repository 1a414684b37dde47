"""Compare the last runs with the accepted baseline, row by row, and compute the e-values of each run.

The runs are not independent: all are compared with the same baseline, whose own noise they share, and a generator may
give the same answers for weeks. So e-values are never multiplied over runs. Each run has its e-values, which hold
whatever the other runs are; see `metric_core.statistics.alarms` for how they are added.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from metric_core.statistics.betting import Bools
from metric_core.statistics.bounded_means import LEAST_UNITS
from metric_core.statistics.resampling import Floats
from metric_core.statistics.slices import RowSlices, Slice, divide_rows

Codes = NDArray[np.int64]

FIRST_RUNS = 7
"""Number of runs whose mean per row is a second baseline: the accepted run and those after it.

A single run has as much noise as all the runs that are compared with it together.
"""
_LARGE_GROUP = 0.05
"""Share of all rows from which a group is tested by itself."""
_SHARE_OF_FIRST = 2 / 3
"""Share of the money that is bet against "not worse than in the first runs", once there are as many."""


@dataclass(frozen=True, slots=True)
class Stream:
    """The subject of an alarm: a metric, over all rows or over a slice of them.

    Args:
        metric: Key of the metric.
        slice: Slice; None for all rows.
    """

    metric: str
    slice: Slice | None = None


@dataclass(frozen=True, slots=True)
class SliceRows:
    """The rows of a panel that belong to a slice.

    Args:
        members: True for each row of the panel that belongs to the slice.
    """

    slice: Slice
    members: Bools


@dataclass(frozen=True, slots=True)
class Part:
    """Rows of a panel that are tested together.

    Args:
        slice: Slice; None for all rows.
        rows: Indices of the rows, with the rows of a group side by side.
        starts: Positions in `rows` at which a group starts; None if rows are independent.
    """

    slice: Slice | None
    rows: Codes
    starts: Codes | None

    def units(self, values: Floats) -> Floats:
        """Return the mean of rows and metrics (NaN: no value) per unit and metric; NaN for a unit without a value.

        A group counts as much as any other, however many rows it has: a bet that is scaled to the largest group stakes
        next to nothing on all others.
        """
        chosen = values if self.slice is None and self.starts is None else values[self.rows]
        if self.starts is None:
            return chosen
        is_missing = np.isnan(chosen)
        sums = np.add.reduceat(np.where(is_missing, 0.0, chosen), self.starts, axis=0)
        counts = np.add.reduceat(1.0 - is_missing, self.starts, axis=0)
        return np.where(counts > 0, sums / np.maximum(counts, 1.0), np.nan)


@dataclass(frozen=True, slots=True)
class FirstRuns:
    """The accepted run and those after it, whose mean per row is a second baseline.

    Args:
        improvements: Mean improvement on the accepted run over all of them, as rows x metrics.
        runs: Number of runs, with the accepted one.
        last: Start of the last of them.
    """

    improvements: Floats
    runs: int
    last: datetime


@dataclass(frozen=True)
class Panel:
    """Improvements of the rows of the baseline, run by run.

    Args:
        metrics: Keys of the metrics, in order.
        ranges: Greatest minus least value of each metric; 1 if its rows have different scales.
        runs: Start of each run, oldest first.
        improvements: Runs x rows x metrics: how much better a row is than in the baseline, as a part of the metric's
            range, from -1 to 1. NaN where a row is not scored in both runs.
        favorable: The greatest improvement that is possible where a score is missing in one run and missing scores are
            not evenly spread, else NaN. It counts in tests, but not in means. None if there is none.
        groups: Number of the group of each row, from 0; None if rows are independent.
        slices: Slices to test. They have to be the same in all runs.
        lower_is_better: Metrics whose lower values are better.
        ratios: Metrics without a greatest value, whose improvements are decimal logarithms of ratios.
        untested: Metric -> reason why it is not tested.
        first_runs: The second baseline, which runs after it are compared with as well; None if there is none.
        shared_noise: Metric -> standard deviation, as a part of its range, of what all rows of a run may share; 0 for
            others.
    """

    metrics: tuple[str, ...]
    ranges: Mapping[str, float]
    runs: tuple[datetime, ...]
    improvements: Floats
    favorable: Floats | None = None
    groups: Codes | None = None
    slices: tuple[SliceRows, ...] = ()
    lower_is_better: frozenset[str] = frozenset()
    ratios: frozenset[str] = frozenset()
    untested: Mapping[str, str] = field(default_factory=dict)
    first_runs: FirstRuns | None = None
    shared_noise: Mapping[str, float] = field(default_factory=dict)

    def recent(self, count: int) -> "Panel":
        """Return the panel of the last runs only."""
        return self.select(range(max(0, len(self.runs) - count), len(self.runs)))

    def select(self, places: Sequence[int]) -> "Panel":
        """Return the panel of the runs with these indices."""
        kept = list(places)
        return replace(
            self,
            runs=tuple(self.runs[place] for place in kept),
            improvements=self.improvements[kept],
            favorable=None if self.favorable is None else self.favorable[kept],
        )

    def with_first_runs(self, last: datetime) -> "Panel":
        """Return the panel with a second baseline: the mean per row of the accepted run and of the runs until one.

        Args:
            last: Start of this run.
        """
        places = [place for place, run in enumerate(self.runs) if run <= last]
        values = self.improvements[places]
        if self.favorable is not None:
            # A row that may have been left out because of its score may have had the worst one.
            values = np.where(np.isnan(values), self.favorable[places] - 1.0, values)
        mean = mean_of(np.concatenate([np.zeros((1, *values.shape[1:])), values]))
        return replace(self, first_runs=FirstRuns(mean, len(places) + 1, last))

    def only(self, streams: Sequence[Stream]) -> "Panel":
        """Return a panel with the metrics and slices of these streams only, in the order of this panel."""
        metrics = tuple(metric for metric in self.metrics if any(stream.metric == metric for stream in streams))
        places = [self.metrics.index(metric) for metric in metrics]
        first = self.first_runs
        return replace(
            self,
            metrics=metrics,
            improvements=self.improvements[..., places],
            favorable=None if self.favorable is None else self.favorable[..., places],
            slices=tuple(part for part in self.slices if any(stream.slice == part.slice for stream in streams)),
            first_runs=None if first is None else replace(first, improvements=first.improvements[..., places]),
        )

    @cached_property
    def streams(self) -> tuple[Stream, ...]:
        """The streams that are tested: all metrics over all rows, then over each slice."""
        return tuple(Stream(metric, part.slice) for part in self.parts for metric in self.metrics)

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """All rows, and the rows of each slice."""
        every = np.ones(self.improvements.shape[1], dtype=bool)
        slices = [self._part(part.slice, part.members) for part in self.slices]
        return (self._part(None, every), *slices)

    def _part(self, part: Slice | None, members: Bools) -> Part:
        rows = np.flatnonzero(members)
        if self.groups is None or (part is not None and len(np.unique(self.groups[rows])) == 1):
            return Part(part, rows, None)
        rows = rows[np.argsort(self.groups[rows], kind="stable")]
        return Part(part, rows, np.flatnonzero(np.diff(self.groups[rows], prepend=-1)))

    def means(self) -> Floats:
        """Return the mean improvement of every run and stream, as runs x streams; NaN without rows.

        It is a mean over rows, or over the means of groups, on the second baseline if there is one for the run.
        """
        runs = np.arange(len(self.runs))
        means = np.full((len(runs), len(self.streams)), np.nan)
        for later, _, before, _ in self.baselines(runs):
            values = wide(self.improvements[later] - before)
            means[later] = self.join([mean_of(part.units(values)) for part in self.parts])
        return means

    def baselines(self, runs: Codes) -> Iterator[tuple[Codes, Floats, Floats | float, int]]:
        """Yield the baselines of runs: the runs, the share of the money on it in each, its improvement, its runs."""
        first = self.first_runs
        has_first = np.array([first is not None and self.runs[run] > first.last for run in runs], dtype=bool)
        yield runs, np.where(has_first, 1 - _SHARE_OF_FIRST, 1.0), 0.0, 1
        if first is not None and has_first.any():
            later = runs[has_first]
            yield later, np.full(len(later), _SHARE_OF_FIRST), first.improvements, first.runs

    def last_step(self) -> dict[str, tuple[float, float]]:
        """Return the mean change of each metric since the run before the last, and its standard error over rows.

        Both are parts of the metric's range. Metrics with too few rows are left out.
        """
        if len(self.runs) == 1:
            return {}
        changes = self.parts[0].units(self.improvements[-1] - self.improvements[-2])
        known = {metric: each[~np.isnan(each)] for metric, each in zip(self.metrics, changes.T, strict=True)}
        return {
            metric: (float(each.mean()), float(each.std(ddof=1) / np.sqrt(len(each))))
            for metric, each in known.items()
            if len(each) >= LEAST_UNITS
        }

    def count_rows(self, run: int, stream: Stream) -> int:
        """Return the number of rows of a stream that are scored both in a run and in the baseline."""
        scores = self.improvements[run, self._part_of(stream).rows, self.metrics.index(stream.metric)]
        return int((~np.isnan(scores)).sum())

    def size_of(self, stream: Stream) -> int:
        """Return the number of rows of a stream in the baseline, scored or not."""
        return len(self._part_of(stream).rows)

    def count_groups(self, stream: Stream) -> int:
        """Return the number of groups of these rows; 0 if rows are independent."""
        starts = self._part_of(stream).starts
        return 0 if starts is None else len(starts)

    def _part_of(self, stream: Stream) -> Part:
        return next(part for part in self.parts if part.slice == stream.slice)

    @cached_property
    def bets(self) -> Floats:
        """The improvements, with the greatest possible ones where scores are missing."""
        if self.favorable is None:
            return self.improvements
        return np.where(np.isnan(self.improvements), self.favorable, self.improvements)

    def join(self, found: Sequence[Floats]) -> Floats:
        """Return values of runs and metrics side by side, of each part, as runs x streams."""
        return np.concatenate([each.reshape(-1, len(self.metrics)) for each in found], axis=1)


def find_slice_rows(slices: RowSlices, rows: Sequence[str]) -> list[SliceRows]:
    """Return the rows of each slice of a column that has at least five of them; fewer rows can raise no alarm.

    Args:
        rows: Rows of the panel, in order.

    >>> languages = {f"row {i}": "de" if i < 5 else "en" if i < 11 else "fr" for i in range(12)}
    >>> found = find_slice_rows(divide_rows("language", languages), [*languages])
    >>> [(str(part.slice), int(part.members.sum())) for part in found]
    [('language en', 6), ('language de', 5)]
    """
    values = np.array([slices.values.get(row) for row in rows], dtype=object)
    parts = [SliceRows(Slice(slices.column, value), values == value) for value in slices.sizes]
    return [part for part in parts if part.members.sum() >= LEAST_UNITS]


def find_large_groups(column: str, groups: Mapping[str, str], rows: Sequence[str]) -> list[SliceRows]:
    """Return the rows of each group that has at least a twentieth of all rows, as a slice.

    A group counts once in a mean over groups, so that even the group of the largest customer hardly changes it.

    Args:
        column: Column by which rows are grouped.
        groups: Row -> group; rows without one are independent.
        rows: Rows of the panel, in order.

    >>> customers = {f"row {i}": "acme" if i < 40 else "bosk" if i < 44 else f"c{i}" for i in range(100)}
    >>> [(str(part.slice), int(part.members.sum())) for part in find_large_groups("customer", customers, [*customers])]
    [('customer acme', 40)]
    """
    counts = Counter(groups[row] for row in rows if row in groups)
    large = {name for name, count in counts.items() if count >= _LARGE_GROUP * len(rows)}
    own = {row: groups[row] for row in rows if groups.get(row) in large}
    return find_slice_rows(divide_rows(column, own), rows)


def number_groups(groups: Sequence[str | None]) -> Codes:
    """Return a number for the group of each row; a row without a group gets a unique number.

    >>> number_groups(["x", None, "x", None]).tolist()
    [0, 1, 0, 2]
    """
    numbers: dict[object, int] = {}
    keys = ((row,) if group is None else group for row, group in enumerate(groups))
    return np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=np.int64)


def wide(values: Floats) -> Floats:
    """Return runs x rows x metrics as rows x (runs and metrics)."""
    return np.moveaxis(values, 0, 1).reshape(values.shape[1], -1)


def mean_of(values: Floats) -> Floats:
    """Return the mean over the first axis of values that are not NaN; NaN where all are."""
    has_value = ~np.isnan(values)
    counts = has_value.sum(axis=0)
    mean: Floats = np.where(counts > 0, np.where(has_value, values, 0.0).sum(axis=0) / np.maximum(counts, 1), np.nan)
    return mean
