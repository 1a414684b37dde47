"""Estimate what people would have said about the rows of a run, from labels and scores.

Labels of a random sample of the run's own rows come first: the estimate from them is right whatever the judge does.
Without such labels, the judge's error that a calibration measured on other rows corrects the mean score.
"""

from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path

import numpy as np

from metric_core.calibration.estimates import Estimate
from metric_core.calibration.judge_error import (
    JudgeErrorFit,
    correct_difference,
    correct_mean,
    describe_outside,
    describe_weakness,
)
from metric_core.calibration.label_needs import labels_to_halve
from metric_core.calibration.looks import LookedAt
from metric_core.calibration.sampled_labels import LabelMean, estimate_label_difference, estimate_label_mean
from metric_core.gates.corrected_means import CorrectedMean
from metric_core.statistics.bounded_means import LEAST_UNITS, are_enough
from metric_core.statistics.pairs import ScoreColumns, pair_scores
from metric_core.statistics.resampling import Interval, Units
from tasks.calibration.corrected_means import CorrectedMeanRecord
from tasks.calibration.run_labels import read_run_labels
from tasks.record.judge_quality import CalibratedMetric, OwnLabels
from tasks.record.run_record import RecordedConfig, RunRecord
from tasks.runs.row_grouping import columns_with, group_names, read_groups
from tasks.runs.row_weights import RowWeights, read_weights
from tasks.runs.run_folder import RunFolder


class Method(StrEnum):
    """The way in which a mean was corrected.

    POWERED: labels of a random sample of the run's rows, and the scores of all. LABELS: such labels alone. JUDGE:
    scores, and the error of the judge on labelled rows from elsewhere. NONE: not at all.
    """

    POWERED = "prediction-powered"
    LABELS = "labels alone"
    JUDGE = "judge error"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class LabelScale:
    """Column and scale of labels.

    Args:
        span: Lowest and highest grade; None for yes and no.
        unit: Name of the labelled items: `rows`, or `claims` for the verdicts behind the scores.
    """

    label: str
    span: tuple[float, float] | None
    unit: str = "rows"

    @classmethod
    def of_labels(cls, labels: CalibratedMetric | OwnLabels) -> "LabelScale":
        """Return the scale of labels that a record tells of."""
        return cls(labels.label, labels.span, labels.unit if isinstance(labels, OwnLabels) else "rows")

    def from_unit(self, value: float, *, is_difference: bool = False) -> float:
        """Return a value from 0 to 1 on the scale of the labels."""
        low, high = self.span or (0.0, 1.0)
        return (0.0 if is_difference else low) + (high - low) * value


@dataclass(frozen=True, slots=True)
class Correction:
    """A bias-corrected mean of a metric, or the difference of those of two runs.

    Args:
        estimate: Estimate, from 0 to 1; None without a method.
        reason: Reason for this method, or for having no value; may be empty.
        labelled: Number of labelled rows that it rests on.
        rows: Number of scored rows that it is about.
    """

    scale: LabelScale
    method: Method
    estimate: Estimate | None
    reason: str
    labelled: int
    rows: int

    def for_gate(self) -> CorrectedMean | None:
        """Return the mean for the rules of a gate; None without labels of a random sample of the run."""
        if self.method is Method.JUDGE or self.estimate is None or self.estimate.value is None:
            return None
        span = self.scale.span or (0.0, 1.0)
        return CorrectedMean(self.estimate, self.estimate.value, span, self.rows, self.labelled)

    def to_record(self, is_difference: bool = False) -> CorrectedMeanRecord:
        """Return the correction on the scale of the labels: grades, or the share of yes."""
        whole = Interval(-1.0 if is_difference else 0.0, 1.0)
        interval = whole if self.estimate is None else self.estimate.interval()
        scaled = partial(self.scale.from_unit, is_difference=is_difference)
        unit = {} if self.scale.unit == "rows" else {"unit": self.scale.unit}
        return CorrectedMeanRecord(
            label=self.scale.label,
            span=self.scale.span,
            value=None if self.estimate is None or self.estimate.value is None else scaled(self.estimate.value),
            low=scaled(interval.low),
            high=scaled(interval.high),
            method=str(self.method),
            reason=self.reason,
            labelled=self.labelled,
            rows=self.rows,
            **unit,
        )


def known_judge_errors(record: RunRecord) -> dict[str, JudgeErrorFit]:
    """Return the judge's error by metric key, for the metrics that a calibration covers."""
    return {key: facts.error for key, facts in _facts(record).items() if facts.error is not None}


def find_corrections(folder: Path, record: RunRecord) -> dict[str, Correction]:
    """Return the bias-corrected mean of each metric with labels or a calibration.

    Args:
        folder: Run folder with the scores.
    """
    found = {}
    for key, facts in _facts(record).items():
        correction = _of_own_labels(folder, key, facts) or _of_judge(folder, key, facts, record.config)
        if correction is not None:
            found[key] = correction
    return found


def find_label_needs(folder: Path, record: RunRecord, key: str) -> int | None:
    """Return how many more labels of a run would halve the interval of its mean label.

    Args:
        folder: Run folder with the scores.

    Returns:
        The number; None if none would, and without labels of the run.
    """
    correction = find_corrections(folder, record).get(key)
    if correction is None or correction.estimate is None or correction.method is Method.JUDGE:
        return None
    return labels_to_halve(correction.estimate, correction.labelled)


def correct_means(folder: Path, record: RunRecord) -> dict[str, CorrectedMeanRecord]:
    """Return the bias-corrected mean of each metric with labels or a calibration, for summary.json.

    Args:
        folder: Run folder with the scores.

    Returns:
        A mapping from metric key to the mean.
    """
    return {key: correction.to_record() for key, correction in find_corrections(folder, record).items()}


