"""Pair the labels of a source with the scores of a run."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from metric_core.calibration.calibrate import LabelledScores, scale_to_unit
from metric_core.calibration.labels import (
    LabelRules,
    Labels,
    Scale,
    describe_equal_labels,
    labels_by_annotator,
    read_labels,
)
from metric_core.calibration.platt import Floats, ProbabilityMap, Rows
from metric_core.calibration.random_sample import p_random
from metric_core.declarations.metric import MetricRequest
from metric_core.errors import ConfigError, SourceError
from metric_core.evidence import Evidence
from metric_core.records import Status
from metric_core.stages import PRODUCT_STAGES, Stage
from metric_core.statistics.pairs import name_group
from tasks.calibration.calibration_files import Counts
from tasks.calibration.run_labels import RunLabels
from tasks.rows.records import read_samples_table
from tasks.rows.sample_evidence import (
    AskedProbabilities,
    map_probabilities,
    read_asked_probabilities,
    read_evidence,
)
from tasks.runs.finished_run import FinishedRun
from tasks.sources import SourceOptions
from tasks.sources.single_columns import read_columns

LEAST_ROWS = 4
FEW_ROWS = 50
_SELECTED = 0.001
"""P-value of the scores below which labelled rows are not a random sample."""

RANDOM, UNKNOWN = "random", "unknown"
PROBABILITY_COLUMN = "label_probability"
"""Column with the probability with which `assay label` drew a row."""
ANNOTATOR_COLUMN = "annotator"
"""Column with the name of who labelled a row."""
STRATUM_COLUMN = "label_stratum"
"""Column with the stratum that `assay label --strata` drew a row from."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """The choice of the labelled rows among the rows of a run.

    Args:
        is_random: True if they are a random sample.
        probabilities: Mapping from the id of each labelled row to the probability with which it was drawn; None if all
            are equal. In a stratum, it is the share of the stratum's rows that are labelled.
        strata: Mapping from the id of each labelled row to its stratum; None if rows were drawn from all at once.
    """

    is_random: bool = False
    probabilities: Mapping[str, float] | None = None
    strata: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class LabelledData:
    """The labels of a source.

    Args:
        groups: Mapping from row id to the name of its group; rows without one have a unique name. None if rows
            are not grouped.
        annotators: Labels by the name of who gave them, without those without a name.
    """

    labels: Labels
    groups: Mapping[str, str] | None
    sampling: Sampling = Sampling()
    annotators: Mapping[str, Sequence[float]] = field(default_factory=dict)


def read_labelled(
    source: str,
    options: SourceOptions,
    rules: LabelRules,
    by: str | None = None,
    sampling: str | None = None,
) -> LabelledData:
    """Read the labels of a source, before anything is evaluated.

    Args:
        source: Path or name of the data.
        by: Column by which rows are grouped.
        sampling: `random` if the labelled rows are a random sample of all, `unknown`, or the column with the
            probability with which each row was drawn. None takes the column `PROBABILITY_COLUMN` if there is one.

    Raises:
        SourceError: The source lacks a column, or the labels cannot be used.
        ConfigError: The rules do not fit the labels.
    """
    named = sampling if sampling not in (None, RANDOM, UNKNOWN) else None
    columns = read_columns(source, options, [rules.column, *filter(None, [by, named])])
    groups = None if by is None else {row_id: group_of_cell(row_id, cell) for row_id, cell in columns[by].items()}
    drawn = columns[named] if named is not None else None
    strata = None
    own = read_columns(source, options, [ANNOTATOR_COLUMN, PROBABILITY_COLUMN, STRATUM_COLUMN], optional=True)
    if sampling is None:
        drawn, strata = (
            cells if any(cell is not None for cell in cells.values()) else None
            for cells in (own[PROBABILITY_COLUMN], own[STRATUM_COLUMN])
        )
    labels = read_labels(columns[rules.column], rules)
    annotators = labels_by_annotator(own[ANNOTATOR_COLUMN], labels)
    if drawn is None:
        return LabelledData(labels, groups, Sampling(sampling == RANDOM), annotators)
    probabilities = _probabilities(drawn, labels, named or PROBABILITY_COLUMN)
    found = Sampling(True, probabilities) if strata is None else stratified_sampling(drawn, strata, probabilities)
    return LabelledData(labels, groups, found, annotators)


def stratified_sampling(
    drawn: Mapping[str, Any], strata: Mapping[str, Any], probabilities: Mapping[str, float]
) -> Sampling:
    """Return the sampling of rows that were drawn from strata and labelled in full or in part.

    Args:
        drawn: Probability of each drawn row.
        strata: Stratum of each drawn row.
        probabilities: Probability of each labelled row.

    Raises:
        SourceError: A labelled row has no stratum, or no row of a stratum is labelled.
    """
    of_row = {row_id: str(cell) for row_id, cell in strata.items() if cell is not None and drawn.get(row_id)}
    labelled = Counter(of_row.get(row_id, "") for row_id in probabilities)
    if labelled[""]:
        row_id = next(row_id for row_id in probabilities if row_id not in of_row)
        raise SourceError(f"the row {row_id!r} is labelled, but has no stratum in {STRATUM_COLUMN!r}")
    sizes: defaultdict[str, float] = defaultdict(float)
    for row_id, stratum in of_row.items():
        sizes[stratum] += 1 / float(drawn[row_id])
    if empty := sorted(sizes.keys() - labelled.keys()):
        raise SourceError(
            f"no row of the stratum {empty[0]!r} in {STRATUM_COLUMN!r} has a label yet; label at least two rows of "
            "each stratum, since the strata represent different parts of the run"
        )
    shares = {stratum: labelled[stratum] / size for stratum, size in sizes.items()}
    return Sampling(
        True,
        {row_id: shares[of_row[row_id]] for row_id in probabilities},
        {row_id: of_row[row_id] for row_id in probabilities},
    )


def group_of_cell(row_id: str, cell: Any) -> str:
    """Return the name of a row's group; a row without one, or with a blank one, is a group of one.

    >>> group_of_cell("r1", "x"), group_of_cell("r1", None)
    ('group x', 'row r1')
    """
    return name_group(row_id, None if cell is None or not str(cell).strip() else str(cell))


def _probabilities(cells: Mapping[str, Any], labels: Labels, column: str) -> dict[str, float]:
    """Return the probability of each labelled row.

    Raises:
        SourceError: A labelled row has none, or one that is not above 0 and at most 1.
    """
    probabilities = {}
    for row_id in labels.values:
        try:
            probabilities[row_id] = float(cells[row_id])
        except (TypeError, ValueError):
            probabilities[row_id] = math.nan
        if not 0 < probabilities[row_id] <= 1:
            raise SourceError(
                f"the row {row_id!r} is labelled, but the probability with which it was drawn is "
                f"{cells[row_id]!r} in {column!r}; wanted a number above 0, up to 1"
            )
    return probabilities


@dataclass(frozen=True, slots=True)
class PairedLabels:
    """Labelled and scored rows of a run.

    Args:
        span: Lowest and highest grade, which count as 0 and 1; None for yes and no, or a metric without a range.
        warnings: Sentences that a reader should know.
        of_run: All scored rows of the run, with the labels of some; None if the grades have no range.
        is_random: True if the labelled rows are a random sample of these rows, or all of them.
        selected: Why rows that are said to be a random sample are none; empty if nothing contradicts it.
    """

    judged: LabelledScores
    counts: Counts
    span: tuple[float, float] | None
    warnings: tuple[str, ...]
    of_run: RunLabels | None
    is_random: bool
    selected: str = ""


def pair_labels(run: FinishedRun, request: MetricRequest, data: LabelledData, rules: LabelRules) -> PairedLabels:
    """Return the rows of a run with a label and a score, without those whose labels must not measure its judge.

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
    if not labelled:
        raise SourceError(
            f"none of the {len(data.labels.values)} labelled rows is a row of {run.folder}: no id is in both. Label "
            "rows of this run; `assay label RUN` writes them with their ids."
        )
    scored = [row_id for row_id in labelled if cells[row_id]["value"] is not None]
    counts = Counts(
        rows=len(cells),
        unlabelled=len(cells) - len(labelled),
        undefined=sum(cells[row_id]["status"] == Status.UNDEFINED for row_id in labelled),
        failed=sum(cells[row_id]["status"] == Status.FAILED for row_id in labelled),
        compared=len(scored),
        positive=sum(labelled[i] == 1 for i in scored) if data.labels.scale is Scale.BINARY else None,
    )
    require_enough(counts, [labelled[row_id] for row_id in scored])
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
        weights=label_weights(data.sampling, scored),
    )
    has_ends = data.labels.scale is Scale.BINARY or span is not None
    of_run = _of_run(cells, dict(zip(scored, labels.tolist(), strict=True)), data, request) if has_ends else None
    is_whole = of_run is not None and None not in of_run.labels
    is_said_random = data.sampling.is_random and not is_whole
    selected = describe_selection(of_run) if is_said_random and of_run is not None else ""
    is_random = is_whole or (is_said_random and not selected)
    warnings = tuple(_warnings(counts, data, rules, span))
    return PairedLabels(judged, counts, span, warnings, of_run, is_random, selected)


