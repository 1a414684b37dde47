"""What people would say of a run: its mean scores, corrected by what a calibration knows of the judge's error."""

from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from metric_core.calibration.judge_error import CorrectedMean, JudgeError, correct_difference, correct_mean
from metric_core.statistics.pairs import ScoreColumns, pair_scores
from metric_core.statistics.resampling import Units
from tasks.runs.run_folder import read_cells

_LEAST_ROWS = 2


@dataclass(frozen=True, slots=True)
class LabelScale:
    """A judge's error, and the labels that it was found from.

    Args:
        error: how the judge errs.
        label: the column of the labels.
        span: the lowest and the highest grade; None for yes and no.
    """

    error: JudgeError
    label: str
    span: tuple[float, float] | None

    def graded(self, found: CorrectedMean, is_difference: bool = False) -> dict[str, Any]:
        """What people would say, in their grades; for yes and no, the share of yes."""
        low, high = self.span or (0.0, 1.0)
        start = 0.0 if is_difference else low
        ends = {"value": found.value, "low": found.interval.low, "high": found.interval.high}
        graded = {name: None if end is None else start + (high - low) * end for name, end in ends.items()}
        return {"label": self.label, "span": self.span, **graded}


def known_judge_errors(manifest: Mapping[str, Any]) -> dict[str, LabelScale]:
    """The error of the judge of a run, by the key of the metric, as far as a calibration knows it.

    Args:
        manifest: content of run.json.
    """
    known = (manifest.get("calibration") or {}).get("metrics") or {}
    return {
        key: LabelScale(JudgeError(**facts["error"]), facts["label"], facts["span"] and tuple(facts["span"]))
        for key, facts in known.items()
        if facts.get("error") is not None
    }


def correct_means(folder: Path, manifest: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """What people would say of each metric that a calibration covers, for summary.json.

    Args:
        folder: the run folder, with its scores.
        manifest: content of run.json.

    Returns:
        Key of the metric -> the column of the labels and their span, value, low and high, in the grades of the labels;
        for yes and no, without a span, the share of yes. The value is None where the judge can not tell.
    """
    found = {}
    for key, scale in known_judge_errors(manifest).items():
        values = _values(folder, key)
        if len(values) >= _LEAST_ROWS:
            found[key] = scale.graded(correct_mean(scale.error, Units.of(np.array(values))))
    return found


def correct_differences(
    before: Mapping[str, Any], after: Mapping[str, Any], columns: Iterable[ScoreColumns]
) -> dict[str, dict[str, Any]]:
    """By how much more people would say of one run than of another, for the metrics whose judge errs alike in both.

    Args:
        before: content of the first one's run.json.
        after: content of the second one's.
        columns: the cells of each metric.

    Returns:
        As `correct_means`, of the difference.
    """
    first, second = known_judge_errors(before), known_judge_errors(after)
    found = {}
    for column in columns:
        scale = first.get(column.metric)
        if scale is None or scale != second.get(column.metric):
            continue
        for pairs in pair_scores(column).pairs:
            units = Units.of(pairs.differences, pairs.groups)
            if len(units) >= _LEAST_ROWS:
                found[column.metric] = scale.graded(correct_difference(scale.error, units), is_difference=True)
    return found


def _values(folder: Path, metric: str) -> "array[float]":
    values = array("d")
    for batch in read_cells(folder, metric, ("value",)):
        values.extend(batch.column("value").drop_null().to_numpy())
    return values
