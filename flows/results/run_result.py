"""A finished run as an object: its numbers, its tables, its report, and its scores in other programs' formats."""

import html
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from metric_core.stages import Stage
from tasks.reports.run.exports import (
    Format,
    Shape,
    guess_format,
    list_failed_cells,
    parse_format,
    parse_shape,
    read_table,
    reshape,
    write_export,
)
from tasks.reports.run.report_page import WORST_ROWS, write_report
from tasks.reports.run.run_table import RunTable
from tasks.reports.run.summary_view import format_fixed
from tasks.runs import run_folder


class RunResult:
    """A finished run, read from its folder when something of it is asked for.

    Args:
        folder: the run folder.

    Raises:
        RunFolderError: it does not hold a finished run.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder).expanduser().absolute()
        self.manifest: Mapping[str, Any] = run_folder.read_finished_manifest(self.folder)
        """What run.json says: what ran, with which judge and models, and what it cost."""

    @cached_property
    def summary(self) -> Mapping[str, Mapping[str, Any]]:
        """What summary.json says, by metric: mean, interval, and the counts scored, undefined and failed."""
        metrics = run_folder.read_json(self.folder, run_folder.SUMMARY)["metrics"]
        return {metric["metric"]: metric for metric in metrics}

    @property
    def judge(self) -> str:
        """What the judge was, and how far to trust it."""
        return str(self.manifest["judge"]["note"])

    def scores(self, shape: Shape | str = Shape.LONG) -> RunTable:
        """The scores: `long` (a row a cell), `wide` (a column a metric) or `ragas` (beside the texts)."""
        return RunTable(reshape(self.folder, parse_shape(shape)))

    def samples(self) -> RunTable:
        """The evaluated rows."""
        return self.table(Stage.SAMPLES)

    def failed(self) -> RunTable:
        """The cells for which the judge gave nothing usable, with their reasons."""
        return RunTable(list_failed_cells(self.folder))

    def table(self, stage: Stage | str) -> RunTable:
        """The table of a stage: samples, claims, entities, questions, ratings, verdicts, similarity, explanations."""
        return RunTable(read_table(self.folder, f"{run_folder.STAGES}/{stage}.parquet"))

    def export(
        self, path: str | Path, file_format: Format | str | None = None, shape: Shape | str = Shape.LONG
    ) -> Path:
        """Writes the scores to a file.

        Args:
            path: where to.
            file_format: csv, jsonl or parquet; by default what the name ends with.
            shape: long, wide or ragas.

        Returns:
            The path.

        Raises:
            ConfigError: neither the format nor the name says how to write it.
            RunFolderError: the run can not be read, or the file not be written.
        """
        target = Path(path).expanduser()
        written = parse_format(file_format) if file_format else guess_format(target)
        write_export(reshape(self.folder, parse_shape(shape)), target, written)
        return target

    def report(self, out: str | Path | None = None, rows: int = WORST_ROWS) -> Path:
        """Writes the report anew, with the `rows` worst rows in it; by default into the run folder."""
        return write_report(self.folder, rows, None if out is None else Path(out).expanduser())

    def __repr__(self) -> str:
        return f"Run({str(self.folder)!r}, {self.manifest['rows']} rows, {len(self.summary)} metrics)"

    def _repr_html_(self) -> str:
        rows = "".join(_summary_row(metric) for metric in self.summary.values())
        heads = "".join(f"<th>{name}</th>" for name in ("metric", "mean", "95 % interval", *_COUNTS))
        source = html.escape(str(self.manifest["source"]))
        return (
            f"<p><strong>{self.manifest['rows']:,} rows of {source}</strong></p>"
            f"<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>"
            f"<p>Judge: {html.escape(self.judge)}</p>"
        )


_COUNTS = ("scored", "undefined", "failed")


def open_run(folder: str | Path) -> RunResult:
    """A finished run.

    Args:
        folder: the run folder.

    Raises:
        RunFolderError: it does not hold a finished run.
    """
    return RunResult(folder)


def _summary_row(metric: Mapping[str, Any]) -> str:
    mean = interval = "-"
    if metric["distribution"]:
        mean = format_fixed(metric["distribution"]["mean"])
        bounds = metric["distribution"]["interval"]
        interval = f"{format_fixed(bounds['low'])} to {format_fixed(bounds['high'])}" if bounds else "-"
    lower = " ↓" if metric["direction"] == "lower" else ""
    cells = (f"{metric['metric']}{lower}", mean, interval, *(str(metric[count]) for count in _COUNTS))
    return f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in cells)}</tr>"
