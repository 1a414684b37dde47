"""Run folders to compare: pairs with a metric of each direction, and a pair with hostile data."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from metric_core.records import Score
from metric_core.stages import Stage
from tests.tasks.reports import folders

METRICS: Mapping[str, Mapping[str, Any]] = {
    "faithfulness": {"direction": "higher", "bounds": [0.0, 1.0]},
    "noise_sensitivity": {"direction": "lower", "bounds": [0.0, 1.0], "parameters": {"mode": "relevant"}},
    "nv_accuracy": {"direction": "higher", "bounds": [0.0, 1.0], "language_model": True},
}
ROWS = 40


def write_run(
    folder: Path,
    level: float | Sequence[float],
    answer: str | Sequence[str] = "In Dublin.",
    first: int = 0,
    rows: int = ROWS,
    *,
    extras: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None,
    **manifest: Any,
) -> Path:
    """Write a run in ten topics, with faithfulness near a level and noise sensitivity near its opposite.

    Args:
        folder: Path of the run folder.
        level: Lowest faithfulness of a row, in [0, 0.9]; or that of each row.
        answer: Response of every row, or of each.
        first: Number of the first row.
        rows: Number of rows.
        extras: Further columns of every row, or of each.
        **manifest: Further entries of the manifest.
    """
    ids = [f"row-{i:02}" for i in range(first, first + rows)]
    levels = [level] * rows if isinstance(level, float) else level
    answers = [answer] * rows if isinstance(answer, str) else answer
    further = [extras or {}] * rows if extras is None or isinstance(extras, Mapping) else extras
    scores = {
        row_id: {
            "faithfulness": Score.scored(levels[i - first] + (i % 3) * 0.05),
            "noise_sensitivity": Score.scored(0.9 - levels[i - first] - (i % 3) * 0.05),
            "nv_accuracy": Score.undefined("needs a language-model judge"),
        }
        for i, row_id in enumerate(ids, start=first)
    }
    samples = [
        {
            "row_id": row_id,
            "row_number": i + 1,
            "user_input": f"Where are bikes repaired, {i}?",
            "response": answers[i - first],
            "retrieved_contexts": ["Repairs happen in Dublin."],
            "reference": "In Dublin.",
            "extras": json.dumps({"topic": f"topic {i % 10}", **further[i - first]}),
        }
        for i, row_id in enumerate(ids, start=first)
    ]
    return folders.write_run(folder, scores, {Stage.SAMPLES: samples}, METRICS, {"status": "completed", **manifest})


def change_reference(folder: Path, row_id: str) -> None:
    """Give a row of a run another reference."""
    path = folder / "stages" / f"{Stage.SAMPLES}.parquet"
    rows = [
        row | ({"reference": "In Cork."} if row["row_id"] == row_id else {}) for row in pq.read_table(path).to_pylist()
    ]
    folders.write_table(path, Stage.SAMPLES, rows)


def write_hostile_pair(folder: Path) -> tuple[Path, Path]:
    """Two runs whose texts try to break out of the page; every score of the first is another in the second."""
    runs = []
    for name, scores in (("a", folders.SCORES), ("b", _turned(folders.SCORES))):
        run = folder / name
        cells = {row_id: {"nv_accuracy": Score.undefined(folders.ATTACK), **row} for row_id, row in scores.items()}
        manifest = {
            "status": "completed",
            "source": folders.ATTACK,
            "judge": {"backend": name, "model": folders.ATTACK},
        }
        runs.append(folders.write_run(run, cells, _stages(name), folders.METRICS, manifest))
    return runs[0], runs[1]


def _turned(scores: Mapping[str, Mapping[str, Score]]) -> dict[str, dict[str, Score]]:
    return {row: {metric: _other(score) for metric, score in cells.items()} for row, cells in scores.items()}


def _other(score: Score) -> Score:
    return score if score.value is None or score.label else Score.scored(1.0 - score.value)


def _stages(run: str) -> dict[Stage, Sequence[Mapping[str, Any]]]:
    if run == "a":
        return dict(folders.STAGES)
    samples = [{**row, "response": f"{row['response']} {folders.ATTACK}"} for row in folders.STAGES[Stage.SAMPLES]]
    return {**folders.STAGES, Stage.SAMPLES: samples}
