"""Measure how often intervals of the plain and the bias-corrected mean contain the labels' mean, on public data.

    PYTHONPATH=. python benchmarks/judge_error.py

Evaluates each data set once with the built-in judge. Each repetition takes half of the groups as labelled rows, and
draws a run from the rows of the other half, with the same share of good rows, with more, or with fewer. Needs the
labelled data in `../shared/meta_eval` beside the repository, and some minutes.
"""

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

from benchmarks.labelled_examples import DATA, rows
from flows.config.run_config import RunConfig
from flows.evaluate import run_evaluation
from metric_core.calibration.judge_error import correct_mean, estimate_judge_error
from metric_core.statistics.bounded_means import Bounds, estimate_interval
from metric_core.statistics.resampling import SEED, Floats, Units
from tasks.runs.run_folder import SCORES

REPEATS = 300
SETS = {
    "faithfulness_ragtruth_qa": ("label_hallucinated", 1.0, 0.0),
}
"""Data set -> column with the labels, worst label, best label."""

TILTS = {"as labelled": 0.0, "better": 1.5, "worse": -1.5}


def main() -> None:
    """Run the simulation and print one line per data set and share."""
    if not DATA.is_dir():
        sys.exit(f"the labelled data is missing: no {DATA}")
    heading = ("share of intervals that contain the truth", "mean error", "half width")
    print(f"{'':40}{heading[0]:>48}{heading[1]:>24}{heading[2]:>12}")
    with tempfile.TemporaryDirectory() as folder:
        for name in SETS:
            labels, scores, groups = _evaluate(name, Path(folder))
            for what, tilt in TILTS.items():
                found = _simulate(labels, scores, groups, tilt)
                print(
                    f"{name:28}{what:>12}   plain {found[0]:6.2f}   corrected {found[1]:6.2f}"
                    f"{'':16}plain {found[2]:.3f} corrected {found[3]:.3f}   {found[4]:.3f}",
                    flush=True,
                )


def _evaluate(name: str, folder: Path) -> tuple[Floats, Floats, NDArray[np.str_]]:
    source = str(DATA / f"{name}.parquet")
    out = folder / name
    run_evaluation(RunConfig(source=source, metrics=("faithfulness",), out=str(out), on_bad_row="skip"))
    values = {row["row_id"]: row["value"] for row in pq.read_table(out / SCORES).to_pylist()}
    column, worst, best = SETS[name]
    cells = [
        ((float(row[column]) - worst) / (best - worst), values[row["id"]], row["group_id"])
        for row in rows(name)
        if row[column] is not None and values.get(row["id"]) is not None
    ]
    labels, scores, groups = zip(*cells, strict=True)
    return np.array(labels), np.array(scores), np.array(groups)


def _simulate(labels: Floats, scores: Floats, groups: NDArray[np.str_], tilt: float) -> Floats:
    """Return the means over repetitions of what `_repetitions` yields."""
    generator = np.random.default_rng(1)
    return np.array(list(_repetitions(labels, scores, groups, tilt, generator))).mean(axis=0)


def _repetitions(
    labels: Floats, scores: Floats, groups: NDArray[np.str_], tilt: float, generator: np.random.Generator
) -> Iterator[tuple[float, ...]]:
    names = np.unique(groups)
    for _ in range(REPEATS):
        known = np.isin(groups, generator.permutation(names)[: len(names) // 2])
        weights = np.exp(tilt * labels[~known])
        weights /= weights.sum()
        truth = float(weights @ labels[~known])
        run = generator.choice(scores[~known], size=int((~known).sum()), p=weights)
        error = estimate_judge_error(labels[known], scores[known], (0.0, 1.0), groups[known].tolist())
        plain = estimate_interval(Units.from_values(run), Bounds(0.0, 1.0), SEED)
        if error is None or plain is None:
            continue
        corrected = correct_mean(error, Units.from_values(run))
        low, high = corrected.interval().low, corrected.interval().high
        middle = (low + high) / 2 if corrected.value is None else corrected.value
        covered = plain.low <= truth <= plain.high, low <= truth <= high
        yield *map(float, covered), abs(float(run.mean()) - truth), abs(middle - truth), (high - low) / 2


if __name__ == "__main__":
    main()
