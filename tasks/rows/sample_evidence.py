"""Read the evidence of each sample from the stage tables."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, TypeAlias

import pyarrow as pa

from metric_core import reasons
from metric_core.calibration.platt import ProbabilityMap
from metric_core.evidence import Evidence, products_of
from metric_core.records import (
    AnswerStatus,
    Importance,
    Pair,
    Place,
    Question,
    Rating,
    Sample,
    Score,
    Side,
    Support,
    VerdictKind,
)
from metric_core.stages import Product, Stage

Tables: TypeAlias = Mapping[Stage, pa.Table]
_SIDE_PRODUCTS = {
    (Stage.CLAIMS, Side.RESPONSE): Product.RESPONSE_CLAIMS,
    (Stage.CLAIMS, Side.RESPONSE_SENTENCE): Product.RESPONSE_SENTENCES,
    (Stage.CLAIMS, Side.REFERENCE_CONTEXT): Product.REFERENCE_CONTEXT_CLAIMS,
    (Stage.CLAIMS, Side.REFERENCE): Product.REFERENCE_CLAIMS,
    (Stage.CLAIMS, Side.REFERENCE_SENTENCE): Product.REFERENCE_SENTENCES,
    (Stage.CLAIMS, Side.CONTEXT_SENTENCE): Product.CONTEXT_SENTENCES,
    (Stage.CLAIMS, Side.KEY_POINT): Product.KEY_POINTS,
    (Stage.ENTITIES, Side.REFERENCE): Product.REFERENCE_ENTITIES,
    (Stage.ENTITIES, Side.CONTEXT): Product.CONTEXT_ENTITIES,
}
_PAIR_PRODUCTS = {
    Pair.ANSWER: Product.ANSWER_SIMILARITY,
    Pair.ANSWER_CROSS_ENCODER: Product.ANSWER_SIMILARITY_BY_CROSS_ENCODER,
}

_KINDS = {str(kind): kind for kind in VerdictKind}
_ON_REQUEST = (VerdictKind.SUPPORT, VerdictKind.FULL_SUPPORT)

AskedProbabilities: TypeAlias = Mapping[tuple[VerdictKind, str, str], float]
"""The judge's probabilities of yes, by kind, claim and premise; verdicts that needed no judge question are left out."""


def read_evidence(samples: Iterable[Sample], tables: Tables, verdict: str) -> Iterable[Evidence]:
    """Yield the evidence of each sample from the stage tables.

    Args:
        verdict: `binary` or `probability`: the value that a verdict counts as.
    """
    grouped: dict[Stage, dict[str, list[Mapping[str, Any]]]] = {
        name: _by_row(table.to_pylist()) for name, table in tables.items() if name is not Stage.SAMPLES
    }
    for sample in samples:
        rows = {name: found.get(sample.row_id, []) for name, found in grouped.items()}
        yield _evidence(sample, rows, verdict)


def add_verdicts(evidence: Evidence, rows: Iterable[Mapping[str, Any]]) -> Evidence:
    """Return the evidence of a row with further verdicts, as labels.

    Args:
        rows: Rows of the table of verdicts.
    """
    gaps = dict(evidence.gaps)
    return replace(evidence, verdicts={**evidence.verdicts, **_verdicts(rows, gaps)}, gaps=gaps)


def read_asked_probabilities(tables: Tables) -> Mapping[str, AskedProbabilities]:
    """Return the judge's probabilities for the verdicts of each row, by row id."""
    by_row: dict[str, dict[tuple[VerdictKind, str, str], float]] = defaultdict(dict)
    for row in tables[Stage.VERDICTS].to_pylist() if Stage.VERDICTS in tables else ():
        # A verdict that has a reason needed no judge question.
        if row["probability"] is not None and row["reason"] is None:
            by_row[row["row_id"]][VerdictKind(row["kind"]), row["claim_id"], row["premise"]] = row["probability"]
    return by_row


def map_probabilities(evidence: Evidence, asked: AskedProbabilities, probability_map: ProbabilityMap) -> Evidence:
    """Return the evidence of a row with mapped probabilities."""
    changed = {key: probability_map(probability) for key, probability in asked.items()}
    # Products of plugins may be computed from the verdicts.
    return replace(evidence, verdicts={**evidence.verdicts, **changed}, computed={})


def _by_row(rows: Iterable[Mapping[str, Any]]) -> dict[str, list[Mapping[str, Any]]]:
    grouped: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for row in rows:
        grouped[row["row_id"]].append(row)
    return grouped


