"""Check the tables of a run folder before they are used: they may be damaged, or written by another program."""

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

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
    cells = table.select(["row_id", "metric"]).group_by(["row_id", "metric"]).aggregate([([], "count_all")])
    if cells.num_rows < table.num_rows:
        twice = cells.filter(pc.greater(cells["count_all"], 1)).to_pylist()[0]
        raise RunFolderError(
            f"the table {path} cannot be read: the row {twice['row_id']!r} has {twice['count_all']} cells of "
            f"{twice['metric']}, wanted one. {AGAIN}"
        )
