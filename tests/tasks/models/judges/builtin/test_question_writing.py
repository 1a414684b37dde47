"""Tests of questions regenerated from a response, and of noncommittal responses."""

import pytest

from tasks.models.embedders.minilm import MiniLm
from tasks.models.judges.builtin.question_writing import write_questions
from tasks.models.recognizers.spacy_pipeline import SpacyPipeline

pytestmark = pytest.mark.models

ANSWER = "Full-time employees have 25 vacation days. Unused days expire in March. Managers approve every request."


@pytest.fixture(scope="module")
def pipeline() -> SpacyPipeline:
    return SpacyPipeline()


@pytest.mark.parametrize("response", [ANSWER, "Paris.", "Lee approves trips.", "It was opened in 2015.", "25"])
def test_requested_number_of_distinct_questions(pipeline: SpacyPipeline, response: str) -> None:
    (found,) = write_questions([response], [2], pipeline)
    assert len(set(found.questions)) == 2
    assert all(question.endswith("?") for question in found.questions)


def test_a_statement_becomes_a_question(pipeline: SpacyPipeline) -> None:
    (found,) = write_questions(["Lee approves trips."], [3], pipeline)
    assert found.questions[0] == "Does Lee approve trips?"
    assert "Who approves trips?" in found.questions


def test_a_short_response_still_gets_the_number(pipeline: SpacyPipeline) -> None:
    (found,) = write_questions(["Yes"], [9], pipeline)
    assert len(found.questions) == 9


@pytest.mark.parametrize(
    ("response", "noncommittal"),
    [
        (ANSWER, False),
        ("I don't know.", True),
        ("The provided documents do not contain the answer.", True),
        ("Sorry, I am not able to answer that. Please ask your manager.", True),
        ("Sorry, but I can't assist with that.", True),
        ("Which of the plans do you mean?", True),
        ("I could not find the price. However, the ferry takes two hours.", False),
        (f"{ANSWER} The text does not say more.", False),
        ("The plan does not cover dental care.", False),
    ],
)
def test_noncommittal(pipeline: SpacyPipeline, response: str, noncommittal: bool) -> None:
    assert write_questions([response], [3], pipeline)[0].noncommittal is noncommittal


def test_questions_are_similar_to_the_user_question(pipeline: SpacyPipeline) -> None:
    (found,) = write_questions([ANSWER], [3], pipeline)
    vectors = MiniLm().embed(["How many days of vacation do employees have?", "Who won the match?", *found.questions])
    near, far = vectors[2:] @ vectors[0], vectors[2:] @ vectors[1]
    assert near.mean() > 0.5
    assert far.mean() < 0.2
