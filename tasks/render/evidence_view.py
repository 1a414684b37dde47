"""Everything the stages found out about one row, as the JSON that the report's page opens.

The page shows what is here and computes nothing: sentences are cut, entities compared and tones chosen on this side.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from metric_core.evidence import ALL_CONTEXTS, BY_REFERENCE, BY_RESPONSE, context_premise
from metric_core.metrics.context_entity_recall import EXACT, normalized
from metric_core.products import Stage
from metric_core.records import AnswerStatus, Pair, Side, VerdictKind
from tasks.render.passages import Segments, SentenceIndex, segment
from tasks.render.score_table import Yardstick

Row: TypeAlias = Mapping[str, Any]

LONGEST_TEXT = 20_000
LONGEST_PASSAGES = 200_000
"""Characters of a text, and of all passages of a row, that a page carries; the tables keep the rest."""

_WHOLE_PREMISES = (ALL_CONTEXTS, BY_REFERENCE, BY_RESPONSE)
_CLAIM_SIDES = (Side.RESPONSE, Side.REFERENCE, Side.REFERENCE_SENTENCE)
_OTHER_COLUMNS = ("reference_contexts", "retrieved_context_ids", "reference_context_ids", "rubrics", "extras")


@dataclass(frozen=True, slots=True)
class RowTables:
    """What the tables say about one row.

    Args:
        sample: its row of the samples table.
        cells: its rows of the score table.
        stages: its rows of the other tables, by stage; a stage that was not needed may be missing.
    """

    sample: Row
    cells: Sequence[Row]
    stages: Mapping[Stage, Sequence[Row]]

    def of(self, stage: Stage) -> Sequence[Row]:
        """The rows of a stage's table."""
        return self.stages.get(stage, ())


def row_view(tables: RowTables, yardsticks: Sequence[Yardstick], match: str) -> dict[str, Any]:
    """A row for the page.

    Args:
        tables: what is known about the row.
        yardsticks: the metrics, in the order in which the page shows them.
        match: how entities are compared, as context entity recall has it.
    """
    sample = tables.sample
    passages = _segments(sample, tables.of(Stage.CLAIMS))
    return {
        "id": sample["row_id"],
        "number": sample["row_number"],
        "question": _text(sample["user_input"]),
        "answer": _text(sample["response"]),
        "reference": _text(sample["reference"]),
        "cells": _cells(tables.cells, yardsticks),
        "passages": _passages(sample, passages, tables),
        "claims": _claims(tables, passages),
        "questions": _questions(tables),
        "similarities": [
            {"pair": row["pair"], "value": row["cosine"], "reason": row["reason"]}
            for row in tables.of(Stage.SIMILARITY)
            if row["pair"] != Pair.QUESTION
        ],
        "entities": _entities(tables.of(Stage.ENTITIES), match),
        "ratings": _ratings(tables.of(Stage.RATINGS)),
        "columns": [
            {"name": name, "text": _text(shown)} for name in _OTHER_COLUMNS if (shown := _shown(name, sample[name]))
        ],
    }


def _cells(cells: Iterable[Row], yardsticks: Iterable[Yardstick]) -> list[dict[str, Any] | None]:
    by_metric = {cell["metric"]: cell for cell in cells}
    return [_cell(by_metric[stick.key], stick) if stick.key in by_metric else None for stick in yardsticks]


def _cell(cell: Row, yardstick: Yardstick) -> dict[str, Any]:
    kept = {name: cell[name] for name in ("status", "value", "label", "reason") if cell[name] is not None}
    return {**kept, "tone": yardstick.tone(cell["value"])}


def _text(text: str | None, limit: int = LONGEST_TEXT) -> dict[str, Any] | None:
    """A text with its beginning only where it is too long, and then with its whole length."""
    if text is None:
        return None
    return {"text": text} if len(text) <= limit else {"text": text[:limit], "of": len(text)}


def _shown(name: str, value: Any) -> str:
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
            sentences.setdefault(_passage_of(claim["claim_id"]), []).append(claim["text"])
    limit = _limit(contexts)
    return [segment(text[:limit], sentences.get(i)) for i, text in enumerate(contexts)]


def _passage_of(claim_id: str) -> int:
    return int(claim_id.split(":")[1])


