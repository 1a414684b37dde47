"""Test the last runs of a panel: compute the e-value of each run, and whether noise explains its drop.

A run is tested by itself and with the runs before it, against the accepted baseline and against the first runs.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from metric_core.statistics import betting
from metric_core.statistics.betting import Bools
from metric_core.statistics.resampling import Floats
from metric_core.statistics.run_panel import Codes, Panel, mean_of, wide

WINDOWS = ((1, 1 / 3), (3, 2 / 3))
"""Numbers of runs whose mean per row is tested after each run, with the share of the money that is bet on each.

A single run shows a large drop at once; the mean of three has two thirds of the variance, the rest is the baseline's.
"""
LONGEST_WINDOW = max(runs for runs, _ in WINDOWS)

_CELLS = 100_000
"""Number of scores that are tested together: of some runs, or of one if it has more."""


@dataclass(frozen=True, slots=True)
class _Tested:
    """Means over windows of runs, compared with a baseline.

    Args:
        places: Places of the last run of each window among the runs that are tested.
        starts: Index of the first run of each window; less than 0 if there are fewer runs.
        values: Mean improvements, as windows x rows x metrics.
        money: Share of the money that is bet on each.
        shared: Variance of what all rows share, in units of that of a run.
    """

    places: Codes
    starts: Codes
    values: Floats
    money: Floats
    shared: Floats


def log_e_values(panel: Panel, runs: Sequence[int], drops: Floats | None = None) -> Floats:
    """Return logarithms of e-values against "in these runs, at most the drop was lost", as runs x streams.

    Args:
        runs: Indices of the runs. Each is tested, and the mean per row of the runs that end with it.
        drops: Drop of each stream, as a part of the metric's range; None means no drop.
    """
    chosen = np.zeros(len(panel.streams)) if drops is None else drops
    found = (
        (tested.places, _log_e(panel, tested, chosen, betting.log_e_values))
        for tested in _windows(panel, panel.bets, runs)
    )
    return _add(found, (len(runs), len(panel.streams)))


def log_e_values_above(panel: Panel, runs: Sequence[int], first: Codes, drops: Floats) -> Floats:
    """Return logarithms of e-values against "since a run, at least the drop was lost", as runs x streams.

    Args:
        runs: Indices of the runs to test.
        first: Index of that first run, for each stream. Windows that reach back further are left out.
        drops: Drop of each stream, as a part of the metric's range.
    """
    found = (
        (tested.places, np.where(tested.starts[:, None] >= first, log_e, -np.inf))
        for tested in _windows(panel, panel.improvements, runs)
        for log_e in [_log_e(panel, tested, drops, betting.log_e_values_above)]
    )
    return _add(found, (len(runs), len(panel.streams)))


def exceeds_noise(
    panel: Panel, runs: Sequence[int], deviations: float, drops: Floats | None = None, *, above: bool = False
) -> Bools:
    """Return where the noise of rows and of whole runs does not explain that more than a drop was lost.

    It does not if the mean of a window differs from the drop by so many standard deviations of both.

    Args:
        runs: Indices of the runs.
        drops: Drop of each stream, as a part of the metric's range; None means no drop.
        above: Test whether less than the drop was lost.

    Returns:
        Runs x streams; all true without shared noise.
    """
    noise = np.array([panel.shared_noise.get(stream.metric, 0.0) for stream in panel.streams])
    found = np.tile(noise == 0, (len(runs), 1))
    sign = 1.0 if above else -1.0
    for tested in _windows(panel, panel.improvements, runs) if noise.any() else ():
        units = [part.units(wide(tested.values)) for part in panel.parts]
        means, errors = (panel.join([of(each) for each in units]) for of in (mean_of, _error_of))
        limits = deviations * np.hypot(errors, noise * np.sqrt(tested.shared)[:, None])
        found[tested.places] |= sign * (means + (0.0 if drops is None else drops)) >= limits
    return found


def _log_e(panel: Panel, tested: _Tested, drops: Floats, test: Callable[[Floats, Floats], Floats]) -> Floats:
    """Return the logarithm of the e-value of each window and stream, times its share of the money."""
    scores, pairs = wide(tested.values), zip(panel.parts, np.split(drops, len(panel.parts)), strict=True)
    found = panel.join([test(part.units(scores), np.tile(drop, len(tested.places))) for part, drop in pairs])
    return found + np.log(tested.money)[:, None]


def _add(found: Iterable[tuple[Codes, Floats]], shape: tuple[int, int]) -> Floats:
    """Return the logarithm of the sum over all windows and baselines of each run."""
    total = np.full(shape, -np.inf)
    for places, log_e in found:
        total[places] = np.logaddexp(total[places], log_e)
    return total


def _windows(panel: Panel, values: Floats, runs: Sequence[int]) -> Iterator[_Tested]:
    """Yield the windows that end with each run, on each baseline, few enough together for the caches of a processor."""
    most = max(1, _CELLS // max(1, values[0].size))
    for begin in range(0, len(runs), most):
        some = np.asarray(runs[begin : begin + most])
        for length, share in WINDOWS:
            for chosen, money, before, number in panel.baselines(some):
                yield _Tested(
                    begin + np.searchsorted(some, chosen),
                    chosen - length + 1,
                    np.clip(_means_until(values, chosen, length) - before, -1.0, 1.0),
                    share * money,
                    1 / np.minimum(length, chosen + 1) + 1 / number,
                )


def _means_until(values: Floats, runs: Codes, length: int) -> Floats:
    """Return the mean of every row and metric over the runs that end with each of some runs."""
    if length == 1:
        return values[runs]
    places = runs - np.arange(length)[:, None]
    window = values[np.maximum(places, 0)]
    window[places < 0] = np.nan
    return mean_of(window)


def _error_of(values: Floats) -> Floats:
    """Return the standard error of the mean over the first axis of values, NaN for none, as far as it is noise.

    Noise is as often above 0 as below; what has become worse is not noise, so the values above 0 count twice.
    """
    counts = (~np.isnan(values)).sum(axis=0)
    error: Floats = np.sqrt(2 * np.square(np.fmax(values, 0.0)).sum(axis=0)) / np.maximum(counts, 1)
    return error
