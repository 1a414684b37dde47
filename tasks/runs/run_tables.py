"""Read the tables of a run folder, and check that they are what their names say."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from metric_core.errors import RunFolderError
from metric_core.stages import Stage
from tasks.runs.file_checks import check_cells, check_table
from tasks.runs.run_folder import SCORES


def read_table(folder: Path, name: str) -> pa.Table:
    """Return a table of a run folder.

    Raises:
        RunFolderError: The table does not exist, or cannot be read.
    """
    path = folder / name
    try:
        with pq.ParquetFile(path) as file:
            table = file.read()
    except FileNotFoundError as error:
        tables = sorted(str(path.relative_to(folder)) for path in folder.glob("**/*.parquet"))
        hint = f"It has {', '.join(tables)}." if tables else "It is not the folder of a finished run."
        raise RunFolderError(f"{folder} has no {name}. {hint}") from error
    except (OSError, pa.ArrowException) as error:
        raise RunFolderError(f"{path} cannot be read ({error}). Run the evaluation again.") from error
    stage = Stage.AGGREGATION if name == SCORES else Stage(path.stem)
    check_table(table.schema, stage, path)
    if stage is Stage.AGGREGATION:
        check_cells(table, path)
    return table
