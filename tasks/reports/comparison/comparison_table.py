"""The metrics of a comparison as a table for notebooks and other programs."""

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from metric_core.statistics.comparison import MetricComparison
from tasks.reports.run.run_table import RunTable

_SCHEMA = pa.schema(
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
    return RunTable(pa.Table.from_pylist([_row(metric) for metric in metrics], schema=_SCHEMA))


def _row(metric: MetricComparison) -> Mapping[str, Any]:
    row = {"metric": metric.metric, "scale": metric.scale, "rows": metric.rows.paired, "outcome": str(metric.verdict)}
    found = metric.difference
    if found is None:
        return row
    ends = {"low": found.interval.low, "high": found.interval.high} if found.interval else {}
    return {**row, **ends, "a": found.mean_a, "b": found.mean_b, "difference": found.mean, "p": found.p_adjusted}
