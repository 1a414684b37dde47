"""Tests of claims from sentences, clauses and lists."""

import pytest

from tasks.models.judges.builtin import clauses
from tasks.models.judges.builtin.claim_sentences import split_claims
from tasks.models.recognizers.spacy_pipeline import ParsedWord, SpacyPipeline

pytestmark = pytest.mark.models


@pytest.fixture(scope="module")
def pipeline() -> SpacyPipeline:
    return SpacyPipeline()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("Staff have 25 days.", ["Staff have 25 days."]),
        ("Paris", ["Paris."]),
        (
            "Employees may work remotely [guide.pdf#page=2]. They need approval.",
            ["Employees may work remotely.", "They need approval."],
        ),
        ("The fee is 5% and must be paid within 30 days.", ["The fee is 5%.", "The fee must be paid within 30 days."]),
        (
            "Under the plan, employees can apply for leave and receive pay.",
            ["Under the plan, employees can apply for leave.", "Under the plan, employees can receive pay."],
        ),
        (
            "The policy doesn't cover dental care, but it covers vision.",
            ["The policy doesn't cover dental care.", "It covers vision."],
        ),
        (
            "Paris, which is the capital of France, lies on the Seine.",
            ["Paris lies on the Seine.", "Paris is the capital of France."],
        ),
        (
            "Angela Merkel, the former chancellor of Germany, was born in Hamburg.",
            ["Angela Merkel was born in Hamburg.", "Angela Merkel is the former chancellor of Germany."],
        ),
        ("Employees come and go.", ["Employees come and go."]),
        ("Staff get dental or vision care.", ["Staff get dental or vision care."]),
        (
            "Staff get a bonus and receive a raise if they stay for a year.",
            ["Staff get a bonus and receive a raise if they stay for a year."],
        ),
        ("## Vacation\n\nStaff have 25 days.", ["Staff have 25 days."]),
        (
            "The plan includes:\n- Dental care\n- Vision care [plan.pdf]",
            ["The plan includes dental care.", "The plan includes vision care."],
        ),
        ("Follow these steps:\n1. Ask your manager.\n2. Fill in the form.", ["Ask your manager.", "Fill in the form."]),
        ("You should:\n- Ask HR\n- Wait two weeks", ["You should ask HR.", "You should wait two weeks."]),
        ("Hello! How are you? I don't know the answer.", []),
        ("Staff have 25 days.\n\nSources:\n- [plan.pdf#page=2]", ["Staff have 25 days."]),
        ("It is free. It is free.", ["It is free."]),
        (
            "| item | price |\n|---|---|\n| Soup of the day with some leek | 4 euros |\n| **Bread** | 2 euros [1] |",
            ["Soup of the day with some leek: 4 euros.", "Bread: 2 euros."],
        ),
        (
            "The menu:\n\nitem | price\n:--|--:\nSoup | 4\nBread | 2\n\nIt is open.",
            [
                "Soup: price 4.",
                "Bread: price 2.",
                "It is open.",
            ],
        ),
        (
            "| | Soup | Bread |\n| --- | --- | --- |\n| price | 4 euros | 2 euros |\n| size | | small |",
            ["Price: Soup 4 euros.", "Price: Bread 2 euros.", "Size: Bread small."],
        ),
        ("| Soup | 4 euros |\n| Bread | 2 euros |", ["Soup: 4 euros.", "Bread: 2 euros."]),
        ("| City |\n|------|\n| Delft |", ["Delft."]),
        ("Use a | b in the shell.", ["Use a | b in the shell."]),
        ("Here:\n\n### **1. Soup for kids**\n- **City**: Delft", ["City: Delft."]),
        ("**II. Bread**\n\nIt costs 2 euros.", ["It costs 2 euros."]),
        ("## 2.1. Prices\n\nBread costs 2 euros.", ["Bread costs 2 euros."]),
        ("**Step 1.** Mix the dough.\n\n**Step 2.** Bake it.", ["Mix the dough.", "Bake it."]),
        ("42.", ["42."]),
        ("IV", ["IV."]),
    ],
)
def test_claims(pipeline: SpacyPipeline, text: str, expected: list[str]) -> None:
    assert split_claims([text], pipeline) == [expected]


def test_texts_do_not_depend_on_each_other(pipeline: SpacyPipeline) -> None:
    texts = ["The plan includes:", "- Dental care", "Staff have 25 days and get a bonus."]
    together = split_claims(texts, pipeline)
    assert together == [split_claims([text], pipeline)[0] for text in texts]


@pytest.mark.parametrize("text", ["word " * 600, "word, " * 600])
def test_subtrees_are_not_collected_repeatedly_without_a_full_stop(
    text: str, pipeline: SpacyPipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    subtree = clauses._subtree

    def record(word: ParsedWord) -> set[int]:
        found = subtree(word)
        sizes.append(len(found))
        return found

    monkeypatch.setattr(clauses, "_subtree", record)
    assert [claim.casefold() for (claim,) in split_claims([text], pipeline)] == [f"{text.strip(' ,')}."]
    assert sum(sizes) < 10 * 600
