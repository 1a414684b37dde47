"""Read a finished run for reruns and comparisons: its metrics, its rows, and the rows with failed cells."""

from collections.abc import Collection, Iterator, Sequence
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from metric_core.columns import COLUMNS
from metric_core.declarations.metric import MetricRequest
from metric_core.errors import RunFolderError
from metric_core.records import Status
from metric_core.stages import Stage
from tasks.options.metric_settings import MetricSettings
from tasks.record.run_summary import RunSummary
from tasks.rows.records import add_missing_columns
from tasks.runs import run_folder
from tasks.runs.file_checks import check_cells, check_table, unreadable_error
from tasks.runs.row_groups import RowGroups, iterate_shards


class FinishedRun:
    """A finished run.

    Raises:
        RunFolderError: The folder is not a run folder, or its run did not finish or has another format.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder).expanduser().absolute()
        self._tables: dict[Stage, RowGroups] = {}
        self.record = run_folder.RunFolder(self.folder).read_finished_record()

    @cached_property
    def summary(self) -> RunSummary:
        """The summary of the run.

        Raises:
            RunFolderError: The summary is missing or damaged.
        """
        return run_folder.RunFolder(self.folder).read_summary()

    @property
    def run_id(self) -> str:
        """The id of the run."""
        return self.record.run_id

    @property
    def started(self) -> datetime:
        """The time at which the run started."""
        time = datetime.fromisoformat(self.record.created)
        return time if time.tzinfo is not None else time.replace(tzinfo=UTC)

    @property
    def config(self) -> dict[str, Any]:
        """The configuration of the run."""
        return self.record.config.options

    @property
    def requests(self) -> list[MetricRequest]:
        """The metrics of the run, in order.

        Raises:
            ConfigError: This rag-assay lacks a metric or a parameter.
        """
        return [
            MetricSettings(name=metric.installed, parameters=metric.parameters, key=metric.key).request()
            for metric in self.record.metrics
        ]

    @property
    def codes(self) -> dict[str, str]:
        """Mapping from metric key to the digest of the metric's code; empty for a built-in metric."""
        return {metric.key: metric.code for metric in self.record.metrics}

    @property
    def notes(self) -> tuple[str, ...]:
        """Warnings about reused rows if the run is a rerun."""
        return () if self.record.rerun is None else self.record.rerun.notes

    def means(self) -> dict[str, float]:
        """Return the mean of each metric that has one; empty if the summary cannot be read."""
        try:
            metrics = self.summary.metrics
        except RunFolderError:
            return {}
        return {each.metric: each.distribution.mean for each in metrics if each.distribution is not None}

    def columns(self) -> tuple[str, ...]:
        """Return the sample columns that have a value in some row."""
        filled: set[str] = set()
        for shard in self.samples():
            filled.update(name for name in COLUMNS if shard[name].null_count < shard.num_rows)
        return tuple(name for name in COLUMNS if name in filled)

    def has_values(self, column: str) -> bool:
        """Return whether some row has a value in a sample column."""
        return any(
            shard[column].null_count < len(shard) for shard in iterate_shards(self._path(Stage.SAMPLES), [column])
        )

    def samples(self, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """Return the samples, in the shards in which they were computed.

        Args:
            columns: Columns to read; None for all.
        """
        return iterate_shards(self._path(Stage.SAMPLES), columns)

    def rows(self, stage: Stage, row_ids: Collection[str]) -> pa.Table:
        """Return the rows of a stage's table that belong to these samples."""
        path = self.folder / run_folder.table_name(stage)
        try:
            if stage not in self._tables:
                self._tables[stage] = RowGroups(self._path(stage))
            table = add_missing_columns(self._tables[stage].rows(row_ids), stage)
        except (pa.ArrowException, OSError) as error:
            raise unreadable_error(path, error) from error
        if stage is Stage.AGGREGATION:
            check_cells(table, path)
        return table

    def failed_rows(self, metrics: Collection[str]) -> frozenset[str]:
        """Return the ids of the rows with a failed cell of these metrics."""
        is_failed = pc.field("status") == str(Status.FAILED)
        condition = pc.field("metric").isin(pa.array(list(metrics), pa.string())) & is_failed
        path = self._path(Stage.AGGREGATION)
        try:
            cells = pq.read_table(path, filters=condition, partitioning=None, page_checksum_verification=True)
        except (pa.ArrowException, OSError) as error:
            raise unreadable_error(path, error) from error
        return frozenset(cells["row_id"].to_pylist())

    def _path(self, stage: Stage) -> Path:
        """Check the schema version of a stage's table and return its path."""
        name = run_folder.table_name(stage)
        path = self.folder / name
        try:
            schema = pq.read_schema(path)
        except FileNotFoundError as error:
            raise RunFolderError(f"{self.folder} is not a complete run folder: it has no {name}") from error
        except (pa.ArrowException, OSError) as error:
            raise unreadable_error(path, error) from error
        check_table(schema, stage, path)
        return path
