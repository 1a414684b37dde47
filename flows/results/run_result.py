"""Provide a finished run as an object: its numbers, tables, report, and scores in other programs' formats."""

from collections.abc import Mapping
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import Any

from metric_core.stages import Stage
from tasks.documents.blocks import Line, own
from tasks.documents.html import to_html
from tasks.documents.run.run_table import RunTable
from tasks.documents.run.summary_rows import summary_table, verdict_line
from tasks.findings.finding import RunRecords
from tasks.findings.table import table_of
from tasks.record.run_record import RunRecord
from tasks.record.run_summary import RunSummary
from tasks.reports.exports.score_tables import (
    Format,
    Shape,
    guess_format,
    list_failed_cells,
    parse_format,
    parse_shape,
    reshape,
    write_export,
)
from tasks.reports.run.report_page import write_report
from tasks.runs import run_folder
from tasks.runs.run_tables import read_table
from tasks.runtime.short_tracebacks import shortens_tracebacks
from tasks.runtime.stored_data import shown_source


class RunResult:
    """A finished run, read lazily from its folder.

    Raises:
        RunFolderError: The folder does not hold a finished run.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder).expanduser().absolute()
        self.record: RunRecord = run_folder.RunFolder(self.folder).read_finished_record()

    @cached_property
    def manifest(self) -> Mapping[str, Any]:
        """The content of run.json: source, judge, models and cost."""
        return self.record.to_json()

    @cached_property
    def summary(self) -> Mapping[str, Mapping[str, Any]]:
        """The metrics of summary.json: scored, undefined and failed rows, with mean and interval in `distribution`."""
        return {metric.metric: asdict(metric) for metric in self._summary.metrics}

    @cached_property
    def _summary(self) -> RunSummary:
        return run_folder.RunFolder(self.folder).read_summary()

    @property
    def failures(self) -> tuple[str, ...]:
        """Sentences on metrics with too many failed cells; see the option `fail_on_failed`."""
        return self.record.failures

    @property
    def judge(self) -> str:
        """A note on the judge and its reliability."""
        return self.record.judge.note

    @property
    def anchor(self) -> "RunResult | None":
        """The result of the anchor, whose rows never change; None for a run without one, or without its scores."""
        folder = self.folder / "anchor"
        return RunResult(folder) if (folder / run_folder.MANIFEST).is_file() else None

    def scores(self, shape: Shape | str = Shape.LONG) -> RunTable:
        """Return the scores: `long` (a row per cell), `wide` (a column per metric) or `ragas` (beside the texts)."""
        return RunTable(reshape(self.folder, parse_shape(shape)))

    def slices(self) -> RunTable:
        """Return a row per slice and metric: mean, interval, counts, and whether it is worse than the other rows.

        Empty if the run has no slices; see the option `slices`.
        """
        return RunTable(table_of(RunRecords(self.record, self._summary, self.folder), "slices"))

    def samples(self) -> RunTable:
        """Return the evaluated rows."""
        return self.table(Stage.SAMPLES)

    def failed_cells(self) -> RunTable:
        """Return the cells for which the judge returned nothing usable, with their reasons."""
        return RunTable(list_failed_cells(self.folder))

    def table(self, stage: Stage | str) -> RunTable:
        """Return the table of a stage, by name, such as `claims` or `verdicts`."""
        return RunTable(read_table(self.folder, f"{run_folder.STAGES}/{stage}.parquet"))

    def export(
        self, path: str | Path, file_format: Format | str | None = None, shape: Shape | str = Shape.LONG
    ) -> Path:
        """Write the scores to a file.

        Args:
            file_format: Format of the file: csv, jsonl or parquet; default by the suffix of the path.
            shape: Shape of the table: long, wide or ragas.

        Returns:
            The path.

        Raises:
            ConfigError: The format is unknown.
            RunFolderError: The run cannot be read, or the file cannot be written.
        """
        target = Path(path).expanduser()
        chosen_format = parse_format(file_format) if file_format else guess_format(target)
        write_export(reshape(self.folder, parse_shape(shape)), target, chosen_format)
        return target

    def report(self, out: str | Path | None = None, rows: int | None = None) -> Path:
        """Write the report again and return its path.

        Args:
            out: File to write; default `report.html` in the run folder.
            rows: Number of rows with their evidence, worst first; default all of up to 1,000 rows, else 200.
        """
        return write_report(self.folder, rows, None if out is None else Path(out).expanduser())

    def __repr__(self) -> str:
        return f"Run({str(self.folder)!r}, {self.record.rows} rows, {len(self.summary)} metrics)"

    def _repr_html_(self) -> str:
        title = Line((own(f"{self.record.rows:,} rows of "), shown_source(self.record.source)), is_strong=True)
        judge, meaning = Line((own("Judge: "), self.judge)), verdict_line(self.record)
        more = [] if meaning is None else [Line(own(f"{meaning[0].upper()}{meaning[1:]}."))]
        return to_html([title, summary_table(self._summary), judge, *more])


@shortens_tracebacks
def open_run(folder: str | Path) -> RunResult:
    """Return a finished run.

    Raises:
        RunFolderError: The folder does not hold a finished run.
    """
    return RunResult(folder)
