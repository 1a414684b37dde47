"""Describe the metrics of a comparison for its page: numbers as text, drawings as coordinates."""

from collections.abc import Mapping, Sequence
from typing import Any

from metric_core.records import Direction
from metric_core.statistics.comparison import ChangeOutcome, Difference, MetricComparison
from metric_core.statistics.summary import describe_groups
from tasks.documents.comparison.comparison_words import format_interval, format_p, format_signed
from tasks.documents.figures import format_fixed, format_number
from tasks.documents.run.summary_rows import LOWER_IS_BETTER
from tasks.documents.run.summary_view import DIRECTIONS, split_key

WIDTH = 260
"""Width of the drawings, in the units of their coordinates."""

_MARGIN = 8
_STEPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
_KINDS = {ChangeOutcome.BETTER: "better", ChangeOutcome.WORSE: "worse"}


def metric_views(metrics: Sequence[MetricComparison], spans: Mapping[str, float]) -> list[dict[str, Any]]:
    """Return the metrics for the page.

    Differences of metrics that have a range are drawn on a common scale, as shares of the range, so that readers can
    compare them.

    Args:
        spans: Mapping from metric to the width of its range, for metrics that have one.
    """
    reach = {id(metric): _reach(metric.difference) for metric in metrics if metric.difference}
    shares = [reach[id(m)] / spans[m.metric] for m in metrics if m.difference and spans.get(m.metric)]
    common = next((step for step in _STEPS if step >= max(shares, default=0.0)), 1.0)
    return [
        _view(metric, common * spans[metric.metric] if spans.get(metric.metric) else reach.get(id(metric), 0.0) or 1.0)
        for metric in metrics
    ]


def _reach(difference: Difference) -> float:
    interval = difference.interval
    ends = (interval.low, interval.high) if interval else (difference.mean,)
    reach: float = max(map(abs, (*ends, difference.mean)))
    return reach


def _view(metric: MetricComparison, reach: float) -> dict[str, Any]:
    rows = metric.rows
    lost = [
        (count, what)
        for count, what in (
            (rows.unscored_b, "scored in A only"),
            (rows.unscored_a, "scored in B only"),
            (rows.unscored_both, "scored in neither"),
            (rows.rescaled, "on different scales"),
        )
        if count
    ]
    return {
        "key_parts": split_key(metric.metric),
        "scale": metric.scale,
        "direction": DIRECTIONS[metric.direction],
        "arrow": {Direction.HIGHER: "↑", Direction.LOWER: LOWER_IS_BETTER}.get(metric.direction, "↔"),
        "outcome": metric.verdict,
        "kind": _KINDS.get(metric.verdict, "unclear"),
        "paired": rows.paired,
        "lost": lost,
        "categories": [(label, a, b) for label, (a, b) in metric.categories.items()],
        "relabelled": metric.relabelled,
        "difference": None if metric.difference is None else _difference(metric.difference, reach),
    }


def _difference(difference: Difference, reach: float) -> dict[str, Any]:
    interval = difference.interval
    low, high = (interval.low, interval.high) if interval else (difference.mean, difference.mean)
    missing = difference.missing
    facts = [
        ("test", None if difference.test is None else difference.test.kind),
        (
            "p, corrected for the number of metrics",
            None if difference.p_adjusted is None else format_p(difference.p_adjusted),
        ),
        (
            "rows in",
            None if difference.groups is None else describe_groups(difference.groups, difference.independent_groups),
        ),
        (
            "found in 80 of 100 comparisons",
            None if difference.detectable is None else f"a true difference of {difference.detectable:.2g} or more",
        ),
        (
            "with any possible missing scores",
            None if missing is None or missing.worst_case is None else format_interval(missing.worst_case, True),
        ),
    ]
    return {
        "mean_a": format_fixed(difference.mean_a),
        "mean_b": format_fixed(difference.mean_b),
        "mean": format_signed(difference.mean),
        "interval": format_interval(interval, is_signed=True) if interval else None,
        "mean_x": _x(difference.mean, reach),
        "low_x": _x(low, reach),
        "high_x": _x(high, reach),
        "least": f"-{format_number(reach)}",
        "most": f"+{format_number(reach)}",
        "facts": [(name, text) for name, text in facts if text is not None],
        "moves": _moves(difference),
    }


def _x(value: float, reach: float) -> float:
    share = min(1.0, max(-1.0, value / reach))
    return round(WIDTH / 2 + share * (WIDTH / 2 - _MARGIN), 1)


def _moves(difference: Difference) -> list[dict[str, Any]]:
    """Return the parts of a bar for the rows that became worse, stayed the same and became better."""
    counts = {"worse": difference.worsened, "same": difference.unchanged, "better": difference.improved}
    total = sum(counts.values()) or 1
    parts = []
    x = 0.0
    for kind, count in counts.items():
        width = round(count / total * WIDTH, 1)
        parts.append({"kind": kind, "count": count, "x": round(x, 1), "width": width})
        x += width
    return parts
