"""Read and write a run folder: everything about a run in files that other programs can read.

`run.json` (what ran, with what, what it cost), `stages/*.parquet`, `scores.parquet`, `summary.json` and
`report.html`. Every file appears whole or not at all.
"""

import json
import shutil
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from filelock import FileLock, Timeout

from metric_core.declarations.metric import MetricRequest
from metric_core.errors import ConfigError, RunFolderError
from metric_core.parsing.regular_files import check_folder, regular
from metric_core.records import Score, Status
from metric_core.stages import Stage
from metric_core.statistics.summary import CellCounts, MetricSummary
from tasks.record.record_files import parse_finished, parse_record, parse_summary
from tasks.record.run_record import RunRecord
from tasks.record.run_summary import RunSummary
from tasks.rows.computed_tables import RunTables
from tasks.runs.row_grouping import group_names
from tasks.runs.row_groups import iterate_shards
from tasks.runs.row_weights import weights_in_order
from tasks.runtime import atomic_files
from tasks.runtime.atomic_files import atomic_file, is_temporary, write_json
from tasks.runtime.threads import map_threads
from tasks.runtime.writable import probe_folder

MANIFEST, SUMMARY, SCORES, STAGES, REPORT = "run.json", "summary.json", "scores.parquet", "stages", "report.html"
CALIBRATION = "calibration.json"
"""Agreement of the judge with people, if rows of the run are labelled."""
LABELS = "labels.parquet"
"""Labels of rows of the run."""
OUTCOME = "outcome.json"
"""Outcome of a monitored run: gate, alarms, incidents."""
COMPARISON = "comparison.html"
"""Page that shows what has changed since the accepted baseline, if the run was monitored."""
DIAGNOSIS = "diagnosis.parquet"
"""Diagnosis of every row."""
LOCK = ".lock"
RUNS = "runs"
"""Folder of new run folders, in the working folder."""
_AT_ONCE = 2
"""Tables that are written, and metrics that are summarized, at the same time."""
_RUN_FILES = {
    MANIFEST,
    SUMMARY,
    SCORES,
    STAGES,
    REPORT,
    CALIBRATION,
    LABELS,
    OUTCOME,
    COMPARISON,
    DIAGNOSIS,
    LOCK,
}


def table_name(stage: Stage) -> str:
    """Return the path of a stage's table in a run folder.

    >>> table_name(Stage.AGGREGATION), table_name(Stage.CLAIMS)
    ('scores.parquet', 'stages/claims.parquet')
    """
    return {Stage.AGGREGATION: SCORES, Stage.DIAGNOSIS: DIAGNOSIS}.get(stage, f"{STAGES}/{stage}.parquet")


