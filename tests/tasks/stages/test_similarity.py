"""The stage `similarity`: cosines of real vectors, one batch a shard."""

import math
from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from metric_core import reasons
from metric_core.stages import Product, Stage
from tasks.embedders.protocol import EmbedderIdentity
from tasks.stages.similarity import SimilaritySettings, similarity
from tasks.tables.records import build_table
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
