"""Measure how far people agree with the sure answers of the cheaper judge of a cascade, and find what was measured."""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from metric_core.calibration.looks import tail_of_look
from metric_core.calibration.sure_answers import measure_sure_answers
from metric_core.calibration.sure_threshold import SureThreshold, describe_verdicts
from metric_core.calibration.weighted_statistics import Booleans
from metric_core.declarations.metric import MetricRequest
from metric_core.prompts.judge_questions import YES
from metric_core.statistics.resampling import LEVEL, Floats
from tasks.calibration.calibration_files import Calibration, JudgeSureness, load_latest
from tasks.calibration.label_items import LabelItem, list_verdicts
from tasks.calibration.run_labels import RunLabels
from tasks.runs.finished_run import FinishedRun

_MIDDLE = 0.5
_ROWS = "of rows: label single verdicts (`assay label --claims`)"
_CHOSEN = "no random sample of the verdicts"
_WEIGHTED = (
    "drawn with different probabilities (--active, --strata, --by): draw claims with --surest, or a plain sample"
)


@dataclass(frozen=True, slots=True)
class MeasuredCascade:
    """The labels of the answers of the cheaper judge of a run.

    Args:
        found: One per set of verdicts that thresholds hold for.
        warning: Why the labels say nothing; empty if they do.
    """

    found: tuple[JudgeSureness, ...] = ()
    warning: str = ""


def measure_cascade(
    run: FinishedRun, request: MetricRequest, labels: RunLabels | None, *, is_random: bool, look: int
) -> MeasuredCascade:
    """Return what the labels of a run say of the cheaper judge of its cascade; nothing without a cascade.

    Args:
        labels: Labels of the verdicts that the metric reads.
        is_random: True if these are a random sample.
        look: Number of looks at them so far.
    """
    cascade, options = run.record.cascade, run.record.config.cascade
    if cascade is None or options is None:
        return MeasuredCascade()
    if labels is None or labels.weights is None:
        return _refuse(_ROWS)
    if not is_random:
        return _refuse(_CHOSEN)
    drawn = dict(zip(labels.rows, labels.probabilities or [1.0] * len(labels.rows), strict=True))
    given = dict(zip(labels.rows, labels.labels, strict=True))
    groups = dict(zip(labels.rows, labels.groups or labels.rows, strict=True))
    asked: dict[str, list[LabelItem]] = defaultdict(list)
    for item in list_verdicts(run, request):
        if item.verdict is not None and item.votes and item.votes[0][0] == cascade.name:
            asked[describe_verdicts(*item.verdict)].append(item)
    found = []
    for about, items in sorted(asked.items()):
        sure = np.array([item.sureness(cascade.name) for item in items])
        wrong = np.array([_is_wrong(item, given.get(item.key)) for item in items], dtype=np.float64)
        least = _least_sureness(sure, np.isfinite(wrong), [drawn.get(item.key) or 0.0 for item in items])
        if np.isfinite(wrong[sure >= least]).sum() * 2 < np.isfinite(wrong).sum():
            return _refuse(_WEIGHTED)
        of_items = [groups.get(item.key, item.key) for item in items]
        answers = measure_sure_answers(sure, wrong, of_items, tail_of_look(1 - LEVEL, look), least)
        of_judge = (cascade.name, cascade.judge, cascade.writer)
        found.append(JudgeSureness(*of_judge, about, options.most_disagreement, answers))
    return MeasuredCascade(tuple(found))


def _least_sureness(sureness: Floats, is_labelled: Booleans, drawn: Sequence[float]) -> float:
    """Return the sureness above which all labelled verdicts were drawn with one probability.

    It is that of a labelled verdict: of those below, it is not known with which probability they were drawn.

    >>> drawn = [0.5, 0.5, 0.5, 0.1, 0.1]
    >>> float(_least_sureness(np.array([0.9, 0.8, 0.7, 0.6, 0.5]), np.array([True, True, False, True, True]), drawn))
    0.8
    """
    sure, chances = sureness[is_labelled], np.array(drawn)[is_labelled]
    if len(sure) == 0 or np.ptp(chances) == 0:
        return 0.0
    is_other = chances != chances[np.argmax(sure)]
    alike = sure[~is_other & (sure > sure[is_other].max())]
    return float(alike.min()) if len(alike) else math.inf


def find_thresholds(most: float) -> tuple[SureThreshold, ...]:
    """Return how sure judges must be, as the calibrations on this machine say.

    Of several calibrations of the same judge and verdicts, the one with the most labels counts, whatever it says.

    Args:
        most: Accepted share of answers that people disagree with.
    """
    best: dict[tuple[str, str, str], tuple[JudgeSureness, Calibration]] = {}
    for calibration in load_latest():  # newest first
        for each in calibration.sure:
            key = (each.judge, each.writer, each.about)
            if key not in best or best[key][0].answers.labels < each.answers.labels:
                best[key] = each, calibration
    found = []
    for each, calibration in best.values():
        if (point := each.answers.choose(most)) is not None:
            where = (each.judge, each.writer, each.about, calibration.metric, calibration.created, most)
            found.append(
                SureThreshold(
                    *where, point.least, point.share, point.labels, point.wrong, point.limit, each.answers.verdicts
                )
            )
    return tuple(found)


def _is_wrong(item: LabelItem, label: float | None) -> float:
    """Return whether people disagree with the first vote; NaN without a label."""
    return float("nan") if label is None else float((item.votes[0][1] == YES) != (label > _MIDDLE))


def _refuse(why: str) -> MeasuredCascade:
    return MeasuredCascade(warning=f"the labels do not say how sure the cheaper judge must be: they are {why}")
