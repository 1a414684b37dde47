"""Compute intervals of the figures of a calibration from resamples."""

from collections.abc import Sequence

import numpy as np

from metric_core.statistics.resampling import LEVEL, Floats, Interval, Units

TOO_FEW = "too few rows or groups, or too similar ones"
"""Words for a figure without an interval."""

_MOST_CORRELATED = 0.999
"""Correlation that a greater one counts as on Fisher's scale, where 1 is infinite."""
_CORRELATED = 2
"""Number of parameters that a correlation fits."""


def correlation_interval(value: float, drawn: Sequence[Floats], units: float, level: float = LEVEL) -> Interval | None:
    """Return the interval of a correlation: Fisher's scale, the deviation of resamples, Student's quantiles.

    Args:
        drawn: Correlations of resamples, in batches.
        units: Number of rows, or effective number of groups of rows.

    >>> found = correlation_interval(0.5, [np.tanh(np.arctanh(0.5) + np.array([-0.2, 0.2]))], 62)
    >>> round(found.low, 2), round(found.high, 2)
    (0.15, 0.74)
    """
    finite = _finite(drawn)
    if finite is None or units <= _CORRELATED:
        return None
    from scipy.special import stdtrit  # noqa: PLC0415 scipy loads slowly

    middle, scaled = (np.arctanh(np.clip(of, -_MOST_CORRELATED, _MOST_CORRELATED)) for of in (value, finite))
    reach = float(stdtrit(units - _CORRELATED, (1 + level) / 2)) * float(scaled.std())
    return Interval(min(value, float(np.tanh(middle - reach))), max(value, float(np.tanh(middle + reach))))


def error_interval(value: float, drawn: Sequence[Floats], level: float = LEVEL) -> Interval | None:
    """Return the interval of an error that cannot be below 0: from 0 to its upper limit.

    Args:
        drawn: Distances of resamples from the data, in batches, see `calibration_deviation`.

    >>> error_interval(0.5, [np.linspace(0, 0.2, 41)])
    Interval(low=0.0, high=0.69)
    """
    finite = _finite(drawn)
    return None if finite is None else Interval(0.0, round(min(1.0, value + float(np.quantile(finite, level))), 12))


def _finite(drawn: Sequence[Floats]) -> Floats | None:
    """Return the values of the resamples that have one; None if too few have."""
    values = np.concatenate(drawn) if drawn else np.empty(0)
    finite: Floats = values[np.isfinite(values)]
    return None if len(finite) < max(2, len(values) / 2) else finite


def quantile_interval(drawn: Sequence[Floats], units: Units, level: float = LEVEL) -> Interval | None:
    """Return the interval between quantiles of resamples; None if the figure is undefined for too many of them.

    Args:
        drawn: Figures of resamples, in batches.
        units: Rows or groups of rows; groups of different sizes widen the interval.

    >>> found = quantile_interval([np.linspace(0, 40, 41)], Units(np.ones(10), np.ones(10)))
    >>> round(found.low), round(found.high)
    (1, 39)
    """
    finite = _finite(drawn)
    if finite is None:
        return None
    low, high = np.quantile(finite, [units.widen_tail(tail) for tail in ((1 - level) / 2, (1 + level) / 2)])
    return Interval(float(low), float(high))
