"""Tests of the removal of citations and connectives, and of evasions."""

from metric_core.refusals.refusal_forms import is_refusal
from tasks.models.judges.builtin.cleaning import clean, makes_no_claim


def test_clean() -> None:
    cases: list[tuple[str, str]] = [
        ("Dental is covered [plan.pdf#page=3].", "Dental is covered."),
        ("Dental is covered.[plan.pdf#page=3][faq.md]", "Dental is covered."),
        ("However, **vision** is not.", "Vision is not."),
        ("According to the provided context, it is free.", "It is free."),
        ("It is important to note that fees apply.", "Fees apply."),
        ("See [the guide](https://example.org/guide).", "See the guide."),
        ("[3]", ""),
    ]
    for sentence, expected in cases:
        assert clean(sentence) == expected, (sentence, expected)


def test_evasions() -> None:
    for sentence in [
        "I don't know.",
        "I\u2019m not sure about that.",
        "I am sorry, but I cannot answer this question.",
        "The provided documents do not contain the answer.",
        "The context does not mention the fee.",
        "There is no information about parking.",
        "Based on the text, this is not specified in the passage.",
        "There is not enough information to answer.",
        "The fee can\u0020not be determined.",
        "Unknown.",
        "We do not have specific information on that.",
    ]:
        assert is_refusal(sentence), sentence
        assert makes_no_claim(sentence), sentence


def test_statements_are_not_evasions() -> None:
    for sentence in [
        "The plan does not cover dental care.",
        "Employees do not have to pay.",
        "There is no fee.",
        "The document lists all fees.",
        "Employees can\u0020not take more than 25 days.",
        "No approval is needed.",
        "The information is stored in Dublin.",
    ]:
        assert not is_refusal(sentence), sentence
        assert not makes_no_claim(sentence), sentence


def test_sentences_without_a_claim() -> None:
    for sentence in ["", "...", "Is it?", "Hello there!", "Sure!", "I hope this helps.", "Let me know."]:
        assert makes_no_claim(sentence), sentence
