"""Retrieval metrics over graded relevance judgments: nDCG, average precision, recall, precision and others."""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from metric_core import columns, reasons
from metric_core.declarations.metric import Metric, MetricRequest, Parameter, constant
from metric_core.evidence import Evidence
from metric_core.metrics.graded_rankings import (
    CUT_OFF,
    JUDGMENTS,
    GradedRanking,
    given_grades,
    graded_ranking,
    optional_ranking_columns,
    questions_about_all,
    questions_about_top,
    ranking_columns,
    ranking_products,
)
from metric_core.question_kinds import QuestionKind
from metric_core.records import Score

LINEAR, EXPONENTIAL = "linear", "exponential"
_SOURCE = "trec_eval (NIST)"
_LEAST_STEP = 1e-9
"""Parts of a rank below this are rounding errors."""
_EXACT_POWERS = 512
"""Grade up to which two to its power is computed as it is; beyond, gains are relative to the highest."""


def gains_of(grades: Sequence[float | None], highest: float, gain: str = LINEAR) -> list[float]:
    """Return the gain of each grade, relative to that of the highest; 0 for unjudged passages and grades below 0.

    >>> gains_of([4, 1, 0, None], 4), gains_of([2, 0, -1], 2, "exponential")
    ([1.0, 0.25, 0.0, 0.0], [1.0, 0.0, 0.0])

    Args:
        grades: Grades; None if unjudged.
        highest: Highest grade, above 0.
        gain: `linear`, the grade; or `exponential`, two to the power of the grade, less 1.
    """
    if gain == LINEAR:
        return [0.0 if grade is None or grade <= 0 else grade / highest for grade in grades]
    if highest > _EXACT_POWERS:
        return [0.0 if grade is None or grade <= 0 else 2.0 ** (grade - highest) for grade in grades]
    most = math.expm1(highest * math.log(2))
    return [0.0 if grade is None or grade <= 0 else math.expm1(grade * math.log(2)) / most for grade in grades]


def discount(rank: int) -> float:
    """Return the discount of a rank, from 1: one over the binary logarithm of the next rank.

    >>> discount(1), discount(3)
    (1.0, 0.5)
    """
    return 1.0 / math.log2(rank + 1)


def ndcg(
    ranked: Sequence[float | None],
    judged: Sequence[float],
    k: int | None = None,
    gain: str = LINEAR,
    sizes: Sequence[float] | None = None,
) -> Score:
    """Return the normalized discounted cumulative gain: the gain of the ranking over that of the best possible one.

    Source: Järvelin and Kekäläinen, "Cumulated gain-based evaluation of IR techniques" (2002), with the discount of
    trec_eval; the exponential gain is that of Burges et al. (2005).

    Args:
        ranked: Grades of the distinct retrieved passages, best rank first; None if unjudged.
        judged: Grades of all judged passages, retrieved or not.
        k: Number of ranks that count; None for all.
        gain: `linear` or `exponential`, see `gains_of`.
        sizes: Share of a rank that each grade takes, see `GradedRanking.units`; then `ranked` is up to the cut-off.

    Returns:
        A score in [0, 1]; undefined (no grade above 0).

    >>> round(ndcg([0, 2, None], [2, 1, 0]).value, 4)  # (2 / log2(3)) / (2 + 1 / log2(3))
    0.4796
    """
    highest = max(judged, default=0.0)
    if highest <= 0:
        return Score.undefined(reasons.NO_RELEVANT_PASSAGE)
    best = sorted(gains_of(judged, highest, gain), reverse=True)
    gains = gains_of(ranked if sizes is not None else ranked[:k], highest, gain)
    ideal, found = _discounted(best[:k]), _discounted(gains) if sizes is None else _spread(gains, sizes)
    return Score.scored(min(found / ideal, 1.0))


def average_precision(
    ranked: Sequence[float | None],
    judged: Sequence[float],
    k: int | None = None,
    min_grade: float = 1.0,
    sizes: Sequence[float] | None = None,
) -> Score:
    """Return the mean over all relevant passages of the precision at their ranks; 0 for those not retrieved.

    Its mean over the rows is MAP. Source: trec_eval, map and map_cut.

    Args:
        ranked: Grades of the distinct retrieved passages, best rank first; None if unjudged.
        judged: Grades of all judged passages, retrieved or not.
        k: Number of ranks that count; None for all.
        min_grade: Least grade of a relevant passage.
        sizes: Share of a rank that each grade takes, as for `ndcg`.

    Returns:
        A score in [0, 1]; undefined (no relevant passage).

    >>> average_precision([1, None, 1], [1, 1, 1, 0]).value  # (1/1 + 2/3 + 0) / 3
    0.5555555555555555
    """
    relevant = _count(judged, min_grade)
    if not relevant:
        return Score.undefined(reasons.NO_RELEVANT_PASSAGE)
    top = ranked[:k] if sizes is None else ranked
    total, found, rank, last = 0.0, 0.0, 0.0, 1.0
    for grade, size in zip(top, sizes or (1.0,) * len(top), strict=True):
        if grade is not None and grade >= min_grade:
            whole = range(math.floor(found + _LEAST_STEP) + 1, math.floor(found + size + _LEAST_STEP) + 1)
            total += sum(number / (rank + number - found) for number in whole)
            found, last = found + size, rank + size
        rank += size
    part = found - math.floor(found + _LEAST_STEP)
    total += part * found / last
    return Score.scored(min(total / relevant, 1.0))


