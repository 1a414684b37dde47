"""Bias-corrected means: mean scores of a run, corrected for the judge's error that a calibration measured."""

from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from metric_core.calibration.judge_error import CorrectedMean, JudgeError, correct_difference, correct_mean
from metric_core.statistics.pairs import ScoreColumns, pair_scores
from metric_core.statistics.resampling import Units
from tasks.runs.run_folder import RunFolder

BIAS_CORRECTED = "bias_corrected"
"""Name of the entry of summary.json with the bias-corrected means."""

_FORMER_NAME = "people"
_LEAST_ROWS = 2


@dataclass(frozen=True, slots=True)
class LabelScale:
    """A judge's error and the scale of the labels that it was measured with.

    Args:
        error: Error of the judge.
        label: Column of the labels.
        span: Lowest and highest grade; None for yes and no.
    """

    error: JudgeError
    label: str
    span: tuple[float, float] | None

    def to_entry(self, mean: CorrectedMean, is_difference: bool = False) -> dict[str, Any]:
        """Return a corrected mean on the scale of the labels: grades, or the share of yes."""
        low, high = self.span or (0.0, 1.0)
        start = 0.0 if is_difference else low
        ends = {"value": mean.value, "low": mean.interval.low, "high": mean.interval.high}
        scaled = {name: None if end is None else start + (high - low) * end for name, end in ends.items()}
        return {"label": self.label, "span": self.span, **scaled}


def known_judge_errors(manifest: Mapping[str, Any]) -> dict[str, LabelScale]:
    """Return the judge's error by metric key, for the metrics that a calibration covers.

    Args:
        manifest: Content of run.json.
    """
    known = (manifest.get("calibration") or {}).get("metrics") or {}
    return {
        key: LabelScale(JudgeError(**facts["error"]), facts["label"], facts["span"] and tuple(facts["span"]))
        for key, facts in known.items()
        if facts.get("error") is not None
    }


def correct_means(folder: Path, manifest: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the bias-corrected mean of each metric that a calibration covers, for summary.json.

    Args:
        folder: Run folder with the scores.
        manifest: Content of run.json.

    Returns:
        A mapping from metric key to an entry: column of the labels, their span, value, low and high. The numbers are
        grades, or the share of yes if the span is None. The value is None if the labelled rows do not determine it.
    """
    means = {}
    for key, scale in known_judge_errors(manifest).items():
        values = _values(folder, key)
        if len(values) >= _LEAST_ROWS:
            means[key] = scale.to_entry(correct_mean(scale.error, Units.from_values(np.array(values))))
    return means


def read_corrected_means(summary: Mapping[str, Any]) -> Mapping[str, Mapping[str, Any]]:
    """Return the bias-corrected means of a summary, which older runs stored under another name.

    Args:
        summary: Content of summary.json.

    >>> read_corrected_means({"people": {"faithfulness": {"value": 0.5}}})
    {'faithfulness': {'value': 0.5}}
    """
    return summary.get(BIAS_CORRECTED) or summary.get(_FORMER_NAME) or {}


def correct_differences(
    before: Mapping[str, Any], after: Mapping[str, Any], columns: Iterable[ScoreColumns]
) -> dict[str, dict[str, Any]]:
    """Return the difference of the bias-corrected means of two runs, for metrics with the same judge error in both.

    Args:
        before: Content of the first run's run.json.
        after: Content of the second run's run.json.
        columns: Cells of each metric.

    Returns:
        Entries as returned by `correct_means`, with the difference as value.
    """
    first, second = known_judge_errors(before), known_judge_errors(after)
    differences = {}
    for column in columns:
        scale = first.get(column.metric)
        if scale is None or scale != second.get(column.metric):
            continue
        for pairs in pair_scores(column).pairs:
            units = Units.from_values(pairs.differences, pairs.groups)
            if len(units) >= _LEAST_ROWS:
                differences[column.metric] = scale.to_entry(correct_difference(scale.error, units), is_difference=True)
    return differences


def _values(folder: Path, metric: str) -> "array[float]":
    values = array("d")
    for batch in RunFolder(folder).read_cells(metric, ("value",)):
        values.extend(batch.column("value").drop_null().to_numpy())
    return values