@dataclass(frozen=True, slots=True)
class RunFolder:
    """The folder of a run.

    Args:
        path: Path of the folder, which need not exist yet.
    """

    path: Path

    @classmethod
    def from_option(cls, out: str) -> Self:
        """Return the run folder that a configuration names.

        Raises:
            ConfigError: The configuration names a URL.
        """
        if "://" in out:
            raise ConfigError(
                f"the run folder must be a folder of this machine, got {out}; stage tables may be elsewhere (tables), "
                "and a finished run folder can be copied anywhere"
            )
        return cls(Path(out).expanduser().absolute())

    @property
    def report(self) -> Path:
        """The path of the report."""
        return self.path / REPORT

    @contextmanager
    def lock(self, nested: Collection[str] = ()) -> Iterator[None]:
        """Create the run folder, or take over that of an earlier run, and lock it for the block.

        Args:
            nested: Names of run folders in it that belong to the run; those of an earlier run are removed.

        Raises:
            RunFolderError: The folder holds other files, another run is writing into it, or it cannot be written.
        """
        lock = FileLock(self.path / LOCK)
        with atomic_files.translate_write_errors(f"the run folder {self.path}", RunFolderError):
            self._prepare(nested)
            self._acquire(lock)
        try:
            with self.translate_write_errors():
                for name in (CALIBRATION, LABELS, OUTCOME, COMPARISON):
                    (self.path / name).unlink(missing_ok=True)
                for name in nested:
                    if (self.path / name / MANIFEST).is_file():
                        shutil.rmtree(self.path / name)
            yield
        finally:
            lock.release()

    def check(self, nested: Collection[str] = ()) -> None:
        """Check that `lock` would succeed now; change nothing.

        Args:
            nested: Names of run folders in it that belong to the run.

        Raises:
            RunFolderError: The folder holds other files, another run is writing into it, or it cannot be written.
        """
        with atomic_files.translate_write_errors(f"the run folder {self.path}", RunFolderError):
            probe_folder(self.path)
            self._refuse_other_files(nested)
            if (self.path / LOCK).exists():
                lock = FileLock(self.path / LOCK)
                self._acquire(lock)
                lock.release()

    def _prepare(self, nested: Collection[str]) -> None:
        self.path.mkdir(parents=True, exist_ok=True)
        self._refuse_other_files(nested)
        (self.path / STAGES).mkdir(exist_ok=True)

    def _refuse_other_files(self, nested: Collection[str]) -> None:
        names = (
            {path.name for path in self.path.iterdir() if not is_temporary(path.name)} if self.path.exists() else set()
        )
        foreign = sorted(names - _RUN_FILES - {*nested})
        if foreign and MANIFEST not in names:
            raise RunFolderError(
                f"the folder {self.path} holds files that are not a run's ({', '.join(foreign[:3])}). "
                "Name an empty folder, one that does not exist yet, or that of an earlier run."
            )

    def _acquire(self, lock: FileLock) -> None:
        try:
            lock.acquire(blocking=False)
        except Timeout as error:
            message = f"another run is writing into {self.path}. Wait for it, or name another folder."
            raise RunFolderError(message) from error

    def write_tables(self, tables: RunTables) -> None:
        """Write the tables of a run, and remove an earlier run's tables of other stages."""

        def write(stage: Stage) -> None:
            with atomic_file(self.path / table_name(stage)) as temporary:
                tables.write(stage, str(temporary))

        map_threads(write, tables.stages, _AT_ONCE)
        tables.store.release()
        for path in (self.path / STAGES).glob("*.parquet"):
            if path.stem not in tables.stages:
                path.unlink()

    def summarize_scores(
        self,
        requests: Sequence[MetricRequest],
        groups: Mapping[str, str] | None = None,
        weights: Mapping[str, float] | None = None,
    ) -> list[MetricSummary]:
        """Summarize every metric from the score table, read once, with one batch in memory at a time.

        Args:
            groups: Row id -> group; rows without a group are groups of one. None if rows are independent.
            weights: Row id -> weight; None if each row counts once.
        """
        counted = {
            request.key: CellCounts(
                request.key, request.metric.direction, request.bounds, is_grouped=groups is not None
            )
            for request in requests
        }
        needs_rows = groups is not None or weights is not None
        texts = ["metric", "status", "label", "reason", *(["row_id"] if needs_rows else [])]
        with pq.ParquetFile(self.path / SCORES, read_dictionary=texts) as file:
            for batch in file.iter_batches(columns=[*texts, "value"]):
                row_ids = batch.column("row_id").dictionary.to_pylist() if needs_rows else []
                names = None if groups is None else [*group_names(row_ids, groups)]
                weighted = None if weights is None else weights_in_order(row_ids, weights)
                for key, cells in counted.items():
                    _count_cells(batch.filter(pc.equal(batch.column("metric"), key)), cells, names, weighted)
        return map_threads(CellCounts.summarize, counted.values(), _AT_ONCE)

    def _scores(self, metric: str) -> Iterator[Score]:
        for batch in self.read_cells(metric, ("status", "value", "label", "reason")):
            for row in batch.to_pylist():
                yield Score(Status(row["status"]), row["value"], row["label"], row["reason"])

    def read_scores(self, metric: str) -> Iterator[tuple[str, Score]]:
        """Yield row id and score of each cell of a metric, with one batch in memory at a time."""
        yield from zip(self._row_ids(metric), self._scores(metric), strict=True)

    def _row_ids(self, metric: str) -> Iterator[str]:
        for batch in self.read_cells(metric, ("row_id",)):
            yield from batch.column("row_id").to_pylist()

    def read_samples(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Return columns of the samples that were written to the folder, shard by shard."""
        return self.read_shards(Stage.SAMPLES, columns)

    def read_shards(self, stage: Stage, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Return columns of a stage's table that was written to the folder, shard by shard."""
        return iterate_shards(self.path / table_name(stage), columns, stage)

    def read_cells(self, metric: str, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield the cells of a metric in the score table, in batches.

        Args:
            columns: Columns of the score table to read besides `metric`.
        """
        with pq.ParquetFile(self.path / SCORES) as file:
            for batch in file.iter_batches(columns=["metric", *columns]):
                yield batch.filter(pc.equal(batch.column("metric"), metric))

    def write_summary(self, summary: RunSummary) -> None:
        """Write summary.json."""
        self.write_json(SUMMARY, summary.to_json())

    def write_record(self, record: RunRecord) -> None:
        """Write run.json."""
        self.write_json(MANIFEST, record.to_json())

    def write_json(self, name: str, content: Mapping[str, object]) -> None:
        """Write a JSON file of the folder whole or not at all; see `tasks.runtime.atomic_files.write_json`."""
        write_json(self.path / name, content)

    def translate_write_errors(self) -> AbstractContextManager[None]:
        """Raise the errors of a block that writes into a run folder as errors that name the folder.

        Raises:
            RunFolderError: A file cannot be written.
        """
        advice = "Check the folder and its disk, and run again: finished answers and tables are reused."
        return atomic_files.translate_write_errors(f"the run folder {self.path}", RunFolderError, advice)

    def read_json(self, name: str) -> dict[str, Any]:
        """Read a JSON file of a run folder.

        Raises:
            RunFolderError: The folder lacks the file, or the file is damaged.
        """
        try:
            if name == MANIFEST:  # it is read before the others
                check_folder(self.path)
            content = json.loads(regular(self.path / name).read_text(encoding="utf-8"))
        except FileNotFoundError as error:
            raise RunFolderError(f"{self.path} is not a run folder: it has no {name}") from error
        except (OSError, ValueError, RecursionError) as error:
            raise RunFolderError(f"{self.path / name} cannot be read: {error}") from error
        if not isinstance(content, dict):
            raise RunFolderError(f"{self.path / name} cannot be read: expected a JSON object")
        return content

    def read_record(self) -> RunRecord:
        """Read the record of a run in any state (`run.json`).

        Raises:
            RunFolderError: The folder is not a run folder, or its run has another format.
        """
        return parse_record(self.read_json(MANIFEST), self.path / MANIFEST)

    def read_finished_record(self) -> RunRecord:
        """Read the record of a finished run (`run.json`).

        Raises:
            RunFolderError: The folder is not a run folder, or its run did not finish or has another format.
        """
        return parse_finished(self.read_json(MANIFEST), self.path / MANIFEST)

    def read_summary(self) -> RunSummary:
        """Read the summary of a run (`summary.json`).

        Raises:
            RunFolderError: The folder lacks the file, or the file is damaged.
        """
        return parse_summary(self.read_json(SUMMARY), self.path / SUMMARY)


def _count_cells(
    batch: pa.RecordBatch,
    cells: CellCounts,
    names: Sequence[str] | None,
    weights: Sequence[float] | None,
) -> None:
    """Add a batch of a metric's cells to its counts.

    Args:
        names: Name of the group of each row in the dictionary of the batch.
        weights: Weight of each of these rows.
    """
    has_value = pc.is_valid(batch.column("value"))
    cells.add_counts(
        count_values(batch.column("status")),
        count_values(batch.column("label").filter(pc.invert(has_value))),
        count_values(batch.column("reason")),
    )
    valued = batch.filter(has_value)
    labels = valued.column("label")
    for scale in [*count_values(labels), *([None] if labels.null_count else [])]:
        rows = valued.filter(pc.is_null(labels) if scale is None else pc.fill_null(pc.equal(labels, scale), False))
        row_ids = [] if names is None and weights is None else rows.column("row_id").indices.to_pylist()
        of_groups, of_rows = ([] if each is None else [each[row] for row in row_ids] for each in (names, weights))
        values = rows.column("value").to_numpy(zero_copy_only=False)
        cells.add_values(values, scale, of_groups, of_rows)


def count_values(values: pa.Array) -> dict[Any, int]:
    """Return the number of each value that is not null, in the order in which the values first appear.

    >>> count_values(pa.array(["b", None, "a", "b"]))
    {'b': 2, 'a': 1}
    """
    counted = pc.value_counts(values.drop_null())
    return dict(zip(counted.field("values").to_pylist(), counted.field("counts").to_pylist(), strict=True))
