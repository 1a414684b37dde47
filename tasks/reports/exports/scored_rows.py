"""Read the scores of a run row by row, with the trace that each row came from."""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from metric_core.columns import SESSION_ID
from metric_core.errors import ConfigError
from metric_core.metrics.registry import resolve
from metric_core.records import Status
from metric_core.stages import Stage, any_judged
from tasks.record.run_record import MetricRecord
from tasks.runs.run_folder import SCORES, STAGES, RunFolder
from tasks.runs.run_tables import read_table

TRACE_ID, SPAN_ID, RESPONSE_ID = "trace_id", "span_id", "response_id"
"""Columns of the data that say where a row came from; the source `traces:` sets the first two."""

_EXPLAINED_RATING = "rating"


@dataclass(frozen=True, slots=True)
class Cell:
    """The score of a row.

    Args:
        value: Value; None for a cell without one.
        label: Label, of metrics whose values are categories.
        reason: Reason why the value is missing.
        explanation: Explanation of the judge, if the run asked for one.
        language_model: True if a language model judged the metric.
    """

    metric: str
    status: Status
    value: float | None
    label: str | None
    reason: str | None
    explanation: str | None = None
    language_model: bool = False

    @property
    def is_scored(self) -> bool:
        """Whether it has a value or a label."""
        return self.status is Status.SCORED

    @property
    def has_failed(self) -> bool:
        """Whether there was no usable answer for it."""
        return self.status is Status.FAILED


@dataclass(frozen=True, slots=True)
class ScoredRow:
    """A row with its scores.

    Args:
        cells: Cells, in the order of the metrics.
        trace_id: Id of its trace; None if it came from none.
        span_id: Id of the span that answered.
        session_id: Id of its conversation.
        response_id: Id that the model's server gave the response.
    """

    row_id: str
    cells: tuple[Cell, ...]
    trace_id: str | None = None
    span_id: str | None = None
    session_id: str | None = None
    response_id: str | None = None

    @property
    def scored(self) -> tuple[Cell, ...]:
        """The cells that have a value or a label."""
        return tuple(cell for cell in self.cells if cell.is_scored)


def read_scored_rows(folder: Path) -> Iterator[ScoredRow]:
    """Yield the rows of a run with their scores, in the order of the data.

    Raises:
        RunFolderError: The folder does not hold a finished run.
    """
    record = RunFolder(folder).read_finished_record()
    judged = {
        metric.key
        for metric in record.metrics
        if metric.language_model or (record.judge.language_model and is_judged(metric))
    }
    explanations = _explanations(folder)
    cells: defaultdict[str, list[Cell]] = defaultdict(list)
    for row in read_table(folder, SCORES).to_pylist():
        key = (row["row_id"], row["metric"])
        cells[row["row_id"]].append(
            Cell(
                row["metric"],
                Status(row["status"]),
                row["value"],
                row["label"],
                row["reason"],
                explanations.get(key),
                row["metric"] in judged,
            )
        )
    samples = read_table(folder, f"{STAGES}/{Stage.SAMPLES}.parquet")
    sessions = samples[SESSION_ID].to_pylist() if SESSION_ID in samples.column_names else [None] * len(samples)
    for row, session in zip(samples.select(["row_id", "extras"]).to_pylist(), sessions, strict=True):
        extras = json.loads(row["extras"]) if row["extras"] else {}
        yield ScoredRow(
            row["row_id"],
            tuple(cells[row["row_id"]]),
            trace_id=_name(extras, TRACE_ID),
            span_id=_name(extras, SPAN_ID),
            session_id=session,
            response_id=_name(extras, RESPONSE_ID),
        )


def is_judged(metric: MetricRecord) -> bool:
    """Return whether a judge was asked for a metric; of custom metrics, only what they declare is known."""
    if metric.language_model:
        return True
    try:
        products = resolve(metric.name).request(metric.parameters).products
    except ConfigError:
        return False
    return any_judged(products)


def _explanations(folder: Path) -> Mapping[tuple[str, str], str]:
    """Return the explanations of ratings by row and metric; those of verdicts are about single claims."""
    path = f"{STAGES}/{Stage.EXPLANATIONS}.parquet"
    if not (folder / path).is_file():
        return {}
    rows = read_table(folder, path).to_pylist()
    return {
        (row["row_id"], row["metric"]): row["text"] for row in rows if row["kind"] == _EXPLAINED_RATING and row["text"]
    }


def _name(extras: Mapping[str, Any], column: str) -> str | None:
    value = extras.get(column)
    return str(value) if isinstance(value, (str, int)) and str(value).strip() else None
