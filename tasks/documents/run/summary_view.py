"""Describe the metrics of a run for the report's summary table: numbers as text, drawings as coordinates."""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from markupsafe import Markup

from metric_core.records import Direction, Status
from metric_core.statistics.resampling import Interval
from metric_core.statistics.summary import Distribution, MetricSummary
from tasks.documents.figures import describe_bounds, format_fixed, format_number
from tasks.documents.run.score_table import BINS, NEUTRAL, MetricScale
from tasks.documents.run.summary_rows import distribution_notes
from tasks.record.run_record import MetricRecord

DIRECTIONS = {
    Direction.HIGHER: "higher is better",
    Direction.LOWER: "lower is better",
    Direction.NEITHER: "neither high nor low is better",
}

DRAWING_WIDTH, DRAWING_HEIGHT = 280, 61
"""Size of the drawings, in the units of their coordinates."""

AXIS = 46
"""Vertical position of the axis: the bars of a distribution are above it, the mean and its interval below."""

MOST_WORST = 3
"""Number of metrics that open the report."""

_MARGIN = 6
_STATUSES = tuple(map(str, Status))
_JOINT = re.compile(r"(?<=[_,=/.])|(?=\()")


def metric_view(
    metric: MetricRecord,
    summary: MetricSummary,
    histogram: Sequence[int],
    parts: Sequence[Markup] = (),
    before: float | None = None,
) -> dict[str, Any]:
    """Return a metric for the page.

    Args:
        histogram: Number of values in each of BINS equal parts of their range (see `value_range`).
        parts: Further parts below the mean.
        before: Mean in the baseline; None without one.
    """
    metric_scale = MetricScale.of_metric(metric)
    distribution = summary.distribution
    return {
        "key": metric.key,
        "key_parts": split_key(metric.key),
        "summary": metric.summary,
        "direction": metric_scale.direction,
        "direction_text": DIRECTIONS[metric_scale.direction],
        "parameters": [(name, _format_value(value)) for name, value in metric.parameters.items() if value is not None],
        "language_model": metric.language_model,
        "bounds": None if metric_scale.bounds is None else describe_bounds(metric_scale.bounds),
        "counts": _counts(summary),
        "shares": _shares(_counts(summary)),
        "reasons": sorted(summary.reasons.items(), key=lambda item: -item[1]),
        "measured": None if distribution is None else _values(distribution, metric_scale, histogram),
        "change": None if before is None or distribution is None else f"{distribution.mean - before:+.3f}",
        "scales": [{"scale": scale, **_numbers(distribution)} for scale, distribution in summary.scales.items()],
        "categories": _categories(summary.categories),
        "parts": parts,
    }


def worst_metrics(scales: Sequence[MetricScale], summaries: Sequence[MetricSummary]) -> list[int]:
    """Return the places of the metrics with the worst means on their scales, the worst first.

    Args:
        scales: Scales of the metrics; those without a range or a direction have no worst value.
        summaries: Their summaries.

    >>> from metric_core.records import Score
    >>> from metric_core.statistics.summary import summarize
    >>> scales = [MetricScale(key, Direction.HIGHER, (0, 1)) for key in "ab"]
    >>> worst_metrics(scales, [summarize("", Direction.HIGHER, [Score.scored(mean)]) for mean in (0.5, 0.25)])
    [1, 0]
    """
    found = []
    for i, (scale, summary) in enumerate(zip(scales, summaries, strict=True)):
        if summary.distribution is not None:
            goodness = float(scale.goodness(np.array([summary.distribution.mean]))[0])
            found += [] if math.isnan(goodness) else [(goodness, i)]
    return [i for _, i in sorted(found)[:MOST_WORST]]


def split_key(key: str) -> list[str]:
    """Return the parts of a metric's key, between which a line may break.

    >>> split_key("factual_correctness(mode=recall)")
    ['factual_', 'correctness', '(mode=', 'recall)']
    """
    return _JOINT.split(key)


def _format_value(value: Any) -> str:
    if isinstance(value, Mapping):
        return "; ".join(f"{name}: {part}" for name, part in value.items())
    return ", ".join(map(str, value)) if isinstance(value, Sequence) and not isinstance(value, str) else str(value)


