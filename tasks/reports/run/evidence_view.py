"""Collect the evidence of one row as JSON for the report's page.

The page computes nothing: sentences are cut, entities compared and tones chosen here.
"""

import json
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

from metric_core.evidence import context_premise
from metric_core.metrics.context_entity_recall import EXACT, normalize_entity
from metric_core.records import AnswerStatus, Pair, Side, VerdictKind
from metric_core.stages import Stage
from tasks.documents.run.score_table import MetricScale
from tasks.reports.run.claims_view import claims_view, find_passage
from tasks.reports.run.conversation_view import conversation_view
from tasks.reports.run.passages import Segments, segment
from tasks.reports.run.ranking_view import RankingMetric, is_grade, rankings_view
from tasks.reports.run.row_tables import RowTables
from tasks.reports.run.verdict_view import explanations_by_verdict, panel_view, verdict_view
from tasks.reports.truncation import LONGEST_TEXT, Row, gap_view, truncate_reply, truncate_text

LONGEST_PASSAGES = 200_000
"""Maximum number of characters of all passages of a row on a page; the tables have the whole passages."""

_OTHER_COLUMNS = ("reference_contexts", "retrieved_context_ids", "reference_context_ids", "rubrics", "extras")


def row_view(
    tables: RowTables, metric_scales: Sequence[MetricScale], match: str, rankings: Sequence[RankingMetric] = ()
) -> dict[str, Any]:
    """Return a row for the page.

    Args:
        metric_scales: Metrics, in the order of the page.
        match: Parameter `match` of context entity recall, which says how entities are compared.
        rankings: Metrics whose graded rankings are shown.
    """
    sample = tables.sample
    passages = _segments(sample, tables.rows(Stage.CLAIMS))
    return {
        "id": sample["row_id"],
        "number": sample["row_number"],
        "question": truncate_text(sample["user_input"]),
        "answer": truncate_text(sample["response"]),
        "reference": truncate_text(sample["reference"]),
        "cells": _cells(tables.cells, metric_scales),
        "passages": _passages(sample, passages, tables),
        "claims": claims_view(tables, passages),
        **conversation_view(tables),
        "questions": _questions(tables),
        "similarities": [
            {"pair": row["pair"], "value": row["cosine"], "reason": row["reason"]}
            for row in tables.rows(Stage.SIMILARITY)
            if row["pair"] != Pair.QUESTION
        ],
        "entities": _entities(tables.rows(Stage.ENTITIES), match),
        "rankings": rankings_view(tables, rankings),
        "ratings": _ratings(
            [row for row in tables.rows(Stage.RATINGS) if not (rankings and is_grade(row))],
            tables.rows(Stage.EXPLANATIONS),
        ),
        "columns": [
            {"name": name, "text": truncate_text(shown)}
            for name in _OTHER_COLUMNS
            if (shown := _format_value(name, sample[name]))
        ],
    }


def _cells(cells: Iterable[Row], metric_scales: Iterable[MetricScale]) -> list[dict[str, Any] | None]:
    by_metric = {cell["metric"]: cell for cell in cells}
    return [_cell(by_metric[stick.key], stick) if stick.key in by_metric else None for stick in metric_scales]


def _cell(cell: Row, metric_scale: MetricScale) -> dict[str, Any]:
    fields = {name: cell[name] for name in ("status", "value", "label", "reason") if cell[name] is not None}
    return {**fields, "tone": metric_scale.tone(cell["value"])}


def _format_value(name: str, value: Any) -> str:
    if value is None:
        return ""
    if name == "extras":
        return "\n".join(f"{column}: {content}" for column, content in json.loads(value).items())
    if name == "rubrics":
        return "\n".join(f"{rubric['key']}: {rubric['description']}" for rubric in value)
    return "\n".join(map(str, value))


