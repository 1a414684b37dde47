"""Measure from the tables of a run folder how far the judges of a panel agree, and who gave which verdicts."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq

from metric_core.calibration.sure_threshold import describe_verdicts
from metric_core.stages import Stage
from metric_core.statistics.agreement import Agreement, Labels, measure_agreement
from tasks.record.run_summary import CascadeCount
from tasks.runs.run_folder import STAGES

_GROUPS = {Stage.VERDICTS: "kind", Stage.RATINGS: "metric"}
"""Mapping from stage with votes of a panel to the column that groups them."""


def measure_panel_agreement(folder: Path) -> dict[str, dict[str, Agreement]]:
    """Return the panel agreement of a run, for summary.json; empty without a panel.

    Args:
        folder: Run folder with the stage tables.

    Returns:
        A mapping from stage to a mapping from verdict kind or metric to the agreement.
    """
    agreements: dict[str, dict[str, Agreement]] = {}
    for stage, group in _GROUPS.items():
        table = folder / STAGES / f"{stage}.parquet"
        if table.exists():
            labels: dict[str, list[Labels]] = defaultdict(list)
            for name, votes in _panels(table, group):
                labels[name].append({vote["judge"]: vote["label"] for vote in votes})
            agreements[str(stage)] = {name: measure_agreement(items) for name, items in sorted(labels.items())}
    return {stage: groups for stage, groups in agreements.items() if groups}


def count_cascade(folder: Path) -> dict[str, CascadeCount]:
    """Return who gave the verdicts of a run with a cascade, for summary.json.

    Args:
        folder: Run folder with the stage tables.

    Returns:
        A mapping from the verdicts, as `describe_verdicts` names them, to how many the cheaper judge was asked for and
        gave alone.
    """
    asked: Counter[str] = Counter()
    alone: Counter[str] = Counter()
    table = folder / STAGES / f"{Stage.VERDICTS}.parquet"
    for *key, votes in _panels(table, "kind", "claim_id", "premise") if table.exists() else ():
        about = describe_verdicts(*map(str, key))
        asked[about] += 1
        alone[about] += len(votes) == 1
    return {about: CascadeCount(asked=count, alone=alone[about]) for about, count in sorted(asked.items())}


def _panels(table: Path, *columns: str) -> Iterator[tuple[Any, ...]]:
    """Yield the values of columns, and the votes, of each row with votes."""
    with pq.ParquetFile(table) as file:
        for batch in file.iter_batches(columns=[*columns, "panel"]):
            of_panel = batch.filter(pc.is_valid(batch.column("panel")))
            yield from ((*(row[name] for name in columns), row["panel"]) for row in of_panel.to_pylist())