def _evidence(sample: Sample, rows: Mapping[Stage, list[Mapping[str, Any]]], verdict: str) -> Evidence:
    claims: dict[Side, dict[str, str]] = defaultdict(dict)
    entities: dict[Side, dict[str, None]] = defaultdict(dict)
    gaps: dict[Product, Score] = {}
    places: dict[str, Place] = {}
    importances: dict[str, Importance] = {}
    for name in (Stage.CLAIMS, Stage.ENTITIES):
        for row in rows.get(name, ()):
            side = Side(row["side"])
            _note_gap(gaps, _SIDE_PRODUCTS[name, side], row)
            if row["status"] != AnswerStatus.ANSWERED:
                continue
            if name is Stage.CLAIMS:
                claims[side][row["claim_id"]] = row["text"]
                if row["importance"] is not None:
                    importances[row["claim_id"]] = Importance(row["importance"])
                if row["start"] is not None:
                    citations = tuple(row["citations"] or ())
                    places[row["claim_id"]] = Place(row["start"], row["end"], row["sentence"], citations)
            else:
                entities[side][row["text"]] = None
    questions, cosines = _questions(rows, gaps)
    answer_similarities = {}
    for row in rows.get(Stage.SIMILARITY, ()):
        if (product := _PAIR_PRODUCTS.get(row["pair"])) is not None:
            _note_gap(gaps, product, row)
            answer_similarities[product] = row["cosine"]
    verdicts = _verdicts(rows.get(Stage.VERDICTS, ()), gaps)
    return Evidence(
        sample=sample,
        claims=claims,
        verdicts=verdicts if verdict == "binary" else _probabilities(rows.get(Stage.VERDICTS, ()), verdicts),
        decisions=None if verdict == "binary" else verdicts,
        entities={side: tuple(found) for side, found in entities.items()},
        questions=questions,
        question_similarities=cosines,
        answer_similarities=answer_similarities,
        ratings=_ratings(rows.get(Stage.RATINGS, ())),
        gaps=gaps,
        places=places,
        importances=importances,
    )


def _note_gap(gaps: dict[Product, Score], product: Product, row: Mapping[str, Any]) -> None:
    """Note the gap that a failed or impossible reply leaves; an empty result is not a gap."""
    if row["status"] == AnswerStatus.FAILED:
        gaps[product] = Score.failed(row["reason"] or reasons.NO_USABLE_REPLY)
    elif row["status"] == AnswerStatus.UNDEFINED and row["reason"] not in reasons.NOTHING_FOUND:
        gaps[product] = Score.undefined(row["reason"] or reasons.NEEDS_LANGUAGE_MODEL)


def _questions(
    rows: Mapping[Stage, list[Mapping[str, Any]]], gaps: dict[Product, Score]
) -> tuple[list[Question], list[float | None]]:
    questions = []
    for row in rows.get(Stage.QUESTIONS, ()):
        _note_gap(gaps, Product.QUESTIONS, row)
        if row["status"] == AnswerStatus.ANSWERED:
            questions.append(Question(row["text"], row["noncommittal"]))
    cosines: list[float | None] = [None] * len(questions)
    for row in rows.get(Stage.SIMILARITY, ()):
        if row["pair"] == Pair.QUESTION:
            _note_gap(gaps, Product.QUESTION_SIMILARITY, row)
            cosines[row["k"]] = row["cosine"]
    return questions, cosines


def _verdicts(
    rows: Iterable[Mapping[str, Any]], gaps: dict[Product, Score]
) -> dict[tuple[VerdictKind, str, str], Support]:
    verdicts: dict[tuple[VerdictKind, str, str], Support] = {}
    for row in rows:
        kind = _KINDS[row["kind"]]
        # One reply judges all sentences. Other verdicts have separate replies: a score may do without a failed one.
        if kind is VerdictKind.RELEVANCE or row["status"] == AnswerStatus.UNDEFINED:
            requested = (Product.REQUESTED_VERDICTS,) if kind in _ON_REQUEST else ()
            for product in (*products_of(kind, row["claim_id"], row["premise"]), *requested):
                _note_gap(gaps, product, row)
        verdicts[kind, row["claim_id"], row["premise"]] = None if row["verdict"] is None else float(row["verdict"])
    return verdicts


def _probabilities(
    rows: Iterable[Mapping[str, Any]], verdicts: Mapping[tuple[VerdictKind, str, str], Support]
) -> dict[tuple[VerdictKind, str, str], Support]:
    """Return the judge's probabilities of yes, and the verdicts themselves where it gave none."""
    supports = dict(verdicts)
    for row in rows:
        if row["verdict"] is not None and row["probability"] is not None:
            supports[VerdictKind(row["kind"]), row["claim_id"], row["premise"]] = row["probability"]
    return supports


def _ratings(rows: Iterable[Mapping[str, Any]]) -> dict[str, list[Rating]]:
    ratings: dict[str, list[Rating]] = defaultdict(list)
    for row in rows:
        value = row["number"] if row["number"] is not None else row["value"]
        unable = row["status"] == AnswerStatus.UNDEFINED
        ratings[row["metric"]].append(Rating(row["template"], value, row["reason"], unable))
    return ratings
