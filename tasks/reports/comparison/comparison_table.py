"""The metrics of a comparison as a table for notebooks and other programs."""

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from metric_core.statistics.comparison import MetricComparison
from metric_core.statistics.slice_comparison import SliceComparison
from tasks.reports.run.run_table import RunTable

_SLICE = pa.schema([("column", pa.string()), ("value", pa.string())])
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


def slices_table(slices: Iterable[SliceComparison]) -> RunTable:
    """Return a row per slice, metric and scale, with the columns of `metrics_table`.

    >>> slices_table([]).columns[:4]
    ['column', 'value', 'metric', 'scale']
    """
    rows = [{"column": part.slice.column, "value": part.slice.value, **_row(part.comparison)} for part in slices]
    return RunTable(pa.Table.from_pylist(rows, schema=pa.schema([*_SLICE, *_SCHEMA])))


def _row(metric: MetricComparison) -> Mapping[str, Any]:
    row = {"metric": metric.metric, "scale": metric.scale, "rows": metric.rows.paired, "outcome": str(metric.verdict)}
    change = metric.difference
    if change is None:
        return row
    ends = {"low": change.interval.low, "high": change.interval.high} if change.interval else {}
    return {**row, **ends, "a": change.mean_a, "b": change.mean_b, "difference": change.mean, "p": change.p_adjusted}