def describe_selection(of_run: RunLabels) -> str:
    """Return why labelled rows that are said to be a random sample are none; empty if nothing contradicts it."""
    sample = of_run.as_sample()
    p = p_random(sample)
    if p is None or p >= _SELECTED:
        return ""
    is_labelled = np.isfinite(sample.labels)
    means = (float(sample.scores[rows].mean()) for rows in (is_labelled, ~is_labelled))
    return (
        "the labelled rows are not a random sample of the run: they score {:.2f} on average, the others {:.2f} "
        "(p = {:.2g})"
    ).format(*means, p)


def _of_run(
    cells: Mapping[str, Mapping[str, object]], labels: Mapping[str, float], data: LabelledData, request: MetricRequest
) -> RunLabels:
    """Return all scored rows, with the labels of some."""
    rows = [row_id for row_id, cell in cells.items() if cell["value"] is not None]
    scores = np.array([cells[row_id]["value"] for row_id in rows], dtype=np.float64)
    low, high = request.bounds or (float(scores.min()), float(scores.max()))
    drawn = data.sampling.probabilities
    return RunLabels(
        rows=rows,
        scores=(scale_to_unit(scores, (low, high)) if high > low else np.zeros(len(rows))).tolist(),
        labels=[labels.get(row_id) for row_id in rows],
        probabilities=None if drawn is None else [drawn.get(row_id) for row_id in rows],
        groups=None if data.groups is None else [data.groups.get(row_id, f"row {row_id}") for row_id in rows],
        strata=None if data.sampling.strata is None else [data.sampling.strata.get(row_id) for row_id in rows],
    )


