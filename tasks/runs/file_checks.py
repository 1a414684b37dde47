"""Check the tables of a run folder before they are used: they may be damaged, or written by another program."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from metric_core.errors import RunFolderError
from metric_core.records import Status
from metric_core.schemas import SCHEMAS
from metric_core.stages import Stage
from tasks.record.record_files import AGAIN


def unreadable_error(path: Path, error: Exception) -> RunFolderError:
    """Return the error for a table that is damaged or cannot be read."""
    return RunFolderError(f"the table {path} cannot be read ({error}). Evaluate the source again with `assay run`.")


def check_table(schema: pa.Schema, stage: Stage, path: Path) -> None:
    """Refuse a table whose version or columns are not those of its stage.

    Raises:
        RunFolderError: They are not; the message names the version or the column.
    """
    expected = SCHEMAS[stage]
    version = (schema.metadata or {}).get(b"assay.version", b"none").decode(errors="replace")
    if not expected.can_read(version):
        raise RunFolderError(
            f"the table {path} has schema version {version}, this rag-assay reads {expected.version}. {AGAIN}"
        )
    for field in expected.fields:
        found = schema.get_all_field_indices(field.name)
        if not found and field.name in expected.optional:
            continue
        if len(found) != 1:
            problem = "no column" if not found else f"{len(found)} columns"
            raise RunFolderError(f"the table {path} cannot be read: it has {problem} {field.name}. {AGAIN}")
        if (kind := schema.field(found[0]).type) != field.type:
            raise RunFolderError(
                f"the table {path} cannot be read: its column {field.name} holds {kind}, wanted {field.type}. {AGAIN}"
            )


def check_cells(table: pa.Table, path: Path) -> None:
    """Refuse scores that rag-assay does not write: each cell is a finite value or a label, or has none with a reason.

    Args:
        table: Rows of the score table with the columns `row_id`, `metric`, `value`, `status` and `label`.

    Raises:
        RunFolderError: A cell is of another kind; the message names it.
    """
    value, status = table["value"], table["status"]
    is_scored = pc.equal(status, str(Status.SCORED))
    has_value = pc.or_(pc.is_valid(value), pc.is_valid(table["label"]))
    known = pa.array([str(each) for each in Status])
    problems = {
        "no row or no metric": pc.or_(pc.is_null(table["row_id"]), pc.is_null(table["metric"])),
        "an unknown status": pc.invert(pc.is_in(status, value_set=known)),
        "a value that is not finite": pc.invert(pc.fill_null(pc.is_finite(value), fill_value=True)),
        "a status that contradicts its value": pc.not_equal(is_scored, has_value),
    }
    for problem, is_wrong in problems.items():
        if (index := pc.index(pc.fill_null(is_wrong, fill_value=False), value=True).as_py()) >= 0:
            cell = table.slice(index, 1).to_pylist()[0]
            got = {name: cell[name] for name in ("row_id", "metric", "status", "value", "label")}
            raise RunFolderError(f"the table {path} cannot be read: a cell has {problem}: {got}. {AGAIN}")
    rows, metrics = (number_texts(table[name])[0] for name in ("row_id", "metric"))
    cells = rows * (metrics.max(initial=0) + 1) + metrics
    counts = np.bincount(cells)
    if counts.max(initial=0) > 1:
        index = int(np.argmax(counts[cells] > 1))
        twice = table.slice(index, 1).to_pylist()[0]
        raise RunFolderError(
            f"the table {path} cannot be read: the row {twice['row_id']!r} has {counts[cells[index]]} cells of "
            f"{twice['metric']}, wanted one. {AGAIN}"
        )


def number_texts(column: pa.ChunkedArray) -> tuple[NDArray[np.int64], pa.Array]:
    """Return the number of each text of a column without nulls, and the different texts in the order of their numbers.

    >>> number_texts(pa.chunked_array([["b", "a", "b"]]))[0].tolist()
    [0, 1, 0]
    """
    if pa.types.is_dictionary(column.type):  # each chunk may have a dictionary of its own
        lists = [chunk.dictionary for chunk in column.chunks]
        numbers, texts = number_texts(pa.chunked_array(lists, column.type.value_type))
        ends = np.cumsum([len(each) for each in lists])
        placed = zip(np.split(numbers, ends), column.chunks, strict=False)
        return _joined([of_list[chunk.indices.to_numpy()] for of_list, chunk in placed]), texts
    chunks = column.dictionary_encode().chunks  # they share one dictionary
    joined = _joined([chunk.indices.to_numpy() for chunk in chunks])
    return joined, chunks[0].dictionary if chunks else pa.array([], column.type)


def _joined(parts: Sequence[NDArray[np.integer]]) -> NDArray[np.int64]:
    return np.concatenate([np.zeros(0, np.int64), *parts])