def _numbers(distribution: Distribution) -> dict[str, Any]:
    interval, deviation = distribution.interval, distribution.deviation
    return {
        "count": distribution.count,
        "mean": format_fixed(distribution.mean),
        "interval": None if interval is None else (format_fixed(interval.low), format_fixed(interval.high)),
        "notes": distribution_notes(distribution),
        "spread": [
            ("median", format_number(distribution.median)),
            ("least", format_number(distribution.least)),
            ("greatest", format_number(distribution.greatest)),
            *([] if deviation is None else [("standard deviation", format_number(deviation))]),
        ],
    }


def _values(distribution: Distribution, metric_scale: MetricScale, histogram: Sequence[int]) -> dict[str, Any]:
    low, high = value_range(distribution, metric_scale)
    interval = distribution.interval or Interval(distribution.mean, distribution.mean)
    return {
        **_numbers(distribution),
        "tone": metric_scale.tone(distribution.mean) if metric_scale.direction is not Direction.NEITHER else NEUTRAL,
        "low": format_number(low),
        "high": format_number(high),
        "mean_x": _x(distribution.mean, low, high),
        "low_x": _x(interval.low, low, high),
        "high_x": _x(interval.high, low, high),
        **_histogram(histogram, metric_scale, low, high),
    }


def value_range(distribution: Distribution, metric_scale: MetricScale) -> tuple[float, float]:
    """Return the ends of the axis: those of the metric's range, or the least and greatest value."""
    if metric_scale.bounds is not None and metric_scale.span is not None:
        low = metric_scale.span[0] if distribution.least >= metric_scale.span[0] else metric_scale.bounds[0]
        return low, metric_scale.bounds[1]
    low, high = distribution.least, distribution.greatest
    return (low, high) if low < high else (low - 0.5, high + 0.5)


def _x(value: float, low: float, high: float) -> float:
    share = min(1.0, max(0.0, (value - low) / (high - low)))
    return round(_MARGIN + share * (DRAWING_WIDTH - 2 * _MARGIN), 1)


def _histogram(counts: Sequence[int], metric_scale: MetricScale, low: float, high: float) -> dict[str, Any]:
    width = (DRAWING_WIDTH - 2 * _MARGIN) / BINS
    most = max(counts) or 1
    part = (high - low) / BINS
    bars = []
    for i, count in enumerate(counts):
        if count:
            height = round(max(2.0, count / most * (AXIS - 4)), 1)
            bars.append(
                {
                    "x": round(_MARGIN + i * width + 0.5, 1),
                    "y": round(AXIS - height, 1),
                    "height": height,
                    "tone": metric_scale.tone(low + (i + 0.5) * part),
                    "title": f"{format_number(low + i * part)} to {format_number(low + (i + 1) * part)}: {count}",
                }
            )
    fullest = counts.index(max(counts))
    return {
        "bars": bars,
        "bar_width": round(width - 1, 1),
        "histogram_text": (
            f"{sum(counts)} values from {format_number(low)} to {format_number(high)}; the fullest of {BINS} parts is "
            f"{format_number(low + fullest * part)} to {format_number(low + (fullest + 1) * part)} "
            f"with {counts[fullest]}"
        ),
    }


def _counts(summary: MetricSummary) -> dict[str, int]:
    return {status: getattr(summary, status) for status in _STATUSES}


def _shares(counts: Mapping[str, int]) -> list[dict[str, Any]]:
    """Return start and length of the scored, undefined and failed parts of a bar."""
    total = sum(counts.values()) or 1
    parts = []
    start = 0.0
    for status, count in counts.items():
        width = count / total * 100
        if width:
            parts.append({"status": status, "x": round(start, 2), "width": round(width, 2)})
        start += width
    return parts


def _categories(categories: Mapping[str, int]) -> list[dict[str, Any]]:
    total = sum(categories.values())
    return [
        {"label": label, "count": count, "width": round(count / total * DRAWING_WIDTH, 1)}
        for label, count in categories.items()
    ]
