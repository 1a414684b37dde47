"""Measure panel agreement from the tables of a run folder."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from metric_core.stages import Stage
from metric_core.statistics.agreement import Labels, measure_agreement
from tasks.runs.run_folder import STAGES

_GROUPS = {Stage.VERDICTS: "kind", Stage.RATINGS: "metric"}
"""Table with votes of a panel -> the column by whose values they are told apart."""


def measure_panel_agreement(folder: Path) -> dict[str, dict[str, Any]]:
    """Return the panel agreement of a run, for summary.json; empty without a panel.

    Args:
        folder: The run folder, with its stage tables.

    Returns:
        Stage -> verdict kind or metric -> the fields of an Agreement.
    """
    found = {}
    for stage, group in _GROUPS.items():
        table = folder / STAGES / f"{stage}.parquet"
        if table.exists():
            labels: dict[str, list[Labels]] = defaultdict(list)
            for name, votes in _panels(table, group):
                labels[name].append({vote["judge"]: vote["label"] for vote in votes})
            found[str(stage)] = {name: asdict(measure_agreement(items)) for name, items in sorted(labels.items())}
    return {stage: groups for stage, groups in found.items() if groups}


def _panels(table: Path, group: str) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    for batch in pq.ParquetFile(table).iter_batches(columns=[group, "panel"]):
        yield from ((row[group], row["panel"]) for row in batch.to_pylist() if row["panel"] is not None)
