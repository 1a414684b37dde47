"""Read the evidence of each sample from the stage tables."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from operator import itemgetter
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
    VerdictKey,
    VerdictKind,
)
from metric_core.schemas import EVIDENCE_COLUMNS
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

_Cells: TypeAlias = tuple[Any, ...]
"""The cells of a table row in its columns of `EVIDENCE_COLUMNS`, which begin with row_id, status and reason."""

_KINDS = {str(kind): kind for kind in VerdictKind}
_SIDES = {str(side): side for side in Side}
_ON_REQUEST = (VerdictKind.SUPPORT, VerdictKind.FULL_SUPPORT)

AskedProbabilities: TypeAlias = Mapping[VerdictKey, float]
"""The judge's probabilities of yes, by kind, claim and premise; verdicts that needed no judge question are left out."""


def read_evidence(samples: Iterable[Sample], tables: Tables, verdict: str) -> Iterable[Evidence]:
    """Yield the evidence of each sample from the stage tables.

    Args:
        verdict: `binary` or `probability`: the value that a verdict counts as.
    """
    grouped = {stage: _by_row(_cells(tables, stage)) for stage in tables if stage in EVIDENCE_COLUMNS}
    for sample in samples:
        rows = {stage: found.get(sample.row_id, ()) for stage, found in grouped.items()}
        yield _evidence(sample, rows, verdict)


def add_verdicts(evidence: Evidence, rows: Iterable[Mapping[str, Any]]) -> Evidence:
    """Return the evidence of a row with further verdicts, as labels.

    Args:
        rows: Rows of the table of verdicts.
    """
    gaps = dict(evidence.gaps)
    cells = (tuple(map(row.get, EVIDENCE_COLUMNS[Stage.VERDICTS])) for row in rows)
    return replace(evidence, verdicts={**evidence.verdicts, **_verdicts(cells, gaps)}, gaps=gaps)


def read_asked_probabilities(tables: Tables) -> Mapping[str, AskedProbabilities]:
    """Return the judge's probabilities for the verdicts of each row, by row id."""
    by_row: dict[str, dict[VerdictKey, float]] = defaultdict(dict)
    if Stage.VERDICTS in tables:
        for row_id, _, reason, kind, claim_id, premise, _, probability in _cells(tables, Stage.VERDICTS):
            # A verdict that has a reason needed no judge question.
            if probability is not None and reason is None:
                by_row[row_id][_KINDS[kind], claim_id, premise] = probability
    return by_row


def map_probabilities(evidence: Evidence, asked: AskedProbabilities, probability_map: ProbabilityMap) -> Evidence:
    """Return the evidence of a row with mapped probabilities."""
    changed = {key: probability_map(probability) for key, probability in asked.items()}
    # Products of plugins may be computed from the verdicts.
    return replace(evidence, verdicts={**evidence.verdicts, **changed}, computed={})


def _cells(tables: Tables, stage: Stage) -> Iterable[_Cells]:
    return zip(*(tables[stage][name].to_pylist() for name in EVIDENCE_COLUMNS[stage]), strict=True)


def _by_row(cells: Iterable[_Cells]) -> dict[str, list[_Cells]]:
    grouped: dict[str, list[_Cells]] = defaultdict(list)
    for row_id, rows in groupby(cells, itemgetter(0)):
        grouped[row_id].extend(rows)
    return grouped


def _evidence(sample: Sample, rows: Mapping[Stage, Sequence[_Cells]], verdict: str) -> Evidence:
    gaps: dict[Product, Score] = {}
    claims, places, importances = _claims(rows.get(Stage.CLAIMS, ()), gaps)
    entities = _entities(rows.get(Stage.ENTITIES, ()), gaps)
    questions = _questions(rows.get(Stage.QUESTIONS, ()), gaps)
    cosines: list[float | None] = [None] * len(questions)
    answer_similarities = {}
    for _, status, reason, pair, k, cosine in rows.get(Stage.SIMILARITY, ()):
        if (product := _PAIR_PRODUCTS.get(pair)) is None:
            _note_gap(gaps, Product.QUESTION_SIMILARITY, status, reason)
            cosines[k] = cosine
        else:
            _note_gap(gaps, product, status, reason)
            answer_similarities[product] = cosine
    verdicts = _verdicts(rows.get(Stage.VERDICTS, ()), gaps)
    return Evidence(
        sample=sample,
        claims=claims,
        verdicts=verdicts if verdict == "binary" else _probabilities(rows.get(Stage.VERDICTS, ()), verdicts),
        decisions=None if verdict == "binary" else verdicts,
        entities=entities,
        questions=questions,
        question_similarities=cosines,
        answer_similarities=answer_similarities,
        ratings=_ratings(rows.get(Stage.RATINGS, ())),
        gaps=gaps,
        places=places,
        importances=importances,
    )


