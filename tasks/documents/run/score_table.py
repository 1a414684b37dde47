"""Read the score table for a report: worst rows, distributions, and the goodness of values.

A `MetricScale` maps a metric's values to a scale from 0 (worst) to 1 (best), by the metric's bounds and direction. It
orders rows and chooses colors; its numbers are never shown.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
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
from tasks.record.record_files import AGAIN
from tasks.record.run_record import MetricRecord
from tasks.rows.row_digests import digest_cells
from tasks.runs.file_checks import check_cells, check_table, number_texts

TONES = ("bad2", "bad1", "mid", "good1", "good2")
"""Fifths of the metric scale, from the worst."""

NEUTRAL = "none"
"""The tone of a value that is neither good nor bad."""

BINS = 20

CELLS_AT_ONCE = 1 << 16
"""Number of cells from which on a part of the score table is large enough."""

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


@dataclass(frozen=True, slots=True)
class ScoreSurvey:
    """All cells as a report shows them.

    Args:
        rows: Number of rows.
        worst: Ids of the worst rows, worst first.
        histograms: Metric -> number of its values in each of BINS equal parts of its range.
    """

    rows: int
    worst: Sequence[str]
    histograms: Mapping[str, Sequence[int]]


def read_cells(path: Path) -> pa.Table:
    """Return row id, metric, status, label and value of every cell, in the order of the file; texts are dictionaries.

    Raises:
        RunFolderError: The score table is missing, or cannot be read.
    """
    return pa.concat_tables(iterate_cells(path))


def iterate_cells(path: Path) -> Iterator[pa.Table]:
    """Yield what `read_cells` returns in parts, each with all cells of its rows; there is one at least.

    Raises:
        RunFolderError: The score table is missing, or cannot be read.
    """
    digests: list[NDArray[np.uint64]] = []
    try:
        check_table(pq.read_schema(path), Stage.AGGREGATION, path)
        with pq.ParquetFile(path, read_dictionary=_TEXTS, page_checksum_verification=True) as file:
            for groups in _divide_groups(file.metadata):
                cells = file.read_row_groups(groups, [*_TEXTS, "value"])
                check_cells(cells, path)
                digests.append(digest_cells(_row_ids(cells)))
                yield cells
            _check_parts(file, np.sort(np.concatenate(digests)), path)
    except (OSError, pa.ArrowException) as error:
        raise RunFolderError(f"the score table {path} cannot be read ({error}). Run the evaluation again.") from error


def _check_parts(file: pq.ParquetFile, digests: NDArray[np.uint64], path: Path) -> None:
    """Refuse a score table in which a row has cells in two parts.

    Args:
        digests: Sorted digests of the ids of the rows of each part.

    Raises:
        RunFolderError: A row has cells in two parts.
    """
    repeated = digests[1:][digests[1:] == digests[:-1]]
    seen: set[str] = set()
    for groups in _divide_groups(file.metadata) if len(repeated) else ():
        row_ids = _row_ids(file.read_row_groups(groups, ["row_id"]))
        suspects = row_ids.filter(pa.array(np.isin(digest_cells(row_ids), repeated))).to_pylist()
        if not seen.isdisjoint(suspects):
            (row_id, *_) = seen.intersection(suspects)
            raise RunFolderError(
                f"the table {path} cannot be read: the cells of the row {row_id!r} are not together. {AGAIN}"
            )
        seen.update(suspects)


def _row_ids(cells: pa.Table) -> pa.ChunkedArray:
    return pa.chunked_array([number_texts(cells["row_id"])[1]])


def _divide_groups(metadata: pq.FileMetaData) -> Iterator[list[int]]:
    """Yield the row groups of a file, as many at a time as have some cells; none, at once, if it has none."""
    groups: list[int] = []
    cells = 0
    for number in range(metadata.num_row_groups):
        groups.append(number)
        cells += metadata.row_group(number).num_rows
        if cells >= CELLS_AT_ONCE:
            yield groups
            groups, cells = [], 0
    if groups or not metadata.num_row_groups:
        yield groups


def survey_cells(
    parts: Iterable[pa.Table],
    metric_scales: Sequence[MetricScale],
    ranges: Mapping[str, tuple[float, float]],
    most: int,
) -> ScoreSurvey:
    """Survey all cells for a report, with one part of them in memory at a time.

    A row is as good as the mean of its cells on their scales. A failed cell counts as the worst value; an
    undefined one, and a value without a scale, do not count. Rows without any cell that counts come last.

    Args:
        parts: Parts of the score table, each with all cells of its rows.
        ranges: Metric -> least and greatest value that is counted, for metrics with values.
        most: Maximum number of rows to return.
    """
    counts = {metric: np.zeros(BINS, np.int64) for metric in ranges}
    means, row_ids, rows = np.zeros(0), pa.array([], pa.string()), 0
    for cells in parts:
        for metric, (low, high) in ranges.items():
            values = cells["value"].filter(pc.equal(cells["metric"], metric)).drop_null().to_numpy()
            counts[metric] += np.histogram(values, bins=BINS, range=(low, high))[0]
        found, names = _rate_rows(cells, metric_scales)
        rows += len(found)
        means, row_ids = np.concatenate([means, found]), pa.concat_arrays([row_ids, names])
        worst = np.argsort(means, kind="stable")[:most]
        means, row_ids = means[worst], row_ids.take(pa.array(worst))
    return ScoreSurvey(rows, row_ids.to_pylist(), {metric: each.tolist() for metric, each in counts.items()})


def _rate_rows(cells: pa.Table, metric_scales: Sequence[MetricScale]) -> tuple[NDArray[np.float64], pa.Array]:
    """Return the mean goodness of each row, NaN if no cell counts, and the ids of the rows, in their order."""
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
    order = np.argsort(position, kind="stable")
    order = order[position[order] < len(values)]
    return means[order], names.take(pa.array(order))
