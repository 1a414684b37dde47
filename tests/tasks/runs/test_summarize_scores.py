"""The summary that is read column by column is the summary of the cells taken one by one."""

import random
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from metric_core.records import Direction, Score
from metric_core.schemas import SCORES as SCHEMA
from metric_core.statistics.summary import summarize
from tasks.runs import run_folder
from tasks.runs.row_grouping import group_names
from tasks.runs.run_folder import SCORES, RunFolder

METRICS = {"plain": (0.0, 1.0), "scaled": None, "kinds": None, "empty": (0.0, 1.0)}


def random_score(metric: str, draw: random.Random) -> Score:
    """Return a value, with a scale or as a category for metrics of these kinds, or a cell without one."""
    if metric == "empty" or draw.random() < 0.2:
        reason = draw.choice(["no claims", "no answer", "too long"])
        return Score.undefined(reason) if draw.random() < 0.6 else Score.failed(reason)
    if metric == "kinds":
        return Score.labelled(draw.choice(["good", "bad", "mixed"]))
    if metric == "scaled":
        return Score.scored(draw.random(), draw.choice(["1 to 5", "0 to 3"]))
    return Score.scored(draw.choice([0.0, 0.25, 1 / 3, 1.0]))


@pytest.mark.parametrize("values_at_once", [1, 700, run_folder.MOST_VALUES])
@pytest.mark.parametrize("grouped", [False, True], ids=["rows", "groups"])
def test_columns_give_the_summary_of_the_cells(
    grouped: bool, values_at_once: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_folder, "MOST_VALUES", values_at_once)
    draw, ids = random.Random(7), [f"row-{number}" for number in range(300)]
    scores = {metric: {row: random_score(metric, draw) for row in ids} for metric in METRICS}
    cells: list[dict[str, Any]] = [
        {
            "row_id": row,
            "metric": metric,
            "value": (score := scores[metric][row]).value,
            "status": str(score.status),
            "reason": score.reason,
            "label": score.label,
        }
        for row in ids
        for metric in METRICS
    ]
    pq.write_table(pa.Table.from_pylist(cells, SCHEMA.arrow), tmp_path / SCORES, row_group_size=100)
    groups = {row: str(number % 40) for number, row in enumerate(ids) if number % 5} if grouped else None
    requests: list[Any] = [
        SimpleNamespace(key=metric, metric=SimpleNamespace(direction=Direction.HIGHER), bounds=bounds)
        for metric, bounds in METRICS.items()
    ]
    expected = [
        summarize(
            metric,
            Direction.HIGHER,
            scores[metric].values(),
            bounds,
            None if groups is None else group_names(scores[metric], groups),
        )
        for metric, bounds in METRICS.items()
    ]
    assert RunFolder(tmp_path).summarize_scores(requests, groups) == expected
    assert [summary.scored for summary in expected][-1] == 0
    assert len(expected[1].scales) == 2
    assert len(expected[2].categories) == 3
    weights = {row: 1.0 + number % 3 for number, row in enumerate(ids)}
    weighted = RunFolder(tmp_path).summarize_scores(requests, groups, weights)[0].distribution
    known = {row: score.value for row, score in scores["plain"].items() if score.value is not None}
    assert weighted is not None
    assert weighted.mean == pytest.approx(np.average(list(known.values()), weights=[weights[row] for row in known]))
    assert weighted.mean_of_rows == pytest.approx(np.mean(list(known.values())))
