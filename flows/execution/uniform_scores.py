"""Detect runs all of whose rows have the same score, too improbably for chance: the judge may have collapsed."""

from collections.abc import Sequence

from metric_core.stages import Stage
from tasks.history.recorded_run import RecordedMetric
from tasks.rows.computed_tables import RunTables

_IMPROBABLE = 0.01
"""Probability below which equal scores of all rows of a run are not chance."""


def is_suspiciously_uniform(tables: RunTables, before: Sequence[RecordedMetric]) -> bool:
    """Return whether all rows of a run have the same score by a metric, though the run before had others.

    With a mean of m, at least a share of |m - v| of the earlier scores, as a part of their range, was not v: the rest
    to the power of the number of rows is the probability that all are v by chance.

    Args:
        tables: Tables of the run.
        before: Metrics of the run before.
    """
    scores: dict[str, list[float]] = {}
    for shard in tables.shards(Stage.AGGREGATION, ["metric", "value"]):
        for metric, value in zip(shard["metric"].to_pylist(), shard["value"].to_pylist(), strict=True):
            if value is not None:
                scores.setdefault(metric, []).append(value)
    for each in before:
        found = scores.get(each.metric, [])
        if each.slice_column or each.mean is None or each.bounds is None or len(set(found)) != 1:
            continue
        low, high = each.bounds
        share = 1 - abs(each.mean - found[0]) / (high - low)
        if share ** len(found) < _IMPROBABLE:
            return True
    return False
