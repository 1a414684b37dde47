"""The stage `similarity`: cosines of question and answer pairs, all texts of a shard embedded in one batch."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metric_core import reasons
from metric_core.records import AnswerStatus, Pair, Sample
from metric_core.stages import Product, Stage
from tasks.models.models import open_cross_encoder, open_embedder
from tasks.options.embedder_options import EmbedderOptions
from tasks.options.judged_settings import StoredSettings
from tasks.stages.base import StageOutput, Tables, progress_reporter, stage
from tasks.tables.records import build_table, read_samples_table

BLANK = " "
"""Stands for an empty text: an embedder has no vector for nothing."""


class SimilaritySettings(StoredSettings, EmbedderOptions):
    """What the stage computes, and with what."""

    products: tuple[Product, ...]


@stage(Stage.SIMILARITY, version=2)
def similarity(tables: Tables, settings: SimilaritySettings) -> StageOutput:
    """Cosine of each pair that a product asks for, null where a vector is zero or not finite."""
    samples = read_samples_table(tables[Stage.SAMPLES])
    pairs: list[tuple[str, str, int, str, str]] = []
    if Product.QUESTION_SIMILARITY in settings.products:
        pairs += _question_pairs(samples, tables[Stage.QUESTIONS].to_pylist())
    if Product.ANSWER_SIMILARITY in settings.products:
        pairs += [(s.row_id, Pair.ANSWER, 0, s.response or BLANK, s.reference or BLANK) for s in samples]
    texts = list(dict.fromkeys(text for *_, one, other in pairs for text in (one, other)))
    tell = progress_reporter(Stage.SIMILARITY)
    tell(0, len(texts))
    vectors = (
        dict(zip(texts, open_embedder(settings.embedder, settings.cache).embed(texts), strict=True)) if texts else {}
    )
    rows = [_row(row_id, pair, k, cosine(vectors[one], vectors[other])) for row_id, pair, k, one, other in pairs]
    tell(len(texts), 0)
    if Product.ANSWER_SIMILARITY_BY_CROSS_ENCODER in settings.products:
        scored = open_cross_encoder(settings.embedder).similarity(
            [(sample.response or BLANK, sample.reference or BLANK) for sample in samples]
        )
        rows += [
            _row(sample.row_id, Pair.ANSWER_CROSS_ENCODER, 0, float(value))
            for sample, value in zip(samples, scored, strict=True)
        ]
    return StageOutput(build_table(Stage.SIMILARITY, rows))


def cosine(one: NDArray[np.float32], other: NDArray[np.float32]) -> float | None:
    """Cosine of two vectors in [-1, 1]; None if one of them is zero, NaN if one is not finite.

    >>> cosine(np.array([3.0, 4.0], np.float32), np.array([40.0, 30.0], np.float32))
    0.96
    """
    left, right = one.astype(np.float64), other.astype(np.float64)
    norm = float(np.linalg.norm(left) * np.linalg.norm(right))
    if not math.isfinite(norm):
        return math.nan
    return float(np.clip(np.dot(left, right) / norm, -1.0, 1.0)) if norm else None


def _question_pairs(
    samples: Sequence[Sample], questions: Sequence[Mapping[str, Any]]
) -> list[tuple[str, str, int, str, str]]:
    asked = {sample.row_id: sample.user_input or BLANK for sample in samples}
    return [
        (row["row_id"], Pair.QUESTION, row["k"], asked[row["row_id"]], row["text"])
        for row in questions
        if row["k"] is not None and row["text"].strip()
    ]


def _row(row_id: str, pair: str, k: int, value: float | None) -> dict[str, Any]:
    key = {"row_id": row_id, "pair": pair, "k": k}
    if value is None:
        return {**key, "status": AnswerStatus.UNDEFINED, "reason": reasons.ZERO_VECTOR}
    if not math.isfinite(value):
        return {**key, "status": AnswerStatus.FAILED, "reason": reasons.NO_USABLE_VECTOR}
    return {**key, "cosine": value, "status": AnswerStatus.ANSWERED}