def retrieval_recall(
    ranked: Sequence[float | None],
    judged: Sequence[float],
    k: int | None = None,
    min_grade: float = 1.0,
    sizes: Sequence[float] | None = None,
) -> Score:
    """Return the share of the relevant passages that were retrieved. Source: trec_eval, recall.

    Arguments and outcomes are those of `average_precision`.

    >>> retrieval_recall([1, None, 2], [1, 2, 1, 0], k=2).value
    0.3333333333333333
    """
    relevant = _count(judged, min_grade)
    if not relevant:
        return Score.undefined(reasons.NO_RELEVANT_PASSAGE)
    if sizes is None:
        return Score.scored(min(_count(ranked[:k], min_grade) / relevant, 1.0))
    found = math.fsum(size for grade, size in zip(ranked, sizes, strict=True) if _count([grade], min_grade))
    return Score.scored(min(found / relevant, 1.0))


def retrieval_precision(ranked: Sequence[float | None], k: int | None = None, min_grade: float = 1.0) -> Score:
    """Return the share of the ranks up to k that hold a relevant passage. Source: trec_eval, P and set_P.

    Args:
        ranked: Grades of the distinct retrieved passages, best rank first; None if unjudged.
        k: Number of ranks; also ranks without a passage count. None for as many as were retrieved.
        min_grade: Least grade of a relevant passage.

    Returns:
        A score in [0, 1]; undefined (nothing retrieved, if k is None).

    >>> retrieval_precision([1, None, 1], 5).value, retrieval_precision([1, None, 1]).value
    (0.4, 0.6666666666666666)
    """
    ranks = len(ranked) if k is None else k
    return Score.scored(_count(ranked[:k], min_grade) / ranks) if ranks else Score.undefined(reasons.NO_CONTEXTS)


def reciprocal_rank(ranked: Sequence[float | None], k: int | None = None, min_grade: float = 1.0) -> Score:
    """Return one over the rank of the first relevant passage; 0 if none is among the ranks.

    Its mean over the rows is MRR. Source: trec_eval, recip_rank. Arguments are those of `retrieval_precision`.

    >>> reciprocal_rank([None, 0, 2]).value, reciprocal_rank([None, 0, 2], 2).value
    (0.3333333333333333, 0.0)
    """
    ranks = (rank for rank, grade in enumerate(ranked[:k], start=1) if grade is not None and grade >= min_grade)
    first = next(ranks, None)
    return Score.scored(0.0 if first is None else 1.0 / first)


def hit_rate(ranked: Sequence[float | None], k: int | None = None, min_grade: float = 1.0) -> Score:
    """Return 1 if a relevant passage is among the ranks, else 0. Source: trec_eval, success.

    Arguments are those of `retrieval_precision`.

    >>> hit_rate([None, 1]).value, hit_rate([None, 1], 1).value
    (1.0, 0.0)
    """
    return Score.scored(float(_count(ranked[:k], min_grade) > 0))


def judged_passages(ranked: Sequence[float | None], k: int | None = None) -> Score:
    """Return the share of the retrieved passages that are judged, relevant or not. Source: ir-measures, Judged.

    Args:
        ranked: Grades of the distinct retrieved passages, best rank first; None if unjudged.
        k: Number of ranks that count; None for all. Ranks without a passage do not count.

    Returns:
        A score in [0, 1]; undefined (nothing retrieved).

    >>> judged_passages([2, None, 0]).value
    0.6666666666666666
    """
    top = ranked[:k]
    if not top:
        return Score.undefined(reasons.NO_CONTEXTS)
    return Score.scored(sum(grade is not None for grade in top) / len(top))


def _discounted(gains: Sequence[float]) -> float:
    return math.fsum(gain * discount(rank) for rank, gain in enumerate(gains, start=1) if gain)


def _spread(gains: Sequence[float], sizes: Sequence[float]) -> float:
    """Return the discounted sum of gains that take parts of ranks, one after another."""
    found, place = [], 0.0
    for gain, size in zip(gains, sizes, strict=True):
        end = place + size
        while gain and end - place > _LEAST_STEP:
            rank = math.floor(place + _LEAST_STEP) + 1
            step = min(rank, end) - place
            found.append(gain * step * discount(rank))
            place += step
        place = end
    return math.fsum(found)


def _count(grades: Sequence[float | None], min_grade: float) -> int:
    return sum(grade is not None and grade >= min_grade for grade in grades)


def _over_all(formula: Callable[..., Score], names: Sequence[str], request: MetricRequest, evidence: Evidence) -> Score:
    """Score a row by a formula that counts all judged passages."""
    ranking = graded_ranking(request, evidence, only_top=False)
    if isinstance(ranking, Score):
        return ranking
    ranked, sizes = ranking.units(request.parameters["k"])
    return formula(ranked, ranking.judged, *[request.parameters[name] for name in names], sizes=sizes)


