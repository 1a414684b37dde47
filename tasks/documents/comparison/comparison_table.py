"""The metrics of a comparison as a table for notebooks and other programs."""

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from metric_core.statistics.comparison import MetricComparison
from tasks.documents.run.run_table import RunTable

SCHEMA = pa.schema(
    [
        *((name, pa.string()) for name in ("metric", "scale")),
        *((name, pa.float64()) for name in ("a", "b", "difference", "low", "high", "p")),
        ("rows", pa.int64()),
        ("outcome", pa.string()),
    ]
)


def metrics_table(metrics: Iterable[MetricComparison]) -> RunTable:
    """Return a row per metric: both means, their difference and its interval, adjusted p, rows, outcome.

    >>> metrics_table([]).columns
    ['metric', 'scale', 'a', 'b', 'difference', 'low', 'high', 'p', 'rows', 'outcome']
    """
    return RunTable(pa.Table.from_pylist([row_of(metric) for metric in metrics], schema=SCHEMA))


def row_of(metric: MetricComparison) -> Mapping[str, Any]:
    """Return the row of a metric."""
    row = {"metric": metric.metric, "scale": metric.scale, "rows": metric.rows.paired, "outcome": str(metric.verdict)}
    change = metric.difference
    if change is None:
        return row
    ends = {"low": change.interval.low, "high": change.interval.high} if change.interval else {}
    return {**row, **ends, "a": change.mean_a, "b": change.mean_b, "difference": change.mean, "p": change.p_adjusted}
