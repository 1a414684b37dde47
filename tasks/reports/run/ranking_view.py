"""Collect the graded rankings of one row for the report's page: grades, where they come from, gains and discounts."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from metric_core.metrics.graded_rankings import (
    GIVEN,
    JUDGE,
    RankedPassage,
    is_passage_template,
    ranked_passages,
)
from metric_core.metrics.retrieval_rankings import NDCG, discount, gains_of
from metric_core.records import AnswerStatus, Sample, Score
from metric_core.stages import Stage
from tasks.record.run_record import MetricRecord
from tasks.reports.run.row_tables import RowTables
from tasks.reports.truncation import Row, truncate_text

_FAMILY = NDCG.family
_BY_JUDGE, _UNJUDGED = "judge", "unjudged"
_NO_TEXT = "no text"


@dataclass(frozen=True, slots=True)
class RankingMetric:
    """A metric over graded rankings that a page shows the ranking of.

    Args:
        key: Key of the metric.
        judgments: Source of the grades: `given`, `judge` or `both`.
        k: Number of ranks that count; None for all.
        gain: Gain of a grade; None for a metric without gains.
    """

    key: str
    judgments: str
    k: int | None
    gain: str | None


def ranking_metrics(metrics: Iterable[MetricRecord]) -> tuple[RankingMetric, ...]:
    """Return the metrics whose rankings are shown: each nDCG, and one per source of grades that no nDCG reads.

    >>> names = {"key": "mrr", "name": "reciprocal_rank", "family": "retrieval_rankings"}
    >>> ranking_metrics([MetricRecord(**names, direction="higher", parameters={})])
    (RankingMetric(key='mrr', judgments='given', k=None, gain=None),)
    """
    found = [
        RankingMetric(
            metric.key,
            metric.parameters.get("judgments", GIVEN),
            metric.parameters.get("k"),
            metric.parameters.get("gain"),
        )
        for metric in metrics
        if metric.family == _FAMILY
    ]
    with_gain = [metric for metric in found if metric.gain is not None]
    shown = {metric.judgments for metric in with_gain}
    others: dict[str, RankingMetric] = {}
    for metric in found:
        if metric.judgments not in shown:
            others.setdefault(metric.judgments, metric)
    return (*with_gain, *others.values())


def rankings_view(tables: RowTables, metrics: Sequence[RankingMetric]) -> list[dict[str, Any]]:
    """Return the rankings of a row; none for a metric whose ranking is not known for the row."""
    sample = _sample(tables.sample)
    views = (_ranking(sample, tables, metric) for metric in metrics)
    return [view for view in views if view is not None]


def is_grade(rating: Row) -> bool:
    """Return whether a rating is a grade of a passage that the ranking shows; not if there is more to see of it."""
    return is_passage_template(rating["template"]) and not rating["reply"] and not rating.get("panel")


def _ranking(sample: Sample, tables: RowTables, metric: RankingMetric) -> dict[str, Any] | None:
    given = sample.relevance_judgments if metric.judgments != JUDGE else None
    passages = ranked_passages(sample, metric.judgments)
    if isinstance(passages, Score) or not passages or (metric.judgments == GIVEN and given is None):
        return None
    made = {row["template"]: row for row in tables.rows(Stage.RATINGS) if row["metric"] == metric.key}
    graded = [_graded(passage, made.get(passage.template), metric.judgments) for passage in passages]
    known = [entry["grade"] for entry in graded if entry["source"] == _BY_JUDGE and entry["grade"] is not None]
    highest = max([*(given or {}).values(), *known], default=0.0)
    if metric.gain is not None and highest > 0 and not tables.sample.get("evidence_spans"):
        gains = gains_of([entry["grade"] for entry in graded], highest, metric.gain)
        for rank, (entry, gain) in enumerate(zip(graded, gains, strict=True), start=1):
            if metric.k is None or rank <= metric.k:
                entry |= {"gain": gain, "discount": discount(rank), "counts": gain * discount(rank)}
    missed = len(set(given or ()) - {passage.key for passage in passages})
    return {"metric": metric.key, "judgments": metric.judgments, "k": metric.k, "passages": graded, "missed": missed}


def _graded(passage: RankedPassage, made: Row | None, judgments: str) -> dict[str, Any]:
    entry: dict[str, Any] = {"index": passage.index, "grade": passage.grade, "source": GIVEN}
    if passage.text is None or passage.key != passage.text:
        entry["name"] = truncate_text(passage.key)
    if passage.grade is not None:
        return entry
    if judgments == GIVEN:
        return entry | {"source": _UNJUDGED}
    if not passage.is_asked:
        return entry | {"grade": 0.0, "source": _BY_JUDGE, "reason": _NO_TEXT}
    if made is None:
        return entry | {"source": _UNJUDGED}
    if made["status"] != AnswerStatus.ANSWERED or made["value"] is None:
        return entry | {"source": _BY_JUDGE, "reason": made["reason"]}
    probabilities = {each["label"]: each["probability"] for each in made["probabilities"] or ()}
    return entry | {
        "source": _BY_JUDGE,
        "grade": float(made["value"]),
        "probability": probabilities.get(made["value"]),
    }


def _sample(row: Row) -> Sample:
    judgments, ids, contexts = (
        row.get(name) for name in ("relevance_judgments", "retrieved_context_ids", "retrieved_contexts")
    )
    return Sample(
        retrieved_contexts=None if contexts is None else tuple(contexts),
        retrieved_context_ids=None if ids is None else tuple(ids),
        relevance_judgments=None if judgments is None else {each["id"]: each["grade"] for each in judgments},
    )