def label_weights(sampling: Sampling, rows: Sequence[str]) -> Floats | None:
    """Return the number of rows of the run that each labelled row represents; None if it is the same for all."""
    if sampling.probabilities is None:
        return None
    weights = np.array([1 / sampling.probabilities[row_id] for row_id in rows])
    return weights if np.ptp(weights) > 0 else None


def _cells(run: FinishedRun, request: MetricRequest) -> list[dict[str, Any]]:
    ids = [row_id for shard in run.samples() for row_id in shard["row_id"].to_pylist()]
    return [cell for cell in run.rows(Stage.AGGREGATION, ids).to_pylist() if cell["metric"] == request.key]


def require_enough(counts: Counts, labels: Sequence[float]) -> None:
    """Raise a SourceError if labels of scored rows are too few, or all the same."""
    if len(labels) < LEAST_ROWS or len(set(labels)) < 2:
        seen = "all with the same label" if labels else "none"
        seen = seen if len(labels) >= LEAST_ROWS or not labels else f"only {len(labels)}"
        known = f" {describe_equal_labels(len(labels))}" if len(labels) >= LEAST_ROWS else ""
        raise SourceError(
            f"of {counts.rows} rows, {seen} can be compared: {counts.unlabelled} have no label, {counts.undefined} "
            f"have nothing to measure, and for {counts.failed} the judge returned nothing usable. "
            f"A calibration needs at least {LEAST_ROWS} labelled and scored rows with different labels.{known}"
        )


def _scale_labels(
    labels: Floats, scale: Scale, request: MetricRequest, rules: LabelRules
) -> tuple[Floats, tuple[float, float] | None]:
    """Return grades on [0, 1], and the grades that correspond to 0 and 1; unchanged labels and None without a range."""
    if scale is Scale.BINARY or request.bounds is None:
        return labels, None
    low, high = request.bounds
    fits = bool(labels.min() >= low and labels.max() <= high)
    span = rules.span or ((low, high) if fits else (float(labels.min()), float(labels.max())))
    return scale_to_unit(labels, span), span


def _warnings(counts: Counts, data: LabelledData, rules: LabelRules, span: tuple[float, float] | None) -> Iterator[str]:
    if counts.compared < FEW_ROWS:
        yield f"{counts.compared} rows are few: the intervals are wide"
    values = data.labels.values.values()
    if span is not None and rules.span is None and span == (min(values), max(values)):
        low, high = (f"{grade:g}" for grade in span)
        yield f"grades are assumed to range from {low} to {high}, as in the data; --range LOW,HIGH sets the range"


class _Rescorer:
    """A metric computed from the judge's probabilities, mapped or not, instead of its verdicts. It asks no judge.

    Args:
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
        return self._request.bounds is not None and any(asked for _, asked in self._rows) and None not in self._plain

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
    read = [stage for stage in run.record.stages if stage in PRODUCT_STAGES]
    for shard in run.samples():
        samples = [sample for sample in read_samples_table(shard) if sample.row_id in row_ids]
        ids = [sample.row_id for sample in samples]
        tables: dict[Stage, pa.Table] = {stage: run.rows(stage, ids) for stage in read}
        asked = read_asked_probabilities(tables)
        for evidence in read_evidence(samples, tables, "probability"):
            yield evidence.sample.row_id, (evidence, asked.get(evidence.sample.row_id, {}))
