"""Find the labelled rows that several judges scored."""

from collections.abc import Mapping

import numpy as np

from metric_core.calibration.calibrate import LabelledScores
from metric_core.calibration.labels import Scale
from metric_core.errors import SourceError
from tasks.calibration.run_labels import RunLabels


def find_common_rows(labels: Mapping[str, RunLabels], scale: Scale) -> dict[str, LabelledScores]:
    """Return the labels and scores of each judge of the labelled rows that all judges scored.

    Args:
        labels: Mapping from the name of each judge to the labels and scores of its run.

    Raises:
        SourceError: There are none.
    """
    scores: dict[str, dict[str, float]] = {}
    known: dict[str, float] = {}
    groups: dict[str, str] = {}
    weights: dict[str, float] = {}
    for name, of_run in labels.items():
        for position, row in enumerate(of_run.rows):
            label = of_run.labels[position]
            if label is not None:
                scores.setdefault(name, {})[row] = of_run.scores[position]
                known[row] = label
                if of_run.groups is not None:
                    groups[row] = of_run.groups[position]
                if of_run.probabilities is not None:
                    weights[row] = 1 / (of_run.probabilities[position] or 1.0)
    rows = [row for row in known if all(row in scores.get(name, {}) for name in labels)]
    if not rows:
        raise SourceError("no labelled row has a score by every judge; see the run folders for what failed")
    return {
        name: LabelledScores(
            scale,
            np.array([known[row] for row in rows]),
            np.array([scores[name][row] for row in rows]),
            (0.0, 1.0),
            groups=[groups[row] for row in rows] if groups else None,
            weights=np.array([weights[row] for row in rows]) if len(set(weights.values())) > 1 else None,
        )
        for name in labels
    }
