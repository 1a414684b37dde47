"""Pair the stored labels of people with the scores of a run: labels of its rows, or of the verdicts of a metric."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from metric_core.calibration.calibrate import LabelledScores
from metric_core.calibration.labels import LabelRules, Labels, Scale, SettledLabels, read_labels, settle_labels
from metric_core.calibration.platt import Floats, ProbabilityMap, Rows
from metric_core.declarations.metric import MetricRequest
from metric_core.errors import ConfigError, SourceError
from metric_core.statistics.pairs import name_group
from tasks.calibration.calibration_files import Counts
from tasks.calibration.label_items import LabelItem, list_rows, list_verdicts
from tasks.calibration.label_pairing import (
    LabelledData,
    PairedLabels,
    Sampling,
    describe_selection,
    label_weights,
    pair_labels,
    require_enough,
    stratified_sampling,
)
from tasks.calibration.label_store import YES_OR_NO, StoredLabel, find_labels, read_frame, require_one_scale
from tasks.calibration.run_labels import RunLabels
from tasks.runs.finished_run import FinishedRun

STORED = "stored labels"
"""Name of the labels of a calibration that come from no file of the user."""


@dataclass(frozen=True, slots=True)
class KnownLabels:
    """The items of a run with their stored labels.

    Args:
        stored: All that is stored about the items.
        settled: One label per digest.
    """

    items: Sequence[LabelItem]
    stored: Sequence[StoredLabel]
    settled: SettledLabels

    @classmethod
    def of_items(cls, items: Sequence[LabelItem]) -> "KnownLabels":
        """Return the labels of items."""
        stored = find_labels({item.digest for item in items})
        return cls(items, stored, settle_labels(given for each in stored if (given := each.given) is not None))

    @property
    def by_key(self) -> dict[str, float]:
        """Mapping from the key of each labelled item to its label."""
        values = self.settled.values
        return {item.key: values[item.digest] for item in self.items if item.digest in values}


def pair_stored(
    run: FinishedRun, request: MetricRequest, rules: LabelRules, groups: Mapping[str, str] | None
) -> tuple[LabelledData, PairedLabels]:
    """Return the labels of a run's rows, or of its claims if there are more of these, and their pairs with scores.

    Args:
        groups: Name of the group of each row; None if rows are not grouped.

    Raises:
        SourceError: There are too few labels, or people disagree on some and nothing settles it.
        ConfigError: The values of the metric are not numbers.
    """
    known = KnownLabels.of_items(list_rows(run, request.key))
    try:
        of_claims = KnownLabels.of_items(list_verdicts(run, request))
    except ConfigError:
        of_claims = None
    is_claims = of_claims is not None and len(of_claims.by_key) > len(known.by_key)
    known = of_claims if is_claims and of_claims is not None else known
    if known.settled.contested:
        claims = " --claims" if is_claims else ""
        raise SourceError(
            f"people disagree on {len(known.settled.contested)} labels of {request.key}, and leaving these out would "
            f"distort the estimate. Settle them first: `assay label {run.folder} --metric {request.key}{claims} "
            "--disagreement people`"
        )
    if not known.by_key:
        raise SourceError(
            f"no labels of {request.key} are stored for texts of {run.folder}: `assay label` makes a page for people, "
            "and imports what they export"
        )
    answers = require_one_scale(known.stored, f"{request.key} in {run.folder}")
    if answers != YES_OR_NO and rules.span is None:  # all of them may be 0 and 1
        rules = replace(rules, span=(answers[0], answers[-1]))
    sampling, left_out = _find_sampling(known)
    values = known.by_key if sampling.probabilities is None else _only(known.by_key, sampling.probabilities)
    labels = read_labels({item.key: values.get(item.key) for item in known.items}, rules)
    if groups is None and not is_claims and len({item.digest for item in known.items}) < len(known.items):
        groups = {item.row_id: item.digest for item in known.items}
    data = LabelledData(labels, groups, sampling, known.settled.annotators)
    paired = _pair_claims(known.items, data, rules) if is_claims else pair_labels(run, request, data, rules)
    return data, replace(paired, warnings=(*paired.warnings, *left_out, *_undecided(known)))


def _only(values: Mapping[str, float], keys: Collection[str]) -> dict[str, float]:
    return {key: value for key, value in values.items() if key in keys}


def _undecided(known: KnownLabels) -> list[str]:
    count = known.settled.undecided
    return [f"{count} items that nobody could decide are left out: the others may not be like them"] if count else []


def _find_sampling(known: KnownLabels) -> tuple[Sampling, list[str]]:
    """Return how the labelled items of a run were chosen, and a warning if labels of other samples are not used.

    A sample is one of the run if it was drawn from all of the run's items, perhaps among others.
    """
    digests = {item.digest for item in known.items}
    frames = {each.frame for each in known.stored if each.probability is not None}
    whole = {frame for frame in frames if digests <= read_frame(frame)}
    drawn: dict[str, dict[str, StoredLabel]] = defaultdict(dict)
    for each in known.stored:
        if each.probability is not None and each.frame in whole:
            drawn[each.sample][each.item] = each
    labelled = {sample: [item for item in of if item in known.settled.values] for sample, of in drawn.items()}
    if not any(labelled.values()):
        return Sampling(), []
    alike = [sample for sample in drawn if _is_plain(drawn[sample].values())]
    best = max(labelled, key=lambda sample: len(labelled[sample]))
    chosen = alike if best in alike else [best]
    used = {item for sample in chosen for item in labelled[sample]}
    by_digest: dict[str, list[str]] = defaultdict(list)
    for item in known.items:
        by_digest[item.digest].append(item.key)
    unused = len(known.settled.values) - len(used)
    notes = [f"{unused} labels of other samples are not used: they were drawn in another way"] if unused else []
    if chosen == alike:
        return Sampling(True, {key: 1.0 for item in used for key in by_digest[item]}), notes
    probabilities = {key: drawn[best][item].probability or 1.0 for item in used for key in by_digest[item]}
    if all(each.stratum is None for each in drawn[best].values()):
        return Sampling(True, probabilities), notes
    of_sample = {key: each for digest, each in drawn[best].items() for key in by_digest[digest]}
    return (
        stratified_sampling(
            {key: each.probability for key, each in of_sample.items()},
            {key: each.stratum for key, each in of_sample.items()},
            probabilities,
        ),
        notes,
    )


def _is_plain(drawn: Collection[StoredLabel]) -> bool:
    """Return whether all items of a sample were drawn with one probability."""
    return len({each.probability for each in drawn}) == 1 and all(each.stratum is None for each in drawn)


def _pair_claims(items: Sequence[LabelItem], data: LabelledData, rules: LabelRules) -> PairedLabels:
    """Return the labelled verdicts of a metric with the judge's; those of a row belong together.

    Raises:
        SourceError: There are too few labels, or all are the same.
        ConfigError: The labels are grades.
    """
    if data.labels.scale is not Scale.BINARY:
        raise ConfigError(f"labels of claims are yes or no, but those in {rules.column!r} are grades")
    labels: Labels = data.labels
    labelled = [item for item in items if item.key in labels.values]
    given = [labels.values[item.key] for item in labelled]
    compared, positive = len(labelled), sum(label == 1 for label in given)
    counts = Counts(len(items), len(items) - compared, undefined=0, failed=0, compared=compared, positive=positive)
    require_enough(counts, given)
    rows = data.groups or {}
    groups = [rows.get(item.row_id, name_group(item.row_id, None)) for item in items]
    group_of = dict(zip((item.key for item in items), groups, strict=True))
    sure = np.array([item.belief for item in labelled])
    asked = np.array([item.probability is not None for item in labelled])

    def predict(probability_map: ProbabilityMap, rows_of: Rows) -> Floats:
        return np.array([probability_map(float(sure[row])) if asked[row] else sure[row] for row in rows_of])

    drawn = label_weights(data.sampling, [item.key for item in labelled])
    parts = np.array([item.weight for item in labelled]) * (1.0 if drawn is None else drawn)
    probabilities = data.sampling.probabilities
    strata = data.sampling.strata
    of_run = RunLabels(
        rows=[item.key for item in items],
        scores=[item.score for item in items],
        labels=[labels.values.get(item.key) for item in items],
        probabilities=None if probabilities is None else [probabilities.get(item.key) for item in items],
        groups=groups,
        strata=None if strata is None else [strata.get(item.key) for item in items],
        weights=[item.weight for item in items],
    )
    judged = LabelledScores(
        scale=Scale.BINARY,
        labels=np.array(given),
        scores=np.array([item.score for item in labelled]),
        bounds=(0.0, 1.0),
        probabilities=sure if asked.any() else None,
        predict=predict if asked.any() else None,
        groups=[group_of[item.key] for item in labelled],
        weights=parts if np.ptp(parts) > 0 else None,
    )
    is_whole = compared == len(items)
    selected = describe_selection(of_run) if data.sampling.is_random and not is_whole else ""
    is_random = is_whole or (data.sampling.is_random and not selected)
    return PairedLabels(judged, counts, None, (), of_run, is_random, selected)