def _passages(sample: Row, segments: Sequence[Segments], tables: RowTables) -> list[dict[str, Any]]:
    contexts = sample["retrieved_contexts"] or ()
    verdicts = tables.of(Stage.VERDICTS)
    useful = {
        (row["kind"], row["premise"]): _verdict(row)
        for row in verdicts
        if row["kind"] in {VerdictKind.USEFULNESS_FOR_REFERENCE, VerdictKind.USEFULNESS_FOR_RESPONSE}
    }
    relevance: dict[int, list[Row]] = {}
    for row in verdicts:
        if row["kind"] == VerdictKind.RELEVANCE:
            relevance.setdefault(_passage_of(row["claim_id"]), []).append(row)
    return [
        {
            "pieces": segments[i].pieces,
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


def _relevance(rows: Sequence[Row], segments: Segments) -> dict[str, Any]:
    pieces = zip(rows, segments.sentences, strict=False)
    return {
        "sentences": len(rows),
        "relevant": sum(row["verdict"] == 1 for row in rows),
        "pieces": [piece for row, piece in pieces if row["verdict"] == 1 and piece is not None],
        "reason": next((row["reason"] for row in rows if row["status"] != AnswerStatus.ANSWERED), None),
    }


def _verdict(row: Row) -> dict[str, Any]:
    return {name: row[name] for name in ("verdict", "probability", "reason")}


def _claims(tables: RowTables, passages: Sequence[Segments]) -> list[dict[str, Any]]:
    verdicts: dict[str, list[Row]] = {}
    for row in tables.of(Stage.VERDICTS):
        if row["kind"] == VerdictKind.SUPPORT:
            verdicts.setdefault(row["claim_id"], []).append(row)
    by_side = {side: [row for row in tables.of(Stage.CLAIMS) if row["side"] == side] for side in _CLAIM_SIDES}
    index = SentenceIndex(passages if any(by_side.values()) else ())
    return [
        {
            "side": side,
            "gap": _gap(rows),
            "claims": [
                _claim(row, verdicts.get(row["claim_id"], ()), index) for row in rows if row["claim_id"] is not None
            ],
        }
        for side, rows in by_side.items()
        if rows
    ]


def _claim(row: Row, verdicts: Sequence[Row], index: SentenceIndex) -> dict[str, Any]:
    closest = index.closest(row["text"])
    by_premise = {verdict["premise"]: {"premise": verdict["premise"], **_verdict(verdict)} for verdict in verdicts}
    return {
        "text": _text(row["text"]),
        "verdicts": [by_premise[premise] for premise in _WHOLE_PREMISES if premise in by_premise],
        "passages": [
            {**verdict, "premise": _passage_of(premise)}
            for premise, verdict in by_premise.items()
            if premise not in _WHOLE_PREMISES
        ],
        "closest": closest and {name: getattr(closest, name) for name in ("passage", "piece", "shared", "words")},
    }


def _gap(rows: Iterable[Row]) -> dict[str, Any] | None:
    """Why a stage has nothing to show for a row; None if it has something."""
    missing = next((row for row in rows if row["status"] != AnswerStatus.ANSWERED), None)
    return None if missing is None else {"status": missing["status"], "reason": missing["reason"]}


def _questions(tables: RowTables) -> dict[str, Any] | None:
    rows = tables.of(Stage.QUESTIONS)
    cosines = {row["k"]: row["cosine"] for row in tables.of(Stage.SIMILARITY) if row["pair"] == Pair.QUESTION}
    questions = [
        {"text": _text(row["text"]), "noncommittal": row["noncommittal"], "cosine": cosines.get(row["k"])}
        for row in rows
        if row["k"] is not None
    ]
    return {"gap": _gap(rows), "questions": questions} if rows else None


def _entities(rows: Sequence[Row], match: str) -> dict[str, Any] | None:
    """The entities of the reference, each with the passages that name it."""
    if not rows:
        return None
    passages: dict[str, set[int]] = {}
    for row in rows:
        if row["side"] == Side.CONTEXT and row["text"] is not None:
            passages.setdefault(_name(row["text"], match), set()).add(row["passage"])
    wanted: dict[str, dict[str, Any]] = {}
    reference = [row for row in rows if row["side"] == Side.REFERENCE]
    for row in reference:
        if row["text"] is not None and (name := _name(row["text"], match)):
            entity = {"text": _text(row["text"]), "label": row["label"], "passages": sorted(passages.get(name, ()))}
            wanted.setdefault(name, entity)
    return {"gap": _gap(reference), "match": match, "entities": list(wanted.values())}


def _name(entity: str, match: str) -> str:
    return entity if match == EXACT else normalized(entity)


def _ratings(rows: Iterable[Row]) -> list[dict[str, Any]]:
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows:
        vote = {name: row[name] for name in ("value", "status", "reason")}
        vote["feedback"] = _text(row["feedback"])
        vote["probabilities"] = [(p["label"], p["probability"]) for p in row["probabilities"] or ()]
        found.setdefault((row["metric"], row["template"]), []).append(vote)
    return [{"metric": metric, "template": template, "votes": votes} for (metric, template), votes in found.items()]
