"""Pair the labels of a source with the scores of a run."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from metric_core.calibration.calibrate import LabelledScores, scale_to_unit
from metric_core.calibration.labels import LabelRules, Labels, Scale, read_labels
from metric_core.calibration.platt import Floats, ProbabilityMap, Rows
from metric_core.errors import ConfigError, SourceError
from metric_core.evidence import Evidence
from metric_core.metric import MetricRequest
from metric_core.records import Status
from metric_core.stages import PRODUCT_STAGES, Stage
from tasks.calibration.calibration_files import Counts
from tasks.evidence.sample_evidence import (
    AskedProbabilities,
    map_probabilities,
    read_asked_probabilities,
    read_evidence,
)
from tasks.runs.finished_run import FinishedRun
from tasks.sources import SourceOptions
from tasks.sources.single_columns import read_columns
from tasks.tables.records import read_samples_table

LEAST_ROWS = 4
FEW_ROWS = 50


@dataclass(frozen=True, slots=True)
class LabelledData:
    """The labels of a source.

    Args:
        labels: Label of each row.
        groups: Mapping from row id to the name of its group; None if rows are not grouped.
    """

    labels: Labels
    groups: Mapping[str, str] | None


def read_labelled(source: str, options: SourceOptions, rules: LabelRules, by: str | None = None) -> LabelledData:
    """Read the labels of a source, before anything is evaluated.

    Args:
        source: Path or name of the data.
        options: Options of the source.
        rules: Column and meaning of the labels.
        by: Column by which rows are grouped.

    Raises:
        SourceError: The source lacks a column, or the labels cannot be used.
        ConfigError: The rules do not fit the labels.
    """
    columns = read_columns(source, options, [rules.column, *([by] if by else [])])
    groups = None if by is None else {row_id: str(cell) for row_id, cell in columns[by].items()}
    return LabelledData(read_labels(columns[rules.column], rules), groups)


@dataclass(frozen=True, slots=True)
class PairedLabels:
    """Labelled and scored rows of a run.

    Args:
        judged: Labels and scores, for the statistics.
        counts: Numbers of rows.
        span: Lowest and highest grade, which count as 0 and 1; None for yes and no, or a metric without a range.
        warnings: Sentences that a reader should know.
    """

    judged: LabelledScores
    counts: Counts
    span: tuple[float, float] | None
    warnings: tuple[str, ...]


def pair_labels(run: FinishedRun, request: MetricRequest, data: LabelledData, rules: LabelRules) -> PairedLabels:
    """Return the rows of a run with a label and a score.

    Raises:
        SourceError: There are too few such rows, or all have the same label.
        ConfigError: The values of the metric are categories, or each row has a different scale.
    """
    cells = {cell["row_id"]: cell for cell in _cells(run, request)}
    if any(cell["label"] is not None for cell in cells.values()):
        raise ConfigError(
            f"{request.key} has categories as values, or a different scale per row; only metrics whose values are "
            "numbers on one scale can be calibrated"
        )
    labelled = {row_id: label for row_id, label in data.labels.values.items() if row_id in cells}
    scored = [row_id for row_id in labelled if cells[row_id]["value"] is not None]
    counts = Counts(
        rows=len(cells),
        unlabelled=len(cells) - len(labelled),
        undefined=sum(cells[row_id]["status"] == Status.UNDEFINED for row_id in labelled),
        failed=sum(cells[row_id]["status"] == Status.FAILED for row_id in labelled),
        compared=len(scored),
        positive=sum(labelled[i] == 1 for i in scored) if data.labels.scale is Scale.BINARY else None,
    )
    _require_enough(counts, [labelled[row_id] for row_id in scored])
    scores = np.array([cells[row_id]["value"] for row_id in scored], dtype=np.float64)
    labels, span = _scale_labels(np.array([labelled[row_id] for row_id in scored]), data.labels.scale, request, rules)
    rescorer = _Rescorer(run, request, scored)
    judged = LabelledScores(
        scale=data.labels.scale,
        labels=labels,
        scores=scores,
        bounds=request.bounds,
        probabilities=rescorer.probabilities(scores) if data.labels.scale is Scale.BINARY or span else None,
        predict=rescorer.predict if rescorer.can_map and (data.labels.scale is Scale.BINARY or span) else None,
        groups=None if data.groups is None else [data.groups[row_id] for row_id in scored],
    )
    return PairedLabels(judged, counts, span, tuple(_warnings(counts, data, rules, span)))


def _cells(run: FinishedRun, request: MetricRequest) -> list[dict[str, Any]]:
    ids = [row_id for shard in run.samples() for row_id in shard["row_id"].to_pylist()]
    rows: list[dict[str, Any]] = run.rows(Stage.AGGREGATION, ids).to_pylist()
    return [row for row in rows if row["metric"] == request.key]


def _require_enough(counts: Counts, labels: Sequence[float]) -> None:
    if len(labels) < LEAST_ROWS or len(set(labels)) < 2:
        seen = "all with the same label" if labels else "none"
        seen = seen if len(labels) >= LEAST_ROWS or not labels else f"only {len(labels)}"
        raise SourceError(
            f"of {counts.rows} rows, {seen} can be compared: {counts.unlabelled} have no label, {counts.undefined} "
            f"have nothing to measure, and for {counts.failed} the judge returned nothing usable. "
            f"A calibration needs at least {LEAST_ROWS} labelled and scored rows with different labels."
        )


def _scale_labels(
    labels: Floats, scale: Scale, request: MetricRequest, rules: LabelRules
) -> tuple[Floats, tuple[float, float] | None]:
    """Return grades on [0, 1], and the grades that 0 and 1 stand for; unchanged labels and None without a range."""
    if scale is Scale.BINARY or request.bounds is None:
        return labels, None
    low, high = request.bounds
    fits = bool(labels.min() >= low and labels.max() <= high)
    span = rules.span or ((low, high) if fits else (float(labels.min()), float(labels.max())))
    return scale_to_unit(labels, span), span


def _warnings(counts: Counts, data: LabelledData, rules: LabelRules, span: tuple[float, float] | None) -> Iterator[str]:
    if counts.compared < FEW_ROWS:
        yield f"{counts.compared} rows are few: the intervals are wide, and less certain than they look"
    values = data.labels.values.values()
    if span is not None and rules.span is None and span == (min(values), max(values)):
        low, high = (f"{grade:g}" for grade in span)
        yield f"grades are assumed to range from {low} to {high}, as in the data; --range LOW,HIGH sets the range"


class _Rescorer:
    """A metric computed from the judge's probabilities, mapped or not, instead of its verdicts. It asks no judge.

    Args:
        run: Finished run.
        request: Metric to compute.
        row_ids: Ids of the rows, in the order of all results.
    """

    def __init__(self, run: FinishedRun, request: MetricRequest, row_ids: Sequence[str]) -> None:
        self._request = request
        self._low, self._high = request.bounds or (0.0, 1.0)
        evidence_by_row = dict(_evidence(run, frozenset(row_ids)))
        self._rows = [evidence_by_row[row_id] for row_id in row_ids]
        self._plain = [request.score(evidence).value for evidence, _ in self._rows]

    @property
    def has_probabilities(self) -> bool:
        """Whether there are probabilities, and the metric has a value with them on every row."""
        has_range = self._request.bounds is not None
        return has_range and any(asked for _, asked in self._rows) and None not in self._plain

    @property
    def can_map(self) -> bool:
        """Whether every row has a value under a map, too: no verdict is certain then, and a metric may need others."""
        return self.has_probabilities and None not in self._values(ProbabilityMap(1.0, 0.0), range(len(self._rows)))

    def probabilities(self, scores: Floats) -> Floats | None:
        """Return the metric on [0, 1], from the judge's probabilities if there are any, else from its scores.

        Without a range the result is None.
        """
        if self._request.bounds is None:
            return None
        plain = np.array(self._plain, dtype=np.float64) if self.has_probabilities else scores
        return np.clip((plain - self._low) / (self._high - self._low), 0.0, 1.0)

    def predict(self, probability_map: ProbabilityMap, rows: Rows) -> Floats:
        """Return the scores of rows on [0, 1] under a map."""
        # A custom metric may have no value under some maps; the row then keeps its value without a map.
        values = zip(self._values(probability_map, rows), (self._plain[row] for row in rows), strict=True)
        scores = np.array([plain if value is None else value for value, plain in values], dtype=np.float64)
        return (scores - self._low) / (self._high - self._low)

    def _values(self, probability_map: ProbabilityMap, rows: Iterable[int]) -> list[float | None]:
        chosen = [self._rows[row] for row in rows]
        return [
            self._request.score(map_probabilities(evidence, asked, probability_map)).value for evidence, asked in chosen
        ]


def _evidence(run: FinishedRun, row_ids: frozenset[str]) -> Iterator[tuple[str, tuple[Evidence, AskedProbabilities]]]:
    stages = [Stage(name) for name in run.manifest["stages"]]
    read = [stage for stage in stages if stage in PRODUCT_STAGES]
    for shard in run.samples():
        samples = [sample for sample in read_samples_table(shard) if sample.row_id in row_ids]
        ids = [sample.row_id for sample in samples]
        tables: dict[Stage, pa.Table] = {stage: run.rows(stage, ids) for stage in read}
        asked = read_asked_probabilities(tables)
        for evidence in read_evidence(samples, tables, "probability"):
            yield evidence.sample.row_id, (evidence, asked.get(evidence.sample.row_id, {}))
