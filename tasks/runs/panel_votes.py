"""Read the votes of the judges of a panel or a cascade from the tables of a run folder."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq

from metric_core.stages import Stage
from tasks.runs.run_folder import STAGES


def read_votes(folder: Path, stage: Stage, *columns: str) -> Iterator[tuple[Any, ...]]:
    """Yield the values of columns, and the votes, of each row of a stage with votes; nothing without its table.

    Args:
        folder: Run folder with the stage tables.
    """
    table = folder / STAGES / f"{stage}.parquet"
    if not table.exists():
        return
    with pq.ParquetFile(table) as file:
        for batch in file.iter_batches(columns=[*columns, "panel"]):
            of_panel = batch.filter(pc.is_valid(batch.column("panel")))
            yield from ((*(row[name] for name in columns), row["panel"]) for row in of_panel.to_pylist())