def _claims(
    rows: Iterable[_Cells], gaps: dict[Product, Score]
) -> tuple[dict[Side, dict[str, str]], dict[str, Place], dict[str, Importance]]:
    """Return the texts of claims and sentences by side, and places and importances, all by their ids."""
    claims: dict[Side, dict[str, str]] = defaultdict(dict)
    places: dict[str, Place] = {}
    importances: dict[str, Importance] = {}
    for _, status, reason, name, claim_id, text, start, end, sentence, citations, importance in rows:
        side = _SIDES[name]
        _note_gap(gaps, _SIDE_PRODUCTS[Stage.CLAIMS, side], status, reason)
        if status == AnswerStatus.ANSWERED:
            claims[side][claim_id] = text
            if importance is not None:
                importances[claim_id] = Importance(importance)
            if start is not None:
                places[claim_id] = Place(start, end, sentence, tuple(citations or ()))
    return claims, places, importances


def _entities(rows: Iterable[_Cells], gaps: dict[Product, Score]) -> dict[Side, tuple[str, ...]]:
    entities: dict[Side, dict[str, None]] = defaultdict(dict)
    for _, status, reason, name, text in rows:
        side = _SIDES[name]
        _note_gap(gaps, _SIDE_PRODUCTS[Stage.ENTITIES, side], status, reason)
        if status == AnswerStatus.ANSWERED:
            entities[side][text] = None
    return {side: tuple(found) for side, found in entities.items()}


def _note_gap(gaps: dict[Product, Score], product: Product, status: str, reason: str | None) -> None:
    """Note the gap that a failed or impossible reply leaves; an empty result is not a gap."""
    if status == AnswerStatus.FAILED:
        gaps[product] = Score.failed(reason or reasons.NO_USABLE_REPLY)
    elif status == AnswerStatus.UNDEFINED and reason not in reasons.NOTHING_FOUND:
        gaps[product] = Score.undefined(reason or reasons.NEEDS_LANGUAGE_MODEL)


def _questions(rows: Iterable[_Cells], gaps: dict[Product, Score]) -> list[Question]:
    questions = []
    for _, status, reason, text, noncommittal in rows:
        _note_gap(gaps, Product.QUESTIONS, status, reason)
        if status == AnswerStatus.ANSWERED:
            questions.append(Question(text, noncommittal))
    return questions


def _verdicts(rows: Iterable[_Cells], gaps: dict[Product, Score]) -> dict[VerdictKey, Support]:
    verdicts: dict[VerdictKey, Support] = {}
    for _, status, reason, name, claim_id, premise, verdict, _ in rows:
        kind = _KINDS[name]
        # One reply judges all sentences. Other verdicts have separate replies: a score may do without a failed one.
        if kind is VerdictKind.RELEVANCE or status == AnswerStatus.UNDEFINED:
            requested = (Product.REQUESTED_VERDICTS,) if kind in _ON_REQUEST else ()
            for product in (*products_of(kind, claim_id, premise), *requested):
                _note_gap(gaps, product, status, reason)
        verdicts[kind, claim_id, premise] = None if verdict is None else float(verdict)
    return verdicts


def _probabilities(rows: Iterable[_Cells], verdicts: Mapping[VerdictKey, Support]) -> dict[VerdictKey, Support]:
    """Return the judge's probabilities of yes, and the verdicts themselves where it gave none."""
    supports = dict(verdicts)
    for *_, kind, claim_id, premise, verdict, probability in rows:
        if verdict is not None and probability is not None:
            supports[_KINDS[kind], claim_id, premise] = probability
    return supports


def _ratings(rows: Iterable[_Cells]) -> dict[str, list[Rating]]:
    ratings: dict[str, list[Rating]] = defaultdict(list)
    for _, status, reason, metric, template, value, number in rows:
        unable = status == AnswerStatus.UNDEFINED
        ratings[metric].append(Rating(template, value if number is None else number, reason, unable))
    return ratings
