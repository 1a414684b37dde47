"""The stage `similarity`: cosines of real vectors, one batch a shard."""

import math
from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from metric_core import reasons
from metric_core.stages import Product, Stage
from tasks.models.embedders.protocol import EmbedderIdentity, TextCoverage
from tasks.rows.records import build_table
from tasks.stages.similarity import SimilaritySettings, similarity
from tests.tasks.builders import GivenModels, cells, run_stage, samples_table

pytestmark = pytest.mark.models

VECTORS = {"fine": [1.0, 0.0], "zero": [0.0, 0.0], "lost": [math.nan, 0.0], "too much": [math.inf, 1.0]}


class Embedder:
    """Gives each text the vector of that name."""

    identity = EmbedderIdentity("test", "names", "1", 2)

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return np.array([VECTORS[text] for text in texts], dtype=np.float32)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("fine", (1.0, "answered", None)),
        ("zero", (None, "undefined", reasons.ZERO_VECTOR)),
        ("lost", (None, "failed", reasons.NO_USABLE_VECTOR)),
        ("too much", (None, "failed", reasons.NO_USABLE_VECTOR)),
    ],
)
def test_a_vector_that_is_no_direction_gives_no_cosine(text: str, expected: tuple[object, ...]) -> None:
    table = samples_table({"response": "fine", "reference": text})
    settings = SimilaritySettings(products=(Product.ANSWER_SIMILARITY,))
    output = run_stage(similarity, {Stage.SAMPLES: table}, settings, GivenModels(given_embedder=Embedder()))
    assert cells(output.table, "cosine", "status", "reason") == [expected]


def test_an_equal_answer_is_nearer_than_another() -> None:
    table = samples_table(
        {"response": "Bikes are repaired in Dublin.", "reference": "Bikes are repaired in Dublin."},
        {"response": "Bikes are repaired in Dublin.", "reference": "The canteen serves soup on Fridays."},
    )
    output = run_stage(similarity, {Stage.SAMPLES: table}, SimilaritySettings(products=(Product.ANSWER_SIMILARITY,)))
    (_, same), (_, other) = cells(output.table, "row_id", "cosine")
    assert same == pytest.approx(1, abs=1e-6)
    assert other < 0.5


@pytest.mark.parametrize("texts", [("\u0e41\u0e21\u0e27", "\u0e1b\u0e25\u0e32"), ("\U0001f44d", "\U0001f622")])
def test_texts_in_an_unknown_script_have_no_similarity_but_a_reason(texts: tuple[str, str]) -> None:
    table = samples_table({"response": texts[0], "reference": texts[1]}, {"response": "A cat.", "reference": texts[0]})
    output = run_stage(similarity, {Stage.SAMPLES: table}, SimilaritySettings(products=(Product.ANSWER_SIMILARITY,)))
    assert cells(output.table, "cosine", "status", "reason") == [(None, "undefined", reasons.UNKNOWN_SCRIPT)] * 2


def test_long_texts_are_counted_once() -> None:
    long = "Bikes are repaired in Dublin. " * 60
    table = samples_table({"response": long, "reference": "In Dublin."}, {"response": "Dublin", "reference": long})
    output = run_stage(similarity, {Stage.SAMPLES: table}, SimilaritySettings(products=(Product.ANSWER_SIMILARITY,)))
    assert output.usage.long_texts == 1


class CrossEncoder:
    """Cannot read one of two pairs."""

    identity = EmbedderIdentity("test", "pairs", "1", 1)

    def similarity(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float32]:
        return np.array([0.5, math.nan], dtype=np.float32)[: len(pairs)]

    def coverage(self, pairs: Sequence[tuple[str, str]]) -> list[TextCoverage]:
        return [TextCoverage(), TextCoverage(2, reasons.TOO_LONG_FOR_CROSS_ENCODER)][: len(pairs)]


def test_a_pair_that_a_cross_encoder_cannot_read_says_so() -> None:
    table = samples_table({"response": "a", "reference": "b"}, {"response": "a" * 999, "reference": "b"})
    settings = SimilaritySettings(products=(Product.ANSWER_SIMILARITY_BY_CROSS_ENCODER,))
    output = run_stage(similarity, {Stage.SAMPLES: table}, settings, GivenModels(given_cross_encoder=CrossEncoder()))
    assert cells(output.table, "cosine", "reason") == [(0.5, None), (None, reasons.TOO_LONG_FOR_CROSS_ENCODER)]


def test_an_empty_text_is_embedded_as_a_blank() -> None:
    table = samples_table({"response": "", "reference": " "})
    output = run_stage(similarity, {Stage.SAMPLES: table}, SimilaritySettings(products=(Product.ANSWER_SIMILARITY,)))
    assert cells(output.table, "cosine", "status") == [(pytest.approx(1, abs=1e-6), "answered")]


def test_empty_questions_are_left_out() -> None:
    questions = build_table(
        Stage.QUESTIONS,
        [
            {"row_id": "row-1", "k": k, "text": text, "noncommittal": False, "status": "answered"}
            for k, text in enumerate(["Where are bikes repaired?", " "])
        ],
    )
    tables = {Stage.SAMPLES: samples_table({"user_input": "Where are bikes repaired?"}), Stage.QUESTIONS: questions}
    output = run_stage(similarity, tables, SimilaritySettings(products=(Product.QUESTION_SIMILARITY,)))
    assert cells(output.table, "pair", "k") == [("question", 0)]
