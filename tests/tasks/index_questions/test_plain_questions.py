"""Questions without a language model: a figure or a name is asked for as a person would, or not at all."""

import pytest

from tasks.index_questions.kinds import CLOZE, SINGLE_FACT, TITLE
from tasks.index_questions.plain_questions import write_plainly
from tasks.index_questions.written_question import WrittenQuestion
from tasks.models.recognizers.spacy_pipeline import SpacyPipeline
from tasks.opening.local_models import load_pipeline
from tasks.options.language_options import LanguageSettings
from tasks.sources.anchoring.span_places import Chunk

pytestmark = pytest.mark.models


@pytest.fixture(scope="module")
def pipeline() -> SpacyPipeline:
    """The packaged pipeline."""
    return load_pipeline(LanguageSettings())


def clozes(pipeline: SpacyPipeline, *texts: str) -> list[WrittenQuestion | None]:
    """The cloze of each text."""
    return write_plainly(CLOZE, [Chunk(text[:8], text) for text in texts], pipeline)


def test_a_figure_or_a_name_is_asked_for(pipeline: SpacyPipeline) -> None:
    expected = {
        "Claims are filed in the portal within 30 days of the purchase.": (
            "Within how many days of the purchase are claims filed in the portal?"
        ),
        "After eight failed attempts an account is locked for 30 minutes.": (
            "After eight failed attempts, for how many minutes is an account locked?"
        ),
        "Samuel Okafor, who leads the platform team, publishes the rota six weeks ahead.": (
            "Who publishes the rota six weeks ahead?"
        ),
        "Office staff may work from home up to three days a week.": (
            "Up to how many days a week may office staff work from home?"
        ),
        "Up to six unused days move into the next year.": "Up to how many unused days move into the next year?",
    }
    found = clozes(pipeline, *expected)
    assert [question and question.question for question in found] == list(expected.values())
    assert [question and (question.reference, question.spans[0].text) for question in found] == [
        (text, text) for text in expected
    ]


@pytest.mark.parametrize(
    "text",
    [
        "It must be returned to the shop within 30 days of the purchase.",
        "Everyone is welcome to walk around the garden whenever they like.",
        "The frame is guaranteed for ten years and the motor for three.",
        "Leave within four minutes.",
    ],
    ids=["no subject", "no figure", "no verb", "too short"],
)
def test_a_sentence_that_cannot_be_asked_about_is_left_alone(pipeline: SpacyPipeline, text: str) -> None:
    assert clozes(pipeline, text) == [None]


def test_a_title_asks_for_its_section(pipeline: SpacyPipeline) -> None:
    chunks = [
        Chunk("a", "## Hotels\n\nA hotel room costs 90 euros. Breakfast\nis free."),
        Chunk("b", "A hotel room costs 90 euros.", title="IT hotels"),
        Chunk("c", "The bar opens at nine.", title="Hotels"),
        Chunk("d", "A hotel room costs 90 euros."),
    ]
    with_heading, with_title, *without = write_plainly(TITLE, chunks, pipeline)
    assert with_heading is not None
    assert (with_heading.question, with_heading.reference) == (
        "What is there to know about hotels?",
        "A hotel room costs 90 euros. Breakfast is free.",
    )
    assert [span.text for span in with_heading.spans] == ["A hotel room costs 90 euros.", "Breakfast\nis free."]
    assert with_title is not None
    assert with_title.question == "What is there to know about IT hotels?"
    assert without == [None, None]


def test_other_kinds_need_a_language_model(pipeline: SpacyPipeline) -> None:
    with pytest.raises(ValueError, match="single_fact"):
        write_plainly(SINGLE_FACT, [], pipeline)
