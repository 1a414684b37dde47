"""Measure panel agreement from the tables of a run folder."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq

from metric_core.stages import Stage
from metric_core.statistics.agreement import Labels, measure_agreement
from tasks.runs.run_folder import STAGES

_GROUPS = {Stage.VERDICTS: "kind", Stage.RATINGS: "metric"}
"""Mapping from stage with votes of a panel to the column that groups them."""


def measure_panel_agreement(folder: Path) -> dict[str, dict[str, Any]]:
    """Return the panel agreement of a run, for summary.json; empty without a panel.

    Args:
        folder: Run folder with the stage tables.

    Returns:
        A mapping from stage to a mapping from verdict kind or metric to the fields of an Agreement.
    """
    agreements = {}
    for stage, group in _GROUPS.items():
        table = folder / STAGES / f"{stage}.parquet"
        if table.exists():
            labels: dict[str, list[Labels]] = defaultdict(list)
            for name, votes in _panels(table, group):
                labels[name].append({vote["judge"]: vote["label"] for vote in votes})
            agreements[str(stage)] = {name: asdict(measure_agreement(items)) for name, items in sorted(labels.items())}
    return {stage: groups for stage, groups in agreements.items() if groups}


def _panels(table: Path, group: str) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    with pq.ParquetFile(table) as file:
        for batch in file.iter_batches(columns=[group, "panel"]):
            of_panel = batch.filter(pc.is_valid(batch.column("panel")))
            yield from ((row[group], row["panel"]) for row in of_panel.to_pylist())