def _limit(contexts: Sequence[str]) -> int:
    return min(LONGEST_TEXT, LONGEST_PASSAGES // max(1, len(contexts)))


def _segments(sample: Row, claims: Iterable[Row]) -> list[Segments]:
    contexts = sample["retrieved_contexts"] or ()
    sentences: dict[int, list[str]] = {}
    for claim in claims:
        if claim["side"] == Side.CONTEXT_SENTENCE and claim["claim_id"] is not None:
            sentences.setdefault(find_passage(claim["claim_id"]), []).append(claim["text"])
    limit = _limit(contexts)
    return [segment(text[:limit], tuple(sentences[i]) if i in sentences else None) for i, text in enumerate(contexts)]


def _passages(sample: Row, segments: Sequence[Segments], tables: RowTables) -> list[dict[str, Any]]:
    contexts = sample["retrieved_contexts"] or ()
    verdicts = tables.rows(Stage.VERDICTS)
    explanations = explanations_by_verdict(tables.rows(Stage.EXPLANATIONS))
    useful = {
        (row["kind"], row["premise"]): verdict_view(row, explanations)
        for row in verdicts
        if row["kind"] in {VerdictKind.USEFULNESS_FOR_REFERENCE, VerdictKind.USEFULNESS_FOR_RESPONSE}
    }
    relevance: dict[int, list[Row]] = {}
    for row in verdicts:
        if row["kind"] == VerdictKind.RELEVANCE:
            relevance.setdefault(find_passage(row["claim_id"]), []).append(row)
    return [
        {
            "pieces": segments[i].pieces,
            **_marks(sample, i),
            "of": len(text) if len(text) > _limit(contexts) else None,
            "useful": [
                {"for": kind, **useful[kind, context_premise(i)]}
                for kind in (VerdictKind.USEFULNESS_FOR_REFERENCE, VerdictKind.USEFULNESS_FOR_RESPONSE)
                if (kind, context_premise(i)) in useful
            ],
            "relevance": _relevance(relevance[i], segments[i]) if i in relevance else None,
        }
        for i, text in enumerate(contexts)
    ]


def _marks(sample: Row, index: int) -> dict[str, Any]:
    """Return the id and the score of a passage, as far as the retriever gave them."""
    ids, scores = sample["retrieved_context_ids"] or (), sample["retrieved_context_scores"] or ()
    marks: dict[str, Any] = {}
    if index < len(ids):
        marks["name"] = truncate_text(ids[index])
    if index < len(scores) and scores[index] is not None:
        marks["score"] = f"{scores[index]:.4g}"
    return marks


def _relevance(rows: Sequence[Row], segments: Segments) -> dict[str, Any]:
    pieces = zip(rows, segments.sentences, strict=False)
    return {
        "sentences": len(rows),
        "relevant": sum(row["verdict"] == 1 for row in rows),
        "pieces": [piece for row, piece in pieces if row["verdict"] == 1 and piece is not None],
        "reason": next((row["reason"] for row in rows if row["status"] != AnswerStatus.ANSWERED), None),
        "reply": truncate_reply(rows),
    }


def _questions(tables: RowTables) -> dict[str, Any] | None:
    rows = tables.rows(Stage.QUESTIONS)
    cosines = {row["k"]: row["cosine"] for row in tables.rows(Stage.SIMILARITY) if row["pair"] == Pair.QUESTION}
    questions = [
        {"text": truncate_text(row["text"]), "noncommittal": row["noncommittal"], "cosine": cosines.get(row["k"])}
        for row in rows
        if row["k"] is not None
    ]
    return {"gap": gap_view(rows), "reply": truncate_reply(rows), "questions": questions} if rows else None


def _entities(rows: Sequence[Row], match: str) -> dict[str, Any] | None:
    """Return the entities of the reference, each with the passages that name it."""
    if not rows:
        return None
    passages: dict[str, set[int]] = {}
    for row in rows:
        if row["side"] == Side.CONTEXT and row["text"] is not None:
            passages.setdefault(_name(row["text"], match), set()).add(row["passage"])
    entities: dict[str, dict[str, Any]] = {}
    reference = [row for row in rows if row["side"] == Side.REFERENCE]
    for row in reference:
        if row["text"] is not None and (name := _name(row["text"], match)):
            entity = {
                "text": truncate_text(row["text"]),
                "label": row["label"],
                "passages": sorted(passages.get(name, ())),
            }
            entities.setdefault(name, entity)
    return {"gap": gap_view(reference), "match": match, "entities": list(entities.values())}


@lru_cache(maxsize=16_384)
def _name(entity: str, match: str) -> str:
    return entity if match == EXACT else normalize_entity(entity)


def _ratings(rows: Iterable[Row], explanations: Iterable[Row]) -> list[dict[str, Any]]:
    why = {
        (row["metric"], row["template"]): row["text"] or f"no explanation: {row['reason'] or row['status']}"
        for row in explanations
        if row.get("template") is not None
    }
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows:
        vote = {name: row[name] for name in ("value", "status", "reason")}
        vote["feedback"] = truncate_text(row["feedback"])
        if row.get("panel"):
            vote["panel"] = panel_view(row["panel"])
        if row["reply"]:
            vote["reply"] = truncate_text(row["reply"])
        vote["probabilities"] = [(p["label"], p["probability"]) for p in row["probabilities"] or ()]
        groups.setdefault((row["metric"], row["template"]), []).append(vote)
    return [
        {
            "metric": metric,
            "template": template,
            "votes": votes,
            **({"why": truncate_text(why[metric, template])} if (metric, template) in why else {}),
        }
        for (metric, template), votes in groups.items()
    ]
