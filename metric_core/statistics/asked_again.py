"""Detect from repeated questions whether a judge gives different answers under the same name.

Anchor rows, whose answers are kept, are asked about again: all of them in the first runs, then a few in turn in
each run. The distance of a row, from 0 to 1, is how much its new answers differ from the kept ones. A judge that has
not changed need not repeat its answers exactly, so a distance is compared with the earlier distances of the same row.

While the judge is the same, the distances of a row are exchangeable: given all of them, each run's has the same
expected value, their mean. Someone who does not believe it stakes a part of the money on the last runs' distance x
being above that mean m, row by row: this multiplies the money by 1 + s (x - m) / max(m, 1/n) for n distances. No such
bet gains on average, however much and however differently the rows fluctuate, so the money after all rows is an
e-value. A row that had n - 1 distances of 0 and now has 1 multiplies it by almost n; one that stays at 0 costs nothing.
E-values of runs are added with weights as in `metric_core.statistics.alarms`, however the runs depend on
each other; their sum reaches 1 / error in at most that share of the years.
"""

from collections.abc import Sequence
from functools import lru_cache
from math import ceil, comb, log

import numpy as np

from metric_core.statistics.alarms import RUNS_ADDED, AlarmSettings, add_e_values
from metric_core.statistics.resampling import SEED, Floats

RUNS_TESTED = 7
"""Number of runs whose distances are tested together, and within which a change of the expected size is reported."""
FULL_RUNS = 3
"""Number of first runs in which all rows are asked about again, to learn how the judge fluctuates."""
MOST_EARLIER = 8
"""Number of earlier distances of a row that count, the first ones: later ones would hide a slow drift."""
POWER = 0.8
"""Probability with which a change of the expected size is reported within `RUNS_TESTED` runs of a large anchor."""
EXPECTED_NOISE = 0.01
"""Share of the verdicts of an unchanged judge that are expected to differ by chance."""

_STAKES = np.array([0.3, 0.6, 0.9])
_DRAWS = 4_000
_SHARE_REGAINED = 0.25


def log_e_value(
    distances: Sequence[float], counts: Sequence[int], earlier: Sequence[float], runs: Sequence[int]
) -> float:
    """Return the logarithm of the e-value against "the judge answers as before".

    Args:
        distances: Mean distance of each row in the last runs, from 0 to 1.
        counts: Number of distances behind each mean, at least 1.
        earlier: Mean earlier distance of each row.
        runs: Number of earlier distances of each row, at least 1.

    >>> same = log_e_value([0.0] * 30, [1] * 30, [0.0] * 30, [3] * 30)
    >>> other = log_e_value([1.0] * 9 + [0.0] * 21, [1] * 30, [0.0] * 30, [3] * 30)
    >>> same, round(other, 2)
    (0.0, 10.76)
    """
    found, before = np.asarray(distances, dtype=np.float64), np.asarray(earlier, dtype=np.float64)
    total = np.asarray(counts, dtype=np.float64) + np.asarray(runs, dtype=np.float64)
    mean = (found * counts + before * runs) / total
    gains = (found - mean) / np.maximum(mean, 1 / total)
    logs = np.log1p(np.multiply.outer(_STAKES, gains)).sum(axis=-1)
    return round(float(np.logaddexp.reduce(logs) - log(len(_STAKES))), 6) + 0.0


def is_changed(
    log_e_values: Sequence[float], number: int, judges: int = 1, settings: AlarmSettings | None = None
) -> bool:
    """Return whether the last runs show that a judge answers differently.

    Args:
        log_e_values: Logarithms of the e-values of the runs, oldest first; the last `RUNS_ADDED` count.
        number: Number of the last run among the runs of its calendar year, from 1.
        judges: Number of judges that are tested, which share the error.
        settings: Settings of the alarms; None means the defaults.
    """
    chosen = settings or AlarmSettings()
    recent = np.array(log_e_values[-RUNS_ADDED:], dtype=np.float64)
    weights = chosen.weights([number - place for place in reversed(range(len(recent)))])
    return bool(add_e_values(recent[:, None], weights[:, None])[0] >= judges / chosen.error)


def has_returned(excess: float, drift: float) -> bool:
    """Return whether a judge that had changed answers as before again.

    Args:
        excess: Mean distance of the last `RUNS_TESTED` runs beyond what is usual.
        drift: Share of changed verdicts that should be detected.
    """
    return excess < _SHARE_REGAINED * drift


@lru_cache(maxsize=64)
def count_rows(drift: float, rows: int, runs_of_year: int = AlarmSettings().runs) -> tuple[int, float]:
    """Return the number of rows to ask about again in each run, and the probability that the drift is reported.

    The rows of `RUNS_TESTED` runs together detect the drift with a probability of `POWER`, by simulation with one
    verdict a row, `EXPECTED_NOISE` and the `FULL_RUNS` earlier distances that each row has at first. A smaller
    anchor is asked about completely in `RUNS_TESTED` runs, and the probability is lower.

    Args:
        drift: Share of changed verdicts that should be detected, greater than 0.
        rows: Number of rows of the anchor, at least 1.
        runs_of_year: Number of runs per year.

    >>> [count_rows(drift, rows=500)[0] for drift in (0.05, 0.1, 0.2)]
    [61, 23, 9]
    """
    settings = AlarmSettings(runs=runs_of_year)
    threshold = -log(settings.error * float(settings.weights([1])[0]))

    def power(count: int) -> float:
        return _share_detected(drift, count, threshold)

    if (reached := power(rows)) < POWER:
        return ceil(rows / RUNS_TESTED), reached
    low, high = 0, rows
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if power(middle) >= POWER else (middle, high)
    each = ceil(high / RUNS_TESTED)
    return each, power(min(each * RUNS_TESTED, rows))


def _share_detected(drift: float, rows: int, threshold: float) -> float:
    """Return the share of drawn weeks after a change whose e-value reaches a threshold."""
    earlier = np.arange(FULL_RUNS + 1)
    noise = EXPECTED_NOISE
    usual = np.array([comb(FULL_RUNS, k) * noise**k * (1 - noise) ** (FULL_RUNS - k) for k in range(len(earlier))])
    now = min(drift + noise, 1.0)
    shares = np.concatenate([usual * (1 - now), usual * now])
    found = np.repeat([0.0, 1.0], len(earlier))
    mean = (found + np.tile(earlier, 2)) / (FULL_RUNS + 1)
    gains = (found - mean) / np.maximum(mean, 1 / (FULL_RUNS + 1))
    drawn = np.random.default_rng(SEED).multinomial(rows, shares, size=_DRAWS)
    logs: Floats = drawn @ np.log1p(np.multiply.outer(_STAKES, gains)).T
    return float((np.logaddexp.reduce(logs, axis=1) - log(len(_STAKES)) >= threshold).mean())