def _over_ranks(formula: Callable[..., Score], request: MetricRequest, evidence: Evidence) -> Score:
    """Score a row by a formula that reads the ranks alone, if anything is known to be relevant."""
    ranking = graded_ranking(request, evidence, only_top=True)
    if isinstance(ranking, Score):
        return ranking
    k, min_grade = request.parameters["k"], request.parameters["min_grade"]
    if not _count(ranking.judged, min_grade) and not _all_judged(ranking, k):
        return Score.undefined(reasons.NO_RELEVANT_PASSAGE)
    return formula(ranking.ranked, k, min_grade)


def _all_judged(ranking: GradedRanking, k: int | None) -> bool:
    """Return whether the judge has found every retrieved passage irrelevant, which is a finding about the ranking."""
    return ranking.by_judge and bool(ranking.ranked[:k])


def _judged(request: MetricRequest, evidence: Evidence) -> Score:
    return judged_passages(given_grades(evidence), request.parameters["k"])


def _check_min_grade(value: Any) -> str | None:
    """Accept numbers above 0: a grade of 0 is that of an irrelevant passage."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return None if is_number and value > 0 else "a number above 0"


_MIN_GRADE = Parameter(summary="least grade of a relevant passage", default=1, check=_check_min_grade)
_GAIN = Parameter(
    summary="gain of a grade: linear, the grade; or exponential, two to its power less 1",
    default=LINEAR,
    choices=(LINEAR, EXPONENTIAL),
)
_UNDEFINED = {
    reasons.NO_RELEVANT_PASSAGE: "no passage is judged relevant",
    reasons.IDS_OF_OTHER_PASSAGES: "there are more or fewer ids than contexts, so that no grade belongs to a passage",
    reasons.empty_column(columns.USER_INPUT): "the user question is empty, and the judge makes grades",
    reasons.NEEDS_LANGUAGE_MODEL: "grades are made by a judge that is not a language model",
}
_GRADED = partial(
    Metric,
    source=_SOURCE,
    family="retrieval_rankings",
    columns=ranking_columns,
    optional_columns=optional_ranking_columns,
    products=ranking_products,
    undefined=_UNDEFINED,
    parameters={"k": CUT_OFF, "min_grade": _MIN_GRADE, "judgments": JUDGMENTS},
    question_kinds=(QuestionKind.PASSAGE_RELEVANCE,),
    language_model=True,
)
"""Declaration of the metrics that read grades, given or made by the judge."""

NDCG = _GRADED(
    name="ndcg",
    summary="Gain of the ranked passages over that of the best possible ranking, by graded judgments.",
    compute=partial(_over_all, ndcg, ("k", "gain")),
    aliases=("ndcg_at_k",),
    parameters={"k": CUT_OFF, "gain": _GAIN, "judgments": JUDGMENTS},
    ratings=questions_about_all,
)

AVERAGE_PRECISION = _GRADED(
    name="average_precision",
    summary="Mean precision at the ranks of the relevant passages, by judgments; its mean is MAP.",
    compute=partial(_over_all, average_precision, ("k", "min_grade")),
    aliases=("map", "mean_average_precision"),
    ratings=questions_about_all,
)

RETRIEVAL_RECALL = _GRADED(
    name="retrieval_recall",
    summary="Share of the relevant passages that were retrieved, by judgments.",
    compute=partial(_over_all, retrieval_recall, ("k", "min_grade")),
    aliases=("recall_at_k",),
    ratings=questions_about_all,
)

RETRIEVAL_PRECISION = _GRADED(
    name="retrieval_precision",
    summary="Share of the ranks that hold a relevant passage, by judgments.",
    compute=partial(_over_ranks, retrieval_precision),
    undefined=_UNDEFINED | {reasons.NO_CONTEXTS: "nothing was retrieved, and there is no k"},
    aliases=("precision_at_k",),
    ratings=questions_about_top,
)

RECIPROCAL_RANK = _GRADED(
    name="reciprocal_rank",
    summary="One over the rank of the first relevant passage, by judgments; its mean is MRR.",
    compute=partial(_over_ranks, reciprocal_rank),
    aliases=("mrr", "mean_reciprocal_rank"),
    ratings=questions_about_top,
)

HIT_RATE = _GRADED(
    name="hit_rate",
    summary="Whether a relevant passage was retrieved, by judgments.",
    compute=partial(_over_ranks, hit_rate),
    aliases=("hit_rate_at_k", "success_at_k"),
    ratings=questions_about_top,
)

JUDGED_PASSAGES = Metric(
    name="judged_passages",
    summary="Share of the retrieved passages that have a judgment, relevant or not.",
    source="ir-measures, Judged",
    family="retrieval_rankings",
    columns=constant(columns.RETRIEVED_CONTEXT_IDS, columns.RELEVANCE_JUDGMENTS),
    products=constant(),
    compute=_judged,
    undefined={reasons.NO_CONTEXTS: "nothing was retrieved"},
    aliases=("judged", "judged_at_k"),
    parameters={"k": CUT_OFF},
)
