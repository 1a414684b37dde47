"""Compute intervals of the figures of a calibration from resamples."""

from collections.abc import Sequence

import numpy as np

from metric_core.statistics.resampling import LEVEL, Floats, Interval

_MOST_CORRELATED = 0.999
"""Correlation that a greater one counts as on Fisher's scale, where 1 is infinite."""
_CORRELATED = 2
"""Number of parameters that a correlation fits."""


def correlation_interval(value: float, drawn: Sequence[Floats], units: float) -> Interval | None:
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
    reach = float(stdtrit(units - _CORRELATED, (1 + LEVEL) / 2)) * float(scaled.std())
    return Interval(min(value, float(np.tanh(middle - reach))), max(value, float(np.tanh(middle + reach))))


def _finite(drawn: Sequence[Floats]) -> Floats | None:
    """Return the values of the resamples that have one; None if too few have."""
    values = np.concatenate(drawn) if drawn else np.empty(0)
    finite: Floats = values[np.isfinite(values)]
    return None if len(finite) < max(2, len(values) / 2) else finite


def quantile_interval(drawn: Sequence[Floats]) -> Interval | None:
    """Return the interval between quantiles of resamples; None if the figure is undefined for too many of them.

    Args:
        drawn: Figures of resamples, in batches.

    >>> found = quantile_interval([np.linspace(0, 40, 41)])
    >>> round(found.low), round(found.high)
    (1, 39)
    """
    finite = _finite(drawn)
    if finite is None:
        return None
    low, high = np.quantile(finite, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Interval(float(low), float(high))
