"""Read the score table for a report: worst rows, distributions, and the goodness of values.

A `MetricScale` maps a metric's values to a scale from 0 (worst) to 1 (best), by the metric's bounds and direction. It
orders rows and chooses colors; its numbers are never shown.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from metric_core.errors import RunFolderError
from metric_core.records import Direction, Status
from metric_core.stages import Stage
from metric_core.statistics.bounded_means import Bounds
from tasks.record.run_record import MetricRecord
from tasks.runs.file_checks import check_cells, check_table, number_texts

TONES = ("bad2", "bad1", "mid", "good1", "good2")
"""Fifths of the metric scale, from the worst."""

NEUTRAL = "none"
"""The tone of a value that is neither good nor bad."""

BINS = 20

_TEXTS = ["row_id", "metric", "status", "label"]
"""Columns of the score table that hold texts."""


@dataclass(frozen=True, slots=True)
class MetricScale:
    """The scale of a metric's values from worst to best.

    Args:
        bounds: Least and greatest value; None if the metric has no range.
    """

    key: str
    direction: Direction
    bounds: tuple[float, float] | None

    @classmethod
    def of_metric(cls, metric: MetricRecord) -> "MetricScale":
        """Return the scale of a metric of a run."""
        return cls(metric.key, metric.direction, metric.bounds)

    @property
    def span(self) -> tuple[float, float] | None:
        """The ends of the scale: the bounds, or 0 and 1 for a cosine; None without bounds, or without a greatest value.

        >>> MetricScale("answer_similarity", Direction.HIGHER, (-1, 1)).span
        (0.0, 1.0)
        """
        bounds = Bounds.of_metric(self.bounds)
        return None if bounds is None or bounds.is_open else (bounds.low, bounds.high)

    def goodness(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the goodness of each value, in [0, 1]; NaN if the metric has no range or no direction.

        >>> MetricScale("noise", Direction.LOWER, (0, 1)).goodness(np.array([0.25, 1.0])).tolist()
        [0.75, 0.0]
        """
        if self.span is None or self.direction is Direction.NEITHER or self.span[0] == self.span[1]:
            return np.full(len(values), np.nan)
        low, high = self.span
        share = np.clip((values - low) / (high - low), 0.0, 1.0)
        return 1.0 - share if self.direction is Direction.LOWER else share

    def tone(self, value: float | None) -> str:
        """Return the tone of a value: the fifth of the scale that it lies in.

        >>> MetricScale("noise", Direction.LOWER, (0, 1)).tone(0.1)
        'good2'
        """
        return _tone(self, value)


@lru_cache(maxsize=16_384)
def _tone(metric_scale: MetricScale, value: float | None) -> str:
    good = np.nan if value is None else metric_scale.goodness(np.array([value]))[0]
    return NEUTRAL if np.isnan(good) else TONES[min(int(good * len(TONES)), len(TONES) - 1)]


def read_cells(path: Path) -> pa.Table:
    """Return row id, metric, status, label and value of every cell, in the order of the file; texts are dictionaries.

    Raises:
        RunFolderError: The score table is missing, or cannot be read.
    """
    try:
        check_table(pq.read_schema(path), Stage.AGGREGATION, path)
        with pq.ParquetFile(path, read_dictionary=_TEXTS, page_checksum_verification=True) as file:
            cells = file.read([*_TEXTS, "value"])
    except (OSError, pa.ArrowException) as error:
        raise RunFolderError(f"the score table {path} cannot be read ({error}). Run the evaluation again.") from error
    check_cells(cells, path)
    return cells


def worst_rows_first(cells: pa.Table, metric_scales: Sequence[MetricScale]) -> list[str]:
    """Return the ids of all rows, worst first.

    A row is as good as the mean of its cells on their scales. A failed cell counts as the worst value; an
    undefined one, and a value without a scale, do not count. Rows without any cell that counts come last.
    """
    metric, status = cells["metric"], cells["status"]
    values = cells["value"].to_numpy()
    goodness = np.full(len(values), np.nan)
    for metric_scale in metric_scales:
        mask = pc.equal(metric, metric_scale.key).to_numpy()
        goodness[mask] = metric_scale.goodness(values[mask])
    goodness[pc.equal(status, Status.FAILED.value).to_numpy()] = 0.0
    numbers, names = number_texts(cells["row_id"])
    counts = ~np.isnan(goodness)
    sums, counted = (
        np.bincount(numbers[counts], weights, minlength=len(names)) for weights in (goodness[counts], None)
    )
    means = np.divide(sums, counted, out=np.full(len(names), np.nan), where=counted > 0)
    position = np.full(len(names), len(values))
    position[numbers[::-1]] = np.arange(len(values))[::-1]
    order = np.lexsort((position, means))
    row_ids: list[str] = names.take(pa.array(order[position[order] < len(values)])).to_pylist()
    return row_ids


def histogram(cells: pa.Table, metric: str, low: float, high: float) -> list[int]:
    """Return the number of values of a metric in each of BINS equal parts of [low, high]; others are not counted."""
    values = cells["value"].filter(pc.equal(cells["metric"], metric)).drop_null().to_numpy()
    counts, _ = np.histogram(values, bins=BINS, range=(low, high))
    return [int(count) for count in counts]