def correct_differences(
    before: tuple[Path, RunRecord], after: tuple[Path, RunRecord], columns: Iterable[ScoreColumns]
) -> dict[str, CorrectedMeanRecord]:
    """Return the difference of the bias-corrected means of two runs.

    Metrics need labels of random samples of both runs, or the same judge error in both.

    Args:
        before: Folder and record of the first run.
        after: Folder and record of the second run.

    Returns:
        A mapping from metric key to the mean, with the difference as value.
    """
    differences = {}
    for column in columns:
        facts = [_facts(record).get(column.metric) for _, record in (before, after)]
        if facts[0] is None or facts[1] is None:
            continue
        correction = _sampled_difference(before[0], after[0], column.metric, facts[0], facts[1])
        correction = correction or _judge_difference(column, facts[0], facts[1])
        if correction is not None:
            differences[column.metric] = correction.to_record(is_difference=True)
    return differences


def _facts(record: RunRecord) -> Mapping[str, CalibratedMetric]:
    return record.calibration.metrics


def _of_own_labels(folder: Path, key: str, facts: CalibratedMetric) -> Correction | None:
    """Return the estimate from labels of a random sample of the run; None without them."""
    own = facts.own
    labels = read_run_labels(folder, key) if own is not None and own.is_random else None
    if own is None or labels is None:
        return None
    found = estimate_label_mean(labels.as_sample())
    return _of_sample(LabelScale.of_labels(own), found, facts.look)


def _of_sample(scale: LabelScale, found: LabelMean, look: int) -> Correction:
    method = Method.POWERED if found.is_powered else Method.LABELS
    return Correction(scale, method, LookedAt.from_estimate(found.estimate, look), "", found.labelled, found.rows)


def _of_judge(folder: Path, key: str, facts: CalibratedMetric, config: RecordedConfig) -> Correction | None:
    """Return the mean score corrected for the judge's error; None if there is nothing to correct or to explain."""
    scale = LabelScale.of_labels(facts)
    if facts.error is None and not facts.refused:
        return None
    values = _values(folder, key)
    if not values:
        return None
    units = _units(folder, key, config)
    labelled = facts.compared
    explained = facts.refused or _describe_few(units)
    if explained or facts.error is None:
        return Correction(scale, Method.NONE, None, explained, labelled, len(values))
    error = facts.error
    if outside := describe_outside(error, units):
        return Correction(scale, Method.NONE, None, outside, labelled, len(values))
    estimate = LookedAt.from_estimate(correct_mean(error, units), facts.look)
    reason = describe_weakness(error) if estimate.value is None else ""
    return Correction(scale, Method.JUDGE, estimate, reason, labelled, len(values))


def _describe_few(units: Units) -> str:
    """Return that scored rows are too few for a mean of others like them; an empty text if they are not."""
    return "" if are_enough(units) else f"fewer than {LEAST_UNITS} scored rows or groups, or one or two decide the mean"


def _sampled_difference(
    before: Path, after: Path, metric: str, first: CalibratedMetric, second: CalibratedMetric
) -> Correction | None:
    own = [facts.own for facts in (first, second) if facts.own is not None and facts.own.is_random]
    if len(own) < 2:
        return None
    scales = [LabelScale.of_labels(each) for each in own]
    labels = [read_run_labels(folder, metric) for folder in (before, after)]
    if scales[0].span != scales[1].span or labels[0] is None or labels[1] is None:
        return None
    found = estimate_label_difference(labels[0].as_sample(), labels[1].as_sample())
    return _of_sample(scales[1], found, max(first.look, second.look))


def _judge_difference(column: ScoreColumns, first: CalibratedMetric, second: CalibratedMetric) -> Correction | None:
    error = first.error
    if error is None or error != second.error:
        return None
    scale = LabelScale.of_labels(first)
    if scale != LabelScale.of_labels(second):
        return None
    correction = None
    for pairs in pair_scores(column).pairs:
        units = pairs.units(pairs.differences)
        rows = len(pairs.differences)
        sides = (pairs.units(scores) for scores in (pairs.a, pairs.b))
        outside = (describe_outside(error, scores) for scores in sides)
        if finding := _describe_few(units) or next(filter(None, outside), ""):
            return Correction(scale, Method.NONE, None, finding, first.compared, rows)
        estimate = LookedAt.from_estimate(correct_difference(error, units), max(first.look, second.look))
        reason = describe_weakness(error) if estimate.value is None else ""
        correction = Correction(scale, Method.JUDGE, estimate, reason, first.compared, rows)
    return correction


def _values(folder: Path, metric: str) -> "array[float]":
    values = array("d")
    for batch in RunFolder(folder).read_cells(metric, ("value",)):
        values.extend(batch.column("value").drop_null().to_numpy())
    return values


def _units(folder: Path, metric: str, config: RecordedConfig) -> Units:
    """Return the scored rows, or their groups, with their weights."""
    values, run = np.array(_values(folder, metric)), RunFolder(folder)
    if config.by is None and config.weights is None:
        return Units.from_values(values)
    rows = [
        cell["row_id"]
        for batch in run.read_cells(metric, ("row_id", "value"))
        for cell in batch.to_pylist()
        if cell["value"] is not None
    ]
    groups = None
    if config.by is not None:
        groups = list(group_names(rows, read_groups(run.read_samples(columns_with(config.by)), config.by)))
    columns = RowWeights(config.weights, config.traffic).columns
    weights = read_weights(run.read_samples(columns), config.weights, config.traffic)
    return Units.from_values(values, groups, None if weights is None else np.array([weights[row] for row in rows]))
