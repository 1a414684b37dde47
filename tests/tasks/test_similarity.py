"""The stage `similarity`: cosines of real vectors, one batch a shard."""

import pytest

from metric_core.products import Product, Stage
from tasks.rows import table_of
from tasks.similarity import SimilaritySettings, similarity
from tests.tasks.builders import cells, samples_table

pytestmark = pytest.mark.models


def test_an_equal_answer_is_nearer_than_another() -> None:
    table = samples_table(
        {"response": "Bikes are repaired in Dublin.", "reference": "Bikes are repaired in Dublin."},
        {"response": "Bikes are repaired in Dublin.", "reference": "The canteen serves soup on Fridays."},
    )
    output = similarity.compute({Stage.SAMPLES: table}, SimilaritySettings(products=(Product.ANSWER_SIMILARITY,)))
    (_, same), (_, other) = cells(output.table, "row_id", "cosine")
    assert same == pytest.approx(1, abs=1e-6)
    assert other < 0.5


def test_an_empty_text_is_embedded_as_a_blank() -> None:
    table = samples_table({"response": "", "reference": " "})
    output = similarity.compute({Stage.SAMPLES: table}, SimilaritySettings(products=(Product.ANSWER_SIMILARITY,)))
    assert cells(output.table, "cosine", "status") == [(pytest.approx(1, abs=1e-6), "answered")]


def test_empty_questions_are_left_out() -> None:
    questions = table_of(
        Stage.QUESTIONS,
        [
            {"row_id": "row-1", "k": k, "text": text, "noncommittal": False, "status": "answered"}
            for k, text in enumerate(["Where are bikes repaired?", " "])
        ],
    )
    tables = {Stage.SAMPLES: samples_table({"user_input": "Where are bikes repaired?"}), Stage.QUESTIONS: questions}
    output = similarity.compute(tables, SimilaritySettings(products=(Product.QUESTION_SIMILARITY,)))
    assert cells(output.table, "pair", "k") == [("question", 0)]
