"""Export the scores of a run in the shapes and formats that other programs read.

`long` has one row per cell, like scores.parquet; `wide` has one row per sample and one column per metric; `ragas` adds
the texts to `wide`, under the column names of Ragas. `langfuse` and `langsmith` have one row per scored cell of a row
that came from a trace, with the fields of a score or feedback of that product.
"""

import json
from collections.abc import Callable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import IO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from metric_core.errors import ConfigError
from metric_core.parsing.suggestions import suggest_names
from metric_core.records import Status
from metric_core.stages import Stage
from tasks.reports.exports.score_files import langfuse_scores, langsmith_feedback
from tasks.reports.exports.scored_rows import read_scored_rows
from tasks.runs.run_folder import SCORES, STAGES, RunFolder
from tasks.runs.run_tables import read_table
from tasks.runtime.atomic_files import output_file
from tasks.runtime.jsonl_text import to_json_lines

RAGAS_COLUMNS = ("user_input", "retrieved_contexts", "response", "reference")


class Shape(StrEnum):
    """Layout of a run's scores."""

    LONG = "long"
    WIDE = "wide"
    RAGAS = "ragas"
    LANGFUSE = "langfuse"
    LANGSMITH = "langsmith"


class Format(StrEnum):
    """File format of an export."""

    CSV = "csv"
    JSONL = "jsonl"
    PARQUET = "parquet"


def reshape(folder: Path, shape: Shape) -> pa.Table:
    """Return the scores of a run in a shape.

    Args:
        shape: Layout of the scores. In `wide` and `ragas` a cell without a value is null; a metric whose values are
            categories has a column of labels.

    Raises:
        RunFolderError: The folder does not hold a finished run.
        ConfigError: The shape needs rows that came from traces, and there is none.
    """
    if shape is Shape.LANGFUSE:
        return langfuse_scores(read_scored_rows(folder), folder.name)
    if shape is Shape.LANGSMITH:
        return langsmith_feedback(read_scored_rows(folder), folder.name)
    record = RunFolder(folder).read_finished_record()
    scores = read_table(folder, SCORES)
    if shape is Shape.LONG:
        return scores
    samples = read_table(folder, f"{STAGES}/{Stage.SAMPLES}.parquet")
    columns = ["row_id"] if shape is Shape.WIDE else ["row_id", *RAGAS_COLUMNS]
    metrics = [metric.key for metric in record.metrics]
    wide = samples.select(columns)
    for metric in metrics:
        wide = wide.append_column(metric, _column(scores, metric, samples["row_id"]))
    return wide


def list_failed_cells(folder: Path) -> pa.Table:
    """Return the cells for which the judge returned nothing usable, with their reasons.

    Raises:
        RunFolderError: The folder does not hold a finished run.
    """
    RunFolder(folder).read_finished_record()
    scores = read_table(folder, SCORES)
    return scores.filter(pc.equal(scores["status"], Status.FAILED.value))


def write_export(table: pa.Table, target: Path | IO[bytes], file_format: Format) -> None:
    """Write a table to a file or a stream of bytes.

    Args:
        table: Table to write. In CSV, lists become JSON.

    Raises:
        RunFolderError: The file cannot be written.
    """
    write = _WRITERS[file_format]
    if not isinstance(target, Path):
        write(table, target)
        return
    with output_file(target, "the export") as temporary, temporary.open("wb") as file:
        write(table, file)


def guess_format(path: Path) -> Format:
    """Return the format that a file's extension names.

    Raises:
        ConfigError: The extension names no known format.

    >>> str(guess_format(Path("scores.CSV")))
    'csv'
    """
    suffix = path.suffix.removeprefix(".").lower()
    if suffix not in set(Format):
        known = ", ".join(f".{name}" for name in Format)
        raise ConfigError(
            f"the name {path.name!r} does not say the format; end it with one of {known}, or name the format"
        )
    return Format(suffix)


def parse_shape(name: str) -> Shape:
    """Return a shape by its name.

    Raises:
        ConfigError: No shape has the name.
    """
    return Shape(_one_of(name, list(Shape), "a shape"))


def parse_format(name: str) -> Format:
    """Return a format by its name.

    Raises:
        ConfigError: No format has the name.
    """
    return Format(_one_of(name, list(Format), "a format"))


def _one_of(name: str, known: Sequence[str], kind: str) -> str:
    if name not in known:
        near = suggest_names(name, known)
        hint = f" Did you mean {near[0]}?" if near else ""
        raise ConfigError(f"{kind} is one of {', '.join(known)}, got {name!r}.{hint}")
    return name


def _column(scores: pa.Table, metric: str, row_ids: pa.ChunkedArray) -> pa.Array:
    """Return the values of a metric in the order of the rows; its labels if it has labels only."""
    cells = scores.filter(pc.equal(scores["metric"], metric))
    categorical = cells["value"].null_count == len(cells) and cells["label"].null_count < len(cells)
    positions = pc.index_in(row_ids, value_set=cells["row_id"].combine_chunks())
    return cells["label" if categorical else "value"].combine_chunks().take(positions.combine_chunks())


def _write_csv(table: pa.Table, file: IO[bytes]) -> None:
    flat = [
        _as_text(table[name]) if pa.types.is_nested(table[name].type) else table[name] for name in table.column_names
    ]
    pa_csv.write_csv(pa.table(flat, names=table.column_names), file)


def _as_text(column: pa.ChunkedArray) -> pa.Array:
    texts = [None if value is None else json.dumps(value, ensure_ascii=False) for value in column.to_pylist()]
    return pa.array(texts, pa.string())


def _write_jsonl(table: pa.Table, file: IO[bytes]) -> None:
    for batch in table.to_batches(max_chunksize=1000):
        file.write(to_json_lines(batch.to_pylist()).encode())


_WRITERS: dict[Format, Callable[[pa.Table, IO[bytes]], None]] = {
    Format.CSV: _write_csv,
    Format.JSONL: _write_jsonl,
    Format.PARQUET: pq.write_table,
}
