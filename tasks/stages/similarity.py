"""Compute similarities of questions and of responses with references: the stage `similarity`.

All texts of a shard are embedded in one batch.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metric_core import reasons
from metric_core.records import AnswerStatus, Pair, Sample
from metric_core.stages import Product, Stage
from tasks.models.embedders.protocol import coverage_of
from tasks.models.protocol import Models
from tasks.options.embedder_options import EmbedderOptions
from tasks.options.judged_settings import StoredSettings
from tasks.rows.records import build_table, read_asked_samples
from tasks.runtime.usage import StageUsage, work_of
from tasks.stages.definition import Progress, StageOutput, Tables, stage

BLANK = " "
"""Text that is embedded in place of an empty one, for which embedders have no vector."""


class SimilaritySettings(StoredSettings, EmbedderOptions):
    """Settings of the stage `similarity`.

    Args:
        products: Pairs whose similarity is computed.
    """

    products: tuple[Product, ...]


@stage(Stage.SIMILARITY, version=3, reads=(Stage.SAMPLES, Stage.FOLLOW_UPS, Stage.QUESTIONS))
def similarity(tables: Tables, settings: SimilaritySettings, models: Models, progress: Progress) -> StageOutput:
    """Compute the cosine of each pair that a product needs.

    It is null if a vector is zero or not finite, or the embedder does not know one of the texts.
    """
    samples = read_asked_samples(tables)
    pairs: list[tuple[str, str, int, str, str]] = []
    if Product.QUESTION_SIMILARITY in settings.products:
        pairs += _question_pairs(samples, tables[Stage.QUESTIONS].to_pylist())
    if Product.ANSWER_SIMILARITY in settings.products:
        pairs += [(s.row_id, Pair.ANSWER, 0, s.response or BLANK, s.reference or BLANK) for s in samples]
    texts = list(dict.fromkeys(text for *_, one, other in pairs for text in (one, other)))
    progress(0, len(texts))
    embedder = models.embedder() if texts else None
    vectors = {} if embedder is None else dict(zip(texts, embedder.embed(texts), strict=True))
    coverage = {} if embedder is None else dict(zip(texts, coverage_of(embedder, texts), strict=True))
    rows = [
        _row(row_id, pair, k, cosine(vectors[one], vectors[other]), coverage[one].problem or coverage[other].problem)
        for row_id, pair, k, one, other in pairs
    ]
    progress(len(texts), 0)
    if Product.ANSWER_SIMILARITY_BY_CROSS_ENCODER in settings.products:
        cross_encoder = models.cross_encoder()
        answers = [(sample.response or BLANK, sample.reference or BLANK) for sample in samples]
        scored = zip(cross_encoder.similarity(answers), coverage_of(cross_encoder, answers), strict=True)
        rows += [
            _row(sample.row_id, Pair.ANSWER_CROSS_ENCODER, 0, float(value), covered.problem)
            for sample, (value, covered) in zip(samples, scored, strict=True)
        ]
    usage = StageUsage(
        long_texts=sum(text.windows > 1 for text in coverage.values()), models={"embedder": work_of(embedder)}
    )
    return StageOutput(build_table(Stage.SIMILARITY, rows), usage)


def cosine(one: NDArray[np.float32], other: NDArray[np.float32]) -> float | None:
    """Return the cosine of two vectors in [-1, 1]; None if one of them is zero, NaN if one is not finite.

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
    user_questions = {sample.row_id: sample.user_input or BLANK for sample in samples}
    return [
        (row["row_id"], Pair.QUESTION, row["k"], user_questions[row["row_id"]], row["text"])
        for row in questions
        if row["k"] is not None and row["text"].strip()
    ]


def _row(row_id: str, pair: str, k: int, value: float | None, problem: str | None) -> dict[str, Any]:
    key = {"row_id": row_id, "pair": pair, "k": k}
    if problem is not None:
        return {**key, "status": AnswerStatus.UNDEFINED, "reason": problem}
    if value is None:
        return {**key, "status": AnswerStatus.UNDEFINED, "reason": reasons.ZERO_VECTOR}
    if not math.isfinite(value):
        return {**key, "status": AnswerStatus.FAILED, "reason": reasons.NO_USABLE_VECTOR}
    return {**key, "cosine": value, "status": AnswerStatus.ANSWERED}
