"""Pair the scores of two finished runs row by row, for comparisons and gates."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.compute as pc

from metric_core.errors import ConfigError
from metric_core.records import Score, Status
from metric_core.statistics.pairs import ScoreColumns
from metric_core.statistics.slices import RowSlices, divide_rows
from tasks.documents.run.score_table import read_cells
from tasks.options.grouping_options import Traffic
from tasks.record.run_record import MetricRecord
from tasks.runs import row_slicing
from tasks.runs.finished_run import FinishedRun
from tasks.runs.row_changes import RowChanges, find_row_changes
from tasks.runs.row_grouping import ROW_ID, TextColumn, columns_with, group_column
from tasks.runs.row_slicing import SliceColumn
from tasks.runs.row_weights import read_weights
from tasks.runs.run_folder import SCORES


@dataclass(frozen=True, slots=True)
class Matching:
    """The columns by which rows are matched, grouped and sliced.

    Args:
        match: Column by which rows of the two runs are matched; None and `id` mean their ids.
        by: Column by which rows of a run are grouped; None if they are not grouped.
        slices: Columns that divide the rows into slices.
        kept: Column -> values that are separate slices, however few rows have them.
        weights: The option that gives rows their weights; None if each counts once.
        traffic: Shares of the traffic.
    """

    match: str | None = None
    by: str | None = None
    slices: tuple[str, ...] = ()
    kept: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    weights: str | None = None
    traffic: Traffic = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RunRows:
    """A run and the names under which its rows are compared.

    Args:
        keys: Mapping from row id to the name of the row, which is also the name of the matching row in the other run.
        groups: Mapping from name to the group of the row, for rows that belong to one.
        slice_values: Mapping from column to a mapping from name to value, None for a row without one.
        weights: Mapping from name to the weight of the row; None if each counts once.
    """

    run: FinishedRun
    keys: Mapping[str, str]
    groups: Mapping[str, str]
    slice_values: Mapping[str, Mapping[str, str | None]] = field(default_factory=dict)
    weights: Mapping[str, float] | None = None

    @classmethod
    def from_run(cls, run: FinishedRun, matching: Matching, *, is_baseline: bool = False) -> "RunRows":
        """Read the names, groups and slices of a run's rows.

        Args:
            is_baseline: True for a run whose rows are sliced as those of another run, so that it may lack the columns.

        Raises:
            ConfigError: The run lacks a column, or the column does not identify its rows.
        """
        name = ROW_ID if matching.match in (None, "id") else matching.match
        names, by = TextColumn(name, "rows cannot be matched"), group_column(matching.by or ROW_ID)
        keys: dict[str, str] = {}
        groups: dict[str, str] = {}
        slicing = [SliceColumn(column) for column in matching.slices]
        values: dict[str, dict[str, str | None]] = {column: {} for column in matching.slices}
        read = columns_with(name, *matching.slices, *([] if matching.by is None else [matching.by]))
        for shard in run.samples(read):
            row_names = [str(name) for name in names.read(shard)]
            keys.update(zip(shard[ROW_ID].to_pylist(), row_names, strict=True))
            for column in slicing:
                values[column.name].update(zip(row_names, column.read(shard), strict=True))
            if matching.by is not None:
                pairs = zip(row_names, by.read(shard), strict=True)
                groups.update((name, group) for name, group in pairs if group is not None)
        names.require_values()
        if matching.by is not None:
            by.require_values()
        for column in () if is_baseline else slicing:
            column.check()
        if len(set(keys.values())) < len(keys):
            raise ConfigError(
                f"rows cannot be matched by {matching.match}: two rows of {run.folder} have the same value, or none. "
                "Name a column that every row has and that identifies it."
            )
        weights = read_weights(run.samples(), matching.weights, matching.traffic)
        named = None if weights is None else {keys[row]: weight for row, weight in weights.items()}
        return cls(run, keys, groups, values, named)

    @property
    def row_ids(self) -> dict[str, str]:
        """Mapping from name to row id."""
        return {key: row_id for row_id, key in self.keys.items()}

    def samples(self) -> Iterator[pa.Table]:
        """Yield the run's samples, shard by shard, with names in place of ids."""
        for shard in self.run.samples():
            names = pa.array([self.keys[row_id] for row_id in shard[ROW_ID].to_pylist()], pa.string())
            yield shard.set_column(shard.column_names.index(ROW_ID), shard.schema.field(ROW_ID), names)

    def read_scores(self) -> "ScoreTable":
        """Read the scores of the run."""
        return ScoreTable(read_cells(self.run.folder / SCORES), self.keys)

    def cells(self) -> dict[str, dict[str, Score]]:
        """Return a mapping from metric to a mapping from row name to score; the scores have no reasons."""
        scores = self.read_scores()
        return {metric: scores.cells(metric) for metric in scores.metrics}


