"""Store the labels of the rows of a run in its folder, with the way in which the rows were chosen."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from metric_core.calibration.sampled_labels import SampledLabels
from metric_core.errors import ConfigError, RunFolderError
from tasks.runs.finished_run import FinishedRun
from tasks.runs.row_weights import read_weights
from tasks.runs.run_folder import LABELS
from tasks.runtime.atomic_files import atomic_file, translate_write_errors

PART = "\x1f"
"""Separator between the id of a row and the rest of the name of a verdict."""
_MIDDLE = 0.5
_SCHEMA = pa.schema(
    [
        pa.field("row_id", pa.string(), nullable=False),
        pa.field("metric", pa.string(), nullable=False),
        pa.field("score", pa.float64(), nullable=False),
        pa.field("label", pa.float64()),
        pa.field("probability", pa.float64()),
        pa.field("group", pa.string()),
        pa.field("stratum", pa.string()),
        pa.field("weight", pa.float64()),
    ]
)


class Disagreement(StrEnum):
    """Kind of disagreement: among people, among judges, between judge and people, or none but an unsure cascade."""

    PEOPLE = "people"
    JUDGES = "judges"
    JUDGE_AND_PEOPLE = "judge-people"
    UNSURE = "unsure"


@dataclass(frozen=True, slots=True)
class RunLabels:
    """The scored rows of a run, or the verdicts behind their scores, with the labels of some, for one metric.

    Args:
        scores: Score of each row, from 0 to 1.
        labels: Label of each row, from 0 to 1; None if it has none.
        probabilities: Probability with which each labelled row was drawn; None if all are equal.
        groups: Group of each row; None if rows are independent.
        strata: Stratum of each labelled row, if rows were drawn from each stratum separately; else None.
        weights: Weight of each row, or verdict, in the mean; None if all rows count once.
    """

    rows: Sequence[str]
    scores: Sequence[float]
    labels: Sequence[float | None]
    probabilities: Sequence[float | None] | None = None
    groups: Sequence[str] | None = None
    strata: Sequence[str | None] | None = None
    weights: Sequence[float] | None = None

    def as_sample(self) -> SampledLabels:
        """Return the rows for estimates of the mean label."""
        probabilities = None if self.probabilities is None else np.array(self.probabilities, dtype=np.float64)
        return SampledLabels(
            rows=self.rows,
            scores=np.array(self.scores, dtype=np.float64),
            labels=np.array(self.labels, dtype=np.float64),
            probabilities=probabilities,
            groups=self.groups,
            strata=self.strata,
            weights=None if self.weights is None else np.array(self.weights, dtype=np.float64),
        )


def weigh(labels: RunLabels | None, run: FinishedRun) -> RunLabels | None:
    """Return labels with the weights of the rows of their run, if these have any."""
    config = run.record.config
    weights = read_weights(run.samples(), config.weights, config.traffic)
    if weights is None or labels is None:
        return labels
    parts = labels.weights or [1.0] * len(labels.rows)
    found = [weights[name.partition(PART)[0]] * part for name, part in zip(labels.rows, parts, strict=True)]
    return replace(labels, weights=found)


def refuse_fewer_labels(folder: Path, metric: str, labels: RunLabels | None) -> None:
    """Raise an error if the labels would replace a larger number of labels that a run has.

    Args:
        labels: Labels to write; None if none are written.

    Raises:
        ConfigError: They would replace more.
        RunFolderError: The file cannot be read.
    """
    before = read_run_labels(folder, metric)
    if before is None or labels is None:
        return
    had, got = (sum(label is not None for label in each.labels) for each in (before, labels))
    if had > got:
        raise ConfigError(
            f"the run {folder} has {had} labels of {metric}, and {got} would replace them. Use --replace to replace "
            "them, or name a file with all labels of the run"
        )


def write_labels(folder: Path, metric: str, labels: RunLabels) -> None:
    """Write the labels of a metric into a run folder; those of other metrics stay.

    Raises:
        RunFolderError: The file cannot be written.
    """
    count = len(labels.rows)
    columns: Mapping[str, Sequence[object]] = {
        "row_id": labels.rows,
        "metric": [metric] * count,
        "score": labels.scores,
        "label": labels.labels,
        "probability": labels.probabilities or [None] * count,
        "group": labels.groups or [None] * count,
        "stratum": labels.strata or [None] * count,
        "weight": labels.weights or [None] * count,
    }
    tables = [pa.table(columns, schema=_SCHEMA)]
    if (path := folder / LABELS).exists():
        others = _read(path)
        tables.insert(0, others.filter(pc.not_equal(others["metric"], metric)))
    with translate_write_errors(f"the labels {path}", RunFolderError), atomic_file(path) as temporary:
        pq.write_table(pa.concat_tables(tables), temporary)


def read_run_labels(folder: Path, metric: str) -> RunLabels | None:
    """Return the labels of a metric in a run folder; None if none of its scored rows has one.

    Raises:
        RunFolderError: The file cannot be read.
    """
    if not (folder / LABELS).exists():
        return None
    table = _read(folder / LABELS)
    table = table.filter(pc.equal(table["metric"], metric))
    if table["label"].null_count == table.num_rows:
        return None
    return RunLabels(
        rows=table["row_id"].to_pylist(),
        scores=table["score"].to_pylist(),
        labels=table["label"].to_pylist(),
        probabilities=None if table["probability"].null_count == table.num_rows else table["probability"].to_pylist(),
        groups=None if table["group"].null_count == table.num_rows else table["group"].to_pylist(),
        strata=None if table["stratum"].null_count == table.num_rows else table["stratum"].to_pylist(),
        weights=None if table["weight"].null_count == table.num_rows else table["weight"].to_pylist(),
    )


def read_contradicted(folder: Path) -> set[str]:
    """Return the ids of the rows on which a score or a verdict contradicts a label; none without labels.

    Raises:
        RunFolderError: The file cannot be read.
    """
    if not (folder / LABELS).exists():
        return set()
    table = _read(folder / LABELS)
    differs = pc.not_equal(pc.greater(table["label"], _MIDDLE), pc.greater_equal(table["score"], _MIDDLE))
    return {name.partition(PART)[0] for name in table.filter(differs)["row_id"].to_pylist()}


def _read(path: Path) -> pa.Table:
    try:
        return pq.read_table(path, schema=_SCHEMA)
    except (OSError, pa.ArrowException) as error:
        raise RunFolderError(f"{path} cannot be read ({error}). Run `assay calibrate` again.") from error
