"""Draw rows of a run for people to label, each with a known probability."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from metric_core.errors import ConfigError
from metric_core.records import Status
from metric_core.stages import Stage
from metric_core.statistics.resampling import SEED
from tasks.calibration.label_pairing import PROBABILITY_COLUMN, group_of_cell
from tasks.comparison.run_pair import Matching, RunRows
from tasks.runs.finished_run import FinishedRun

SHOWN = ("user_input", "retrieved_contexts", "response", "reference")
"""Sample columns that people see. The scores are left out: they would influence the labels."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleOptions:
    """Options of a sample of rows.

    Args:
        rows: Number of rows to draw, at least 1.
        label: Name of the empty column for the labels.
        metric: Key of a metric: only rows with a score of it are drawn. None draws from all rows.
        by: Column that groups rows: at most one row per group is drawn, since labels of rows that belong together say
            less than those of others. None draws rows independently.
        seed: Seed of the random generator.
    """

    rows: int
    label: str = "label"
    metric: str | None = None
    by: str | None = None
    seed: int = SEED


def sample_rows(run: Path, options: SampleOptions) -> pa.Table:
    """Draw rows of a run at random, and return them in random order with an empty column for the labels.

    People can stop anywhere: the rows labelled so far are a random sample, too.

    Args:
        run: Run folder.
        options: Options of the sample.

    Raises:
        RunFolderError: The folder does not hold a finished run.
        ConfigError: There are too few rows or groups, the metric or the column is unknown, or the name of the labels is
            taken.
    """
    label, by = options.label, options.by
    finished = FinishedRun(run)
    samples = pa.concat_tables(finished.samples())
    ids: list[str] = samples["row_id"].to_pylist()
    if label in (*SHOWN, "id", PROBABILITY_COLUMN):
        raise ConfigError(
            f"the labels cannot have the name {label!r}, which is that of another column; name another one"
        )
    eligible = ids if options.metric is None else _scored(finished, options.metric, ids)
    groups = None if by is None else RunRows.from_run(finished, Matching(by=by)).groups
    drawn = draw(eligible, options.rows, groups, np.random.default_rng(options.seed))
    place = {row_id: number for number, row_id in enumerate(ids)}
    chosen = samples.take([place[row_id] for row_id in drawn])
    table = pa.table({"id": chosen["row_id"], **{name: chosen[name] for name in SHOWN}})
    table = table.append_column(label, pa.nulls(len(drawn), pa.string()))
    return table.append_column(PROBABILITY_COLUMN, pa.array(list(drawn.values()), pa.float64()))


def draw(
    rows: Sequence[str], count: int, groups: Mapping[str, str] | None, generator: np.random.Generator
) -> dict[str, float]:
    """Draw rows at random, at most one per group, in random order.

    Args:
        rows: Ids of the rows to draw from.
        count: Number of rows to draw.
        groups: Group of each row, for rows that have one; None draws rows independently.
        generator: Random generator.

    Returns:
        A mapping from the id of each drawn row to the probability with which it was drawn.

    Raises:
        ConfigError: There are fewer rows or groups than rows to draw.

    >>> groups = {"a": "x", "b": "x", "c": "y"}
    >>> sorted(draw(["a", "b", "c"], 2, groups, np.random.default_rng(1)).values())
    [0.5, 1.0]
    """
    members: dict[str, list[str]] = {}
    for row_id in rows:
        members.setdefault(group_of_cell(row_id, None if groups is None else groups.get(row_id)), []).append(row_id)
    if not 1 <= count <= len(members):
        noun = "rows" if groups is None else "groups of rows"
        raise ConfigError(f"cannot draw {count} rows: there are {len(members)} {noun} to draw from")
    names = list(members)
    drawn = {}
    for number in generator.permutation(len(names))[:count]:
        group = members[names[number]]
        drawn[group[int(generator.integers(len(group)))]] = count / len(names) / len(group)
    return drawn


def _scored(run: FinishedRun, metric: str, ids: Sequence[str]) -> list[str]:
    """Return the rows with a score of a metric."""
    known = [entry["key"] for entry in run.manifest["metrics"]]
    if metric not in known:
        raise ConfigError(f"the run {run.folder} has no metric {metric!r}; it has: {', '.join(known)}")
    cells = run.rows(Stage.AGGREGATION, ids).to_pylist()
    return [cell["row_id"] for cell in cells if cell["metric"] == metric and cell["status"] == Status.SCORED]