@dataclass(frozen=True, eq=False, slots=True)
class ScoreTable:
    """The scores of a run, in a tenth of the memory of their mappings.

    Args:
        table: Row id, metric, status, value and label of each cell.
        keys: Mapping from row id to the name of the row.
    """

    table: pa.Table
    keys: Mapping[str, str]

    @property
    def metrics(self) -> list[str]:
        """Keys of the metrics, in the order of the table."""
        found: list[str] = self.table["metric"].unique().to_pylist()
        return found

    def cells(self, metric: str) -> dict[str, Score]:
        """Return a mapping from row name to the score of a metric, without its reason; equal scores are one object."""
        part = self.table.filter(pc.equal(self.table["metric"], metric))
        rows, status, label = (part[name].cast(pa.string()).to_pylist() for name in (ROW_ID, "status", "label"))
        cells = [*zip(status, part["value"].to_pylist(), label, strict=True)]
        shared = {cell: Score(Status(cell[0]), cell[1], cell[2]) for cell in dict.fromkeys(cells)}
        keys = self.keys
        return {keys[row_id]: shared[cell] for row_id, cell in zip(rows, cells, strict=True) if row_id in keys}


@dataclass(frozen=True, slots=True)
class RunPair:
    """Two runs; the first may be missing.

    Args:
        a: Rows of the baseline.
        b: Rows of the run that is compared with it.
        slices: Slices of the rows of both runs, by column; a row of both is in the slice of the second.
    """

    b: RunRows
    a: RunRows | None = None
    is_grouped: bool = False
    slices: tuple[RowSlices, ...] = ()

    @classmethod
    def from_runs(cls, a: FinishedRun | None, b: FinishedRun, matching: Matching) -> "RunPair":
        """Pair the rows of two runs.

        Raises:
            ConfigError: The rows cannot be matched, grouped or sliced by these columns, or the runs have no row in
                common.
        """
        rows = RunRows.from_run(b, matching)
        if a is None:
            return cls(rows, None, matching.by is not None, tuple(_divide(matching, rows.slice_values)))
        before = RunRows.from_run(a, replace(matching, by=None, weights=None), is_baseline=True)
        if not set(before.keys.values()) & set(rows.keys.values()):
            column = matching.match or "id"
            raise ConfigError(
                f"{a.folder} and {b.folder} have no row in common: no {column} is in both. Rows without an id "
                "get one from their content, so a row with another answer is another row. Evaluate with "
                "--id-column, or name a column that stays the same: --match user_input."
            )
        slices = _divide(matching, before.slice_values, rows.slice_values)
        return cls(rows, before, matching.by is not None, tuple(slices))

    def columns(self) -> tuple[ScoreColumns, ...]:
        """Return the cells of every metric that either run has, in the order of the second run, then of the first."""
        return tuple(self.iterate_columns())

    def iterate_columns(self) -> Iterator[ScoreColumns]:
        """Yield what `columns` returns, with the cells of one metric in memory at a time."""
        after = self.b.read_scores()
        before = None if self.a is None else self.a.read_scores()
        own, earlier = _metrics(self.b.run), _metrics(None if self.a is None else self.a.run)
        for metric, record in (own | earlier | own).items():
            yield ScoreColumns(
                metric=metric,
                direction=record.direction,
                a={} if before is None else before.cells(metric),
                b=after.cells(metric),
                groups=self.b.groups if self.is_grouped else None,
                bounds=record.bounds,
                weights=self.b.weights,
            )

    def changes(self) -> RowChanges:
        """Return the changes of the rows from the first run to the second."""
        return find_row_changes(self.a.samples() if self.a is not None else (), self.b.samples())


def _divide(matching: Matching, *runs: Mapping[str, Mapping[str, str | None]]) -> Iterator[RowSlices]:
    """Yield the slices of the rows of runs, for each column; later runs take precedence."""
    for column in matching.slices:
        values = {name: value for run in runs for name, value in run[column].items()}
        yield divide_rows(column, values, row_slicing.MAX_SLICES, matching.kept.get(column, ()))


def _metrics(run: FinishedRun | None) -> dict[str, MetricRecord]:
    return {} if run is None else {metric.key: metric for metric in run.record.metrics}
